/**
 * Transitions of tool calls: streaming → confirmation → running → confirmation → done.
 *
 * An action that finds its call in another state than it expects changes nothing.
 */

/**
 * @import {
 *   Completed, ConfirmationOption, PendingConfirmation, Running, SessionState, Streaming, ToolCall,
 *   ToolCallComplete, ToolCallConfirmed, ToolCallContentChanged, ToolCallDelta, ToolCallReady,
 *   ToolCallResultConfirmed, ToolCallStart,
 * } from "../types.d.ts"
 */
import { activeTurn, identity, withTurn } from "./turns.js";
import { updated, withoutUndefined, withStatus } from "./updates.js";

/** @param {SessionState} state @param {ToolCallStart} action */
export function toolCallStart(state, action) {
  const turn = activeTurn(state, action.turnId);
  if (!turn) return state;
  const toolCall = withoutUndefined({ status: /** @type {const} */ ("streaming"), ...identity(action) });
  return withTurn(state, {
    responseParts: [...turn.responseParts, { kind: "toolCall", toolCall }],
  });
}

/** @param {SessionState} state @param {ToolCallDelta} action */
export const toolCallDelta = (state, action) =>
  withCall(state, action, (call) => {
    if (call.status !== "streaming") return call;
    return updated(call, {
      partialInput: (call.partialInput ?? "") + action.content,
      invocationMessage: action.invocationMessage ?? call.invocationMessage,
    });
  });

/** @param {SessionState} state @param {ToolCallReady} action */
export const toolCallReady = (state, action) =>
  withStatus(
    withCall(state, action, (call) => {
      if (call.status !== "streaming" && call.status !== "running") return call;
      return action.confirmed ? allowed(call, action, action.confirmed) : asking(call, action);
    }),
  );

/**
 * @param {Streaming | Running} call
 * @param {ToolCallReady} action
 * @param {NonNullable<ToolCallReady["confirmed"]>} confirmed
 * @returns {Running}
 */
const allowed = (call, action, confirmed) =>
  withoutUndefined({
    status: "running",
    ...identity(call),
    invocationMessage: action.invocationMessage,
    toolInput: action.toolInput,
    confirmed,
  });

/**
 * @param {Streaming | Running} call
 * @param {ToolCallReady} action
 * @returns {PendingConfirmation}
 */
const asking = (call, action) =>
  withoutUndefined({
    status: "pending-confirmation",
    ...identity(call),
    invocationMessage: action.invocationMessage,
    toolInput: action.toolInput,
    confirmationTitle: action.confirmationTitle,
    edits: action.edits,
    editable: action.editable,
    options: action.options,
  });

/** @param {SessionState} state @param {ToolCallConfirmed} action */
export const toolCallConfirmed = (state, action) =>
  withStatus(
    withCall(state, action, (call) => {
      if (call.status !== "pending-confirmation") return call;
      return action.approved ? approved(call, action) : denied(call, action);
    }),
  );

/** @param {PendingConfirmation} call @param {ToolCallConfirmed} action @returns {ToolCall} */
const approved = (call, action) =>
  withoutUndefined({
    status: "running",
    ...identity(call),
    invocationMessage: call.invocationMessage,
    toolInput: action.editedToolInput ?? call.toolInput,
    confirmed: action.confirmed ?? "user-action",
    selectedOption: selected(call.options, action.selectedOptionId),
  });

/** @param {PendingConfirmation} call @param {ToolCallConfirmed} action @returns {ToolCall} */
const denied = (call, action) =>
  withoutUndefined({
    status: "cancelled",
    ...identity(call),
    invocationMessage: call.invocationMessage,
    toolInput: call.toolInput,
    reason: action.reason ?? "denied",
    reasonMessage: action.reasonMessage,
    userSuggestion: action.userSuggestion,
    selectedOption: selected(call.options, action.selectedOptionId),
  });

/** @param {SessionState} state @param {ToolCallComplete} action */
export const toolCallComplete = (state, action) =>
  withStatus(
    withCall(state, action, (call) => {
      if (call.status !== "running" && call.status !== "pending-confirmation") return call;
      return withResult(call, action);
    }),
  );

/**
 * @param {Running | PendingConfirmation} call
 * @param {ToolCallComplete} action
 * @returns {ToolCall}
 */
function withResult(call, { result, requiresResultConfirmation }) {
  const ran = call.status === "running";
  return withoutUndefined({
    status: requiresResultConfirmation ? "pending-result-confirmation" : "completed",
    ...identity(call),
    invocationMessage: call.invocationMessage,
    toolInput: call.toolInput,
    confirmed: ran ? call.confirmed : "not-needed",
    selectedOption: ran ? call.selectedOption : undefined,
    success: result.success,
    pastTenseMessage: result.pastTenseMessage,
    content: result.content,
    structuredContent: result.structuredContent,
    error: result.error,
  });
}

/** @param {SessionState} state @param {ToolCallResultConfirmed} action */
export const toolCallResultConfirmed = (state, action) =>
  withStatus(
    withCall(state, action, (call) => {
      if (call.status !== "pending-result-confirmation") return call;
      if (action.approved) return /** @type {Completed} */ ({ ...call, status: "completed" });
      return withoutUndefined({
        status: /** @type {const} */ ("cancelled"),
        ...identity(call),
        invocationMessage: call.invocationMessage,
        toolInput: call.toolInput,
        reason: /** @type {const} */ ("result-denied"),
        selectedOption: call.selectedOption,
      });
    }),
  );

/** @param {SessionState} state @param {ToolCallContentChanged} action */
export const toolCallContentChanged = (state, action) =>
  withCall(state, action, (call) =>
    call.status === "running" ? updated(call, { content: action.content }) : call,
  );

/**
 * @param {readonly ConfirmationOption[] | undefined} options
 * @param {string | undefined} optionId
 */
const selected = (options, optionId) =>
  optionId ? options?.find((option) => option.id === optionId) : undefined;

/**
 * @param {SessionState} state
 * @param {{ readonly turnId: string, readonly toolCallId: string }} action
 * @param {(call: ToolCall) => ToolCall} change
 */
function withCall(state, { turnId, toolCallId }, change) {
  const turn = activeTurn(state, turnId);
  if (!turn) return state;
  const responseParts = turn.responseParts.map((part) =>
    part.kind === "toolCall" && part.toolCall.toolCallId === toolCallId
      ? updated(part, { toolCall: change(part.toolCall) })
      : part,
  );
  return withTurn(state, { responseParts });
}
