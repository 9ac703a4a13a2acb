/**
 * The state of a channel after an action: pure functions, the same as the host's `reducers/state`.
 *
 * `at` is the time of the action: the envelope's `_meta.at`, or now for an own one that the host
 * has not confirmed yet. If nothing changes, the same object is returned; unknown actions change
 * nothing.
 */

/**
 * @import {
 *   Action, ActiveClientChanged, ActiveClientToolsChanged, ActivityChanged, AgentChanged,
 *   ChangesetsChanged, ConfigChanged, CreationFailed, IsArchivedChanged, IsReadChanged,
 *   MetaChanged, ModelChanged, RootState, ServerToolsChanged, SessionState, TitleChanged,
 * } from "../types.d.ts"
 */
import * as customizations from "./customizations.js";
import * as requests from "./input-requests.js";
import * as toolCalls from "./tool-calls.js";
import * as pending from "./turns.js";
import * as turns from "./turns.js";
import { IS_ARCHIVED, IS_READ, marked, touched, updated, withSummary } from "./updates.js";

// Properties: title, model, read and archived, configuration, tools, client.

/** @param {SessionState} state */
export const ready = (state) => updated(state, { lifecycle: "ready" });

/** @param {SessionState} state @param {CreationFailed} action */
export const creationFailed = (state, action) =>
  updated(state, { lifecycle: "creationFailed", creationError: action.error });

/** @param {SessionState} state @param {TitleChanged} action @param {number} at */
export const titleChanged = (state, action, at) =>
  touched(withSummary(state, { title: action.title }), at);

/** @param {SessionState} state @param {ModelChanged} action @param {number} at */
export const modelChanged = (state, action, at) =>
  touched(withSummary(state, { model: action.model }), at);

/** @param {SessionState} state @param {AgentChanged} action @param {number} at */
export const agentChanged = (state, action, at) =>
  touched(withSummary(state, { agent: action.agent }), at);

/** @param {SessionState} state @param {IsReadChanged} action */
export const isReadChanged = (state, action) => marked(state, IS_READ, action.isRead);

/** @param {SessionState} state @param {IsArchivedChanged} action */
export const isArchivedChanged = (state, action) =>
  marked(state, IS_ARCHIVED, action.isArchived);

/** @param {SessionState} state @param {ActivityChanged} action */
export const activityChanged = (state, action) =>
  withSummary(state, { activity: action.activity });

/** @param {SessionState} state @param {ConfigChanged} action @param {number} at */
export const configChanged = (state, action, at) =>
  state.config
    ? touched(updated(state, { config: withValues(state.config, action) }), at)
    : state;

/** @param {SessionState} state @param {MetaChanged} action */
export const metaChanged = (state, action) => updated(state, { _meta: action._meta });

/** @param {SessionState} state @param {ChangesetsChanged} action */
export const changesetsChanged = (state, action) =>
  updated(state, { changesets: action.changesets });

/** @param {SessionState} state @param {ServerToolsChanged} action */
export const serverToolsChanged = (state, action) =>
  updated(state, { serverTools: action.tools });

/** @param {SessionState} state @param {ActiveClientChanged} action */
export const activeClientChanged = (state, action) =>
  updated(state, { activeClient: action.activeClient ?? undefined });

/** @param {SessionState} state @param {ActiveClientToolsChanged} action */
export const activeClientToolsChanged = (state, action) =>
  state.activeClient
    ? updated(state, { activeClient: updated(state.activeClient, { tools: action.tools }) })
    : state;

/**
 * A configuration after a change: merged, or with `replace` all there is.
 *
 * @template {{ readonly values: { readonly [name: string]: any } }} C
 * @param {C} config
 * @param {{ readonly config: { readonly [name: string]: any }, readonly replace?: boolean }} action
 * @returns {C}
 */
export function withValues(config, action) {
  const values = action.replace ? action.config : { ...config.values, ...action.config };
  return updated(config, /** @type {Partial<C>} */ ({ values }));
}

/** @typedef {Extract<Action, { type: `session/${string}` }>} SessionAction */

/** @type {{
 *   [A in SessionAction as A["type"]]: (state: SessionState, action: A, at: number) => SessionState
 * }} */
export const SESSION_TRANSITIONS = {
  "session/ready": ready,
  "session/creationFailed": creationFailed,
  "session/turnStarted": turns.turnStarted,
  "session/delta": turns.delta,
  "session/reasoning": turns.reasoning,
  "session/responsePart": turns.responsePartAdded,
  "session/turnComplete": turns.turnComplete,
  "session/turnCancelled": turns.turnCancelled,
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
  "session/pendingMessageSet": pending.pendingMessageSet,
  "session/pendingMessageRemoved": pending.pendingMessageRemoved,
  "session/queuedMessagesReordered": pending.queuedMessagesReordered,
  "session/titleChanged": titleChanged,
  "session/modelChanged": modelChanged,
  "session/agentChanged": agentChanged,
  "session/isReadChanged": isReadChanged,
  "session/isArchivedChanged": isArchivedChanged,
  "session/activityChanged": activityChanged,
  "session/configChanged": configChanged,
  "session/metaChanged": metaChanged,
  "session/changesetsChanged": changesetsChanged,
  "session/serverToolsChanged": serverToolsChanged,
  "session/activeClientChanged": activeClientChanged,
  "session/activeClientToolsChanged": activeClientToolsChanged,
  "session/customizationsChanged": customizations.customizationsChanged,
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
