/** Transitions of turns, and of the messages that are queued for them. */

/**
 * @import {
 *   ActiveTurn, Cancelled, Delta, ErrorInfo, PendingMessageRemoved, PendingMessageSet,
 *   QueuedMessagesReordered, Reasoning, ResponsePart, ResponsePartAdded, SessionState, ToolCall,
 *   ToolCallStart, Truncated, Turn, TurnFailed, TurnStarted, TurnState, Usage,
 * } from "../types.d.ts"
 */
import {
  filled,
  IS_READ,
  marked,
  touched,
  updated,
  withErrorStatus,
  withoutUndefined,
  withStatus,
} from "./updates.js";

/**
 * The active turn, if it is the one that is meant.
 *
 * @param {SessionState} state
 * @param {string} turnId
 * @returns {ActiveTurn | undefined}
 */
export const activeTurn = (state, turnId) =>
  state.activeTurn?.id === turnId ? state.activeTurn : undefined;

/** @param {SessionState} state @param {Partial<ActiveTurn>} changes */
export const withTurn = (state, changes) =>
  state.activeTurn ? updated(state, { activeTurn: updated(state.activeTurn, changes) }) : state;

/** @param {SessionState} state @param {TurnStarted} action @param {number} at */
export function turnStarted(state, action, at) {
  const activeTurn = { id: action.turnId, message: action.message, responseParts: [] };
  const started = marked(withStatus(updated(state, { activeTurn })), IS_READ, false);
  const { queuedMessageId } = action;
  return touched(queuedMessageId ? withoutMessage(started, queuedMessageId) : started, at);
}

/** @param {SessionState} state @param {ResponsePartAdded} action */
export function responsePartAdded(state, action) {
  const turn = activeTurn(state, action.turnId);
  if (!turn) return state;
  return withTurn(state, { responseParts: [...turn.responseParts, action.part] });
}

/** @param {SessionState} state @param {Usage} action */
export const usage = (state, action) =>
  activeTurn(state, action.turnId) ? withTurn(state, { usage: action.usage }) : state;

/** @param {SessionState} state @param {TurnFailed} action @param {number} at */
export function turnFailed(state, action, at) {
  const failed = ended(state, action.turnId, "error", at, action.error);
  return failed === state ? state : withErrorStatus(failed);
}

/**
 * Drops what came after the turn, or everything, the active turn included.
 *
 * @param {SessionState} state
 * @param {Truncated} action
 * @param {number} at
 */
export function truncated(state, action, at) {
  const turns = upTo(state.turns, action.turnId);
  if (!turns) return state;
  const rest = updated(state, { turns, activeTurn: undefined, inputRequests: undefined });
  return touched(withStatus(rest), at);
}

/** @param {readonly Turn[]} turns @param {string | undefined} turnId */
function upTo(turns, turnId) {
  if (turnId === undefined) return [];
  const index = turns.findIndex((turn) => turn.id === turnId);
  return index < 0 ? undefined : turns.slice(0, index + 1);
}

/**
 * Appends text to the first part with that id, if it is of the right kind.
 *
 * @param {SessionState} state
 * @param {Delta | Reasoning} action
 * @param {"markdown" | "reasoning"} kind
 */
export function appended(state, action, kind) {
  const turn = activeTurn(state, action.turnId);
  if (!turn) return state;
  const index = turn.responseParts.findIndex((part) => partId(part) === action.partId);
  const part = turn.responseParts[index];
  if (part?.kind !== kind) return state;
  const grown = updated(part, { content: part.content + action.content });
  return withTurn(state, { responseParts: turn.responseParts.with(index, grown) });
}

/** @param {ResponsePart} part @returns {string | undefined} */
function partId(part) {
  switch (part.kind) {
    case "toolCall":
      return part.toolCall.toolCallId;
    case "contentRef":
    case "systemNotification":
      return undefined;
    default: // also kinds that this version does not know
      return part.id;
  }
}

