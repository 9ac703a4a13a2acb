/**
 * The state of a channel after an action: pure functions, the same as the host's `reducers/state`.
 *
 * `at` is the time of the action: the envelope's `_meta.at`, or now for an own one that the host
 * has not confirmed yet. If nothing changes, the same object is returned; unknown actions change
 * nothing.
 */

/** @import { Action, RootState, SessionState } from "../types.d.ts" */
import * as customizations from "./customizations.js";
import * as requests from "./input-requests.js";
import * as toolCalls from "./tool-calls.js";
import * as turns from "./turns.js";
import { IS_ARCHIVED, IS_READ, marked, touched, updated, withSummary } from "./updates.js";

/**
 * A configuration after a change: merged, or with `replace` all there is.
 *
 * @template {{ readonly values: { readonly [name: string]: any } }} C
 * @param {C} config
 * @param {{ readonly config: { readonly [name: string]: any }, readonly replace?: boolean }} action
 * @returns {C}
 */
function withValues(config, action) {
  const values = action.replace ? action.config : { ...config.values, ...action.config };
  return updated(config, /** @type {Partial<C>} */ ({ values }));
}

/** @typedef {Extract<Action, { type: `session/${string}` }>} SessionAction */

/** @type {{
 *   [A in SessionAction as A["type"]]: (state: SessionState, action: A, at: number) => SessionState
 * }} */
const SESSION_TRANSITIONS = {
  "session/ready": (state) => updated(state, { lifecycle: "ready" }),
  "session/creationFailed": (state, { error }) =>
    updated(state, { lifecycle: "creationFailed", creationError: error }),
  "session/turnStarted": turns.turnStarted,
  "session/delta": (state, action) => turns.appended(state, action, "markdown"),
  "session/reasoning": (state, action) => turns.appended(state, action, "reasoning"),
  "session/responsePart": turns.responsePartAdded,
  "session/turnComplete": (state, { turnId }, at) => turns.ended(state, turnId, "complete", at),
  "session/turnCancelled": (state, { turnId }, at) => turns.ended(state, turnId, "cancelled", at),
  "session/error": turns.turnFailed,
  "session/usage": turns.usage,
  "session/truncated": turns.truncated,
  "session/toolCallStart": toolCalls.toolCallStart,
  "session/toolCallDelta": toolCalls.toolCallDelta,
  "session/toolCallReady": toolCalls.toolCallReady,
  "session/toolCallConfirmed": toolCalls.toolCallConfirmed,
  "session/toolCallComplete": toolCalls.toolCallComplete,
  "session/toolCallResultConfirmed": toolCalls.toolCallResultConfirmed,
  "session/toolCallContentChanged": toolCalls.toolCallContentChanged,
  "session/inputRequested": requests.inputRequested,
  "session/inputAnswerChanged": requests.inputAnswerChanged,
  "session/inputCompleted": requests.inputCompleted,
  "session/pendingMessageSet": turns.pendingMessageSet,
  "session/pendingMessageRemoved": turns.pendingMessageRemoved,
  "session/queuedMessagesReordered": turns.queuedMessagesReordered,
  "session/titleChanged": (state, { title }, at) => touched(withSummary(state, { title }), at),
  "session/modelChanged": (state, { model }, at) => touched(withSummary(state, { model }), at),
  "session/agentChanged": (state, { agent }, at) => touched(withSummary(state, { agent }), at),
  "session/isReadChanged": (state, { isRead }) => marked(state, IS_READ, isRead),
  "session/isArchivedChanged": (state, { isArchived }) => marked(state, IS_ARCHIVED, isArchived),
  "session/activityChanged": (state, { activity }) => withSummary(state, { activity }),
  "session/configChanged": (state, action, at) =>
    state.config ? touched(updated(state, { config: withValues(state.config, action) }), at) : state,
  "session/metaChanged": (state, { _meta }) => updated(state, { _meta }),
  "session/changesetsChanged": (state, { changesets }) => updated(state, { changesets }),
  "session/serverToolsChanged": (state, { tools }) => updated(state, { serverTools: tools }),
  "session/activeClientChanged": (state, { activeClient }) =>
    updated(state, { activeClient: activeClient ?? undefined }),
  "session/activeClientToolsChanged": (state, { tools }) =>
    state.activeClient
      ? updated(state, { activeClient: updated(state.activeClient, { tools }) })
      : state,
  "session/customizationsChanged": (state, { customizations }) => updated(state, { customizations }),
  "session/customizationToggled": customizations.customizationToggled,
  "session/customizationUpdated": customizations.customizationUpdated,
  "session/customizationRemoved": customizations.customizationRemoved,
  "session/mcpServerStateChanged": customizations.mcpServerStateChanged,
};

/** @param {SessionState} state @param {Action} action @param {number} at @returns {SessionState} */
export function reduceSession(state, action, at) {
  if (!Object.hasOwn(SESSION_TRANSITIONS, action.type)) return state;
  const { type } = /** @type {SessionAction} */ (action);
  return SESSION_TRANSITIONS[type](state, /** @type {never} */ (action), at);
}

/** @param {RootState} state @param {Action} action @returns {RootState} */
export function reduceRoot(state, action) {
  switch (action.type) {
    case "root/agentsChanged":
      return updated(state, { agents: action.agents });
    case "root/activeSessionsChanged":
      return updated(state, { activeSessions: action.activeSessions });
    case "root/terminalsChanged":
      return updated(state, { terminals: action.terminals });
    case "root/configChanged":
      return state.config
        ? updated(state, { config: withValues(state.config, action) })
        : state;
    default:
      return state;
  }
}
