/**
 * Transitions of what a session is and has: title, model, marks, configuration, tools, client.
 */

/**
 * @import {
 *   ActiveClientChanged, ActiveClientToolsChanged, ActivityChanged, AgentChanged,
 *   ChangesetsChanged, ConfigChanged, CreationFailed, IsArchivedChanged, IsReadChanged,
 *   MetaChanged, ModelChanged, ServerToolsChanged, SessionState, TitleChanged,
 * } from "../types.d.ts"
 */
import { IS_ARCHIVED, IS_READ, marked, touched, withSummary } from "./status.js";
import { updated } from "./updates.js";

/** @param {SessionState} state */
export const ready = (state) => updated(state, { lifecycle: "ready" });

/**
 * @param {SessionState} state
 * @param {CreationFailed} action
 */
export const creationFailed = (state, action) =>
  updated(state, { lifecycle: "creationFailed", creationError: action.error });

/**
 * @param {SessionState} state
 * @param {TitleChanged} action
 * @param {number} at
 */
export const titleChanged = (state, action, at) =>
  touched(withSummary(state, { title: action.title }), at);

/**
 * @param {SessionState} state
 * @param {ModelChanged} action
 * @param {number} at
 */
export const modelChanged = (state, action, at) =>
  touched(withSummary(state, { model: action.model }), at);

/**
 * @param {SessionState} state
 * @param {AgentChanged} action
 * @param {number} at
 */
export const agentChanged = (state, action, at) =>
  touched(withSummary(state, { agent: action.agent }), at);

/**
 * @param {SessionState} state
 * @param {IsReadChanged} action
 */
export const isReadChanged = (state, action) => marked(state, IS_READ, action.isRead);

/**
 * @param {SessionState} state
 * @param {IsArchivedChanged} action
 */
export const isArchivedChanged = (state, action) =>
  marked(state, IS_ARCHIVED, action.isArchived);

/**
 * @param {SessionState} state
 * @param {ActivityChanged} action
 */
export const activityChanged = (state, action) =>
  withSummary(state, { activity: action.activity });

/**
 * @param {SessionState} state
 * @param {ConfigChanged} action
 * @param {number} at
 */
export const configChanged = (state, action, at) =>
  state.config
    ? touched(updated(state, { config: withValues(state.config, action) }), at)
    : state;

/**
 * @param {SessionState} state
 * @param {MetaChanged} action
 */
export const metaChanged = (state, action) => updated(state, { _meta: action._meta });

/**
 * @param {SessionState} state
 * @param {ChangesetsChanged} action
 */
export const changesetsChanged = (state, action) =>
  updated(state, { changesets: action.changesets });

/**
 * @param {SessionState} state
 * @param {ServerToolsChanged} action
 */
export const serverToolsChanged = (state, action) =>
  updated(state, { serverTools: action.tools });

/**
 * @param {SessionState} state
 * @param {ActiveClientChanged} action
 */
export const activeClientChanged = (state, action) =>
  updated(state, { activeClient: action.activeClient ?? undefined });

/**
 * @param {SessionState} state
 * @param {ActiveClientToolsChanged} action
 */
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