/**
 * Moves the active turn to the history; open tool calls are skipped, open questions dropped.
 *
 * @param {SessionState} state
 * @param {string} turnId
 * @param {TurnState} how
 * @param {number} at
 * @param {ErrorInfo} [error]
 */
export function ended(state, turnId, how, at, error) {
  const active = activeTurn(state, turnId);
  if (!active) return state;
  const turn = withoutUndefined({
    id: active.id,
    message: active.message,
    responseParts: active.responseParts.map(settled),
    usage: active.usage,
    state: how,
    error,
  });
  const rest = updated(state, {
    turns: [...state.turns, turn],
    activeTurn: undefined,
    inputRequests: undefined,
  });
  return touched(withStatus(rest), at);
}

/** @param {ResponsePart} part @returns {ResponsePart} */
function settled(part) {
  if (part.kind !== "toolCall") return part;
  const { status } = part.toolCall;
  if (status === "completed" || status === "cancelled") return part;
  return { kind: "toolCall", toolCall: skipped(part.toolCall) };
}

/**
 * The fields that every state of one call shares.
 *
 * @param {ToolCall | ToolCallStart} call
 */
export const identity = (call) => ({
  toolCallId: call.toolCallId,
  toolName: call.toolName,
  displayName: call.displayName,
  contributor: call.contributor,
  _meta: call._meta,
});

/** @param {ToolCall} call @returns {Cancelled} */
function skipped(call) {
  return withoutUndefined({
    status: /** @type {const} */ ("cancelled"),
    ...identity(call),
    invocationMessage: call.invocationMessage || "",
    toolInput: call.status === "streaming" ? undefined : call.toolInput,
    reason: /** @type {const} */ ("skipped"),
  });
}

// Pending messages: one that steers the turn, and a queue for the next ones.

/** @param {SessionState} state @param {PendingMessageSet} action */
export function pendingMessageSet(state, action) {
  const message = { id: action.id, message: action.message };
  if (action.kind === "steering") return updated(state, { steeringMessage: message });
  const queue = state.queuedMessages ?? [];
  if (queue.some((waiting) => waiting.id === action.id)) {
    const replaced = queue.map((waiting) => (waiting.id === action.id ? message : waiting));
    return updated(state, { queuedMessages: replaced });
  }
  return updated(state, { queuedMessages: [...queue, message] });
}

/** @param {SessionState} state @param {PendingMessageRemoved} action */
export const pendingMessageRemoved = (state, action) =>
  action.kind === "steering"
    ? withoutSteering(state, action.id)
    : withoutQueued(state, action.id);

/**
 * Unknown ids are ignored; messages that the order leaves out keep their place at the end.
 *
 * @param {SessionState} state
 * @param {QueuedMessagesReordered} action
 */
export function queuedMessagesReordered(state, action) {
  if (!state.queuedMessages) return state;
  const byId = new Map(state.queuedMessages.map((message) => [message.id, message]));
  const named = new Set(action.order.filter((id) => byId.has(id)));
  const first = [...named].flatMap((id) => byId.get(id) ?? []);
  const rest = state.queuedMessages.filter((message) => !named.has(message.id));
  return updated(state, { queuedMessages: [...first, ...rest] });
}

/**
 * A turn that starts with a pending message removes it, wherever it is.
 *
 * @param {SessionState} state
 * @param {string} id
 */
function withoutMessage(state, id) {
  const rest = withoutQueued(withoutSteering(state, id), id);
  return updated(rest, { queuedMessages: filled(rest.queuedMessages ?? []) });
}

/** @param {SessionState} state @param {string} id */
const withoutSteering = (state, id) =>
  state.steeringMessage?.id === id ? updated(state, { steeringMessage: undefined }) : state;

/** @param {SessionState} state @param {string} id */
function withoutQueued(state, id) {
  const queue = state.queuedMessages ?? [];
  const rest = queue.filter((message) => message.id !== id);
  return rest.length === queue.length ? state : updated(state, { queuedMessages: filled(rest) });
}
