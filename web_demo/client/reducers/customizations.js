/** Transitions of a session's customizations: plugins, directories, MCP servers. */

/**
 * @import {
 *   ChildCustomization, Customization, CustomizationRemoved, CustomizationToggled,
 *   CustomizationUpdated, McpServerStateChanged, SessionState,
 * } from "../types.d.ts"
 */
import { same, updated } from "./updates.js";

/** @param {SessionState} state @param {CustomizationToggled} action */
export const customizationToggled = (state, action) =>
  withEntry(state, action.id, (entry) => updated(entry, { enabled: action.enabled }));

/** @param {SessionState} state @param {CustomizationUpdated} action */
export function customizationUpdated(state, { customization }) {
  const entries = state.customizations ?? [];
  if (!entries.some(isNamed(customization.id))) {
    return updated(state, { customizations: [...entries, customization] });
  }
  return withEntry(state, customization.id, () => customization);
}

/**
 * Removes a top-level entry with all it holds, or else the child of that id.
 *
 * @param {SessionState} state
 * @param {CustomizationRemoved} action
 */
export function customizationRemoved(state, { id }) {
  const entries = state.customizations ?? [];
  const rest = withoutFirst(entries, id);
  if (rest !== entries) return updated(state, { customizations: rest });
  return withChildren(state, (children) => withoutFirst(children, id));
}

/**
 * `channel` is replaced too: leaving it out clears it.
 *
 * @param {SessionState} state
 * @param {McpServerStateChanged} action
 */
export function mcpServerStateChanged(state, action) {
  /**
   * @template {Customization | ChildCustomization} E
   * @param {E} entry
   * @returns {E}
   */
  const changed = (entry) =>
    entry.type === "mcpServer"
      ? updated(entry, /** @type {any} */ ({ state: action.state, channel: action.channel }))
      : entry;
  const isIt = isNamed(action.id);
  if (state.customizations?.some(isIt)) return withEntry(state, action.id, changed);
  return withChildren(state, (children) => {
    const index = children.findIndex(isIt);
    const child = children[index];
    return child ? children.with(index, changed(child)) : children;
  });
}

/**
 * Entries of unknown kinds may have any id, or none.
 *
 * @param {string | undefined} id
 * @returns {(entry: Customization | ChildCustomization) => boolean}
 */
const isNamed = (id) => (entry) => same(entry.id ?? undefined, id ?? undefined);

/**
 * @template {Customization | ChildCustomization} E
 * @param {readonly E[]} entries
 * @param {string} id
 * @returns {readonly E[]}
 */
function withoutFirst(entries, id) {
  const index = entries.findIndex(isNamed(id));
  return index < 0 ? entries : entries.toSpliced(index, 1);
}

/**
 * Changes the first entry of that id.
 *
 * @param {SessionState} state
 * @param {string} id
 * @param {(entry: Customization) => Customization} change
 */
function withEntry(state, id, change) {
  const entries = state.customizations ?? [];
  const index = entries.findIndex(isNamed(id));
  const entry = entries[index];
  return entry ? updated(state, { customizations: entries.with(index, change(entry)) }) : state;
}

/**
 * @param {SessionState} state
 * @param {(children: readonly ChildCustomization[]) => readonly ChildCustomization[]} change
 */
function withChildren(state, change) {
  const customizations = state.customizations?.map((entry) =>
    (entry.type === "plugin" || entry.type === "directory") && entry.children
      ? updated(entry, { children: change(entry.children) })
      : entry,
  );
  return updated(state, { customizations });
}
