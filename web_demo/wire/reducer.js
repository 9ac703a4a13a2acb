/**
 * What an action does to the state of a channel: pure functions, equal to those of the host.
 *
 * `at` is the time of the action: the envelope's `_meta.at`, or now for an own one that the host
 * has not confirmed yet. What changes nothing gives back the very object that it was given, and
 * an action of a kind that this version does not know changes nothing.
 */

/** @import {Action, RootState, SessionState} from "./types.d.ts" */
import * as customizations from "./reducers/customizations.js";
import * as pending from "./reducers/pending.js";
import * as properties from "./reducers/properties.js";
import * as requests from "./reducers/requests.js";
import * as toolCalls from "./reducers/tool-calls.js";
import * as turns from "./reducers/turns.js";
import { updated } from "./reducers/updates.js";

/** @typedef {Extract<Action, { type: `session/${string}` }>} SessionAction */

/** @type {{
 *   [A in SessionAction as A["type"]]: (state: SessionState, action: A, at: number) => SessionState
 * }} */
export const SESSION_TRANSITIONS = {
  "session/ready": properties.ready,
  "session/creationFailed": properties.creationFailed,
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
  "session/titleChanged": properties.titleChanged,
  "session/modelChanged": properties.modelChanged,
  "session/agentChanged": properties.agentChanged,
  "session/isReadChanged": properties.isReadChanged,
  "session/isArchivedChanged": properties.isArchivedChanged,
  "session/activityChanged": properties.activityChanged,
  "session/configChanged": properties.configChanged,
  "session/metaChanged": properties.metaChanged,
  "session/changesetsChanged": properties.changesetsChanged,
  "session/serverToolsChanged": properties.serverToolsChanged,
  "session/activeClientChanged": properties.activeClientChanged,
  "session/activeClientToolsChanged": properties.activeClientToolsChanged,
  "session/customizationsChanged": customizations.customizationsChanged,
  "session/customizationToggled": customizations.customizationToggled,
  "session/customizationUpdated": customizations.customizationUpdated,
  "session/customizationRemoved": customizations.customizationRemoved,
  "session/mcpServerStateChanged": customizations.mcpServerStateChanged,
};

/**
 * @param {SessionState} state
 * @param {Action} action
 * @param {number} at
 * @returns {SessionState}
 */
export function reduceSession(state, action, at) {
  if (!Object.hasOwn(SESSION_TRANSITIONS, action.type)) return state;
  const { type } = /** @type {SessionAction} */ (action);
  return SESSION_TRANSITIONS[type](state, /** @type {never} */ (action), at);
}

/**
 * @param {RootState} state
 * @param {Action} action
 * @returns {RootState}
 */
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
        ? updated(state, { config: properties.withValues(state.config, action) })
        : state;
    default:
      return state;
  }
}
