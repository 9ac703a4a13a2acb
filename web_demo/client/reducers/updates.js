/** Immutable updates of a state, and its status bits. */

/** @import { SessionState } from "../types.d.ts" */

/**
 * Whether two JSON values are the same; a key that is `undefined` counts as absent.
 *
 * @param {any} old
 * @param {any} now
 * @returns {boolean}
 */
export function same(old, now) {
  if (old === now) return true;
  if (!old || !now || typeof old !== "object" || typeof now !== "object") return false;
  if (Array.isArray(old) || Array.isArray(now)) return sameItems(old, now);
  const names = Object.keys(old).filter((name) => old[name] !== undefined);
  const others = Object.keys(now).filter((name) => now[name] !== undefined);
  return (
    names.length === others.length &&
    names.every((name) => Object.hasOwn(now, name) && same(old[name], now[name]))
  );
}

/** @param {any} old @param {any} now */
function sameItems(old, now) {
  if (!Array.isArray(old) || !Array.isArray(now) || old.length !== now.length) return false;
  return old.every((item, index) => same(item, now[index]));
}

/**
 * `value` with these fields, or the same object if nothing differs. `undefined` removes a field.
 *
 * @template {object} T
 * @param {T} value
 * @param {Partial<T>} changes
 * @returns {T}
 */
export function updated(value, changes) {
  const names = /** @type {(keyof T)[]} */ (Object.keys(changes));
  return names.every((name) => same(value[name], changes[name]))
    ? value
    : withoutUndefined({ ...value, ...changes });
}

/**
 * The same object, from which keys that are `undefined` are removed: a state never has them.
 *
 * @template {object} T
 * @param {T} value
 * @returns {T}
 */
export function withoutUndefined(value) {
  for (const [name, field] of Object.entries(value)) {
    if (field === undefined) delete value[/** @type {keyof T} */ (name)];
  }
  return value;
}

/**
 * The list, or `undefined` if it is empty.
 *
 * @template T
 * @param {readonly T[]} list
 * @returns {readonly T[] | undefined}
 */
export const filled = (list) => (list.length ? list : undefined);

// A session's status, derived from its state.
//
// Activity bits follow from what is open; the read and archived bits are set by people.
// Arithmetic instead of bit operators, which would truncate to 32 bits.

export const IDLE = 1;
export const ERROR = 2;
export const IN_PROGRESS = 8;
export const INPUT_NEEDED = 24;
export const IS_READ = 32;
export const IS_ARCHIVED = 64;

const ACTIVITIES = 32;

/** @param {number} status */
export const activityBits = (status) => status % ACTIVITIES;

/** @param {number} status @param {number} flag */
export const hasMark = (status, flag) => Math.floor(status / flag) % 2 === 1;

/** @param {SessionState} state */
function awaitsConfirmation(state) {
  return (state.activeTurn?.responseParts ?? []).some(
    (part) =>
      part.kind === "toolCall" &&
      (part.toolCall.status === "pending-confirmation" ||
        part.toolCall.status === "pending-result-confirmation"),
  );
}

/** @param {SessionState} state */
function activity(state) {
  if (state.inputRequests?.length || awaitsConfirmation(state)) return INPUT_NEEDED;
  return state.activeTurn ? IN_PROGRESS : IDLE;
}

/**
 * Brings the activity bits up to date with the rest of the state.
 *
 * @param {SessionState} state
 */
export const withStatus = (state) => withActivity(state, activity(state));

/** @param {SessionState} state */
export const withErrorStatus = (state) => withActivity(state, ERROR);

/**
 * Sets or clears the read or archived bit.
 *
 * @param {SessionState} state
 * @param {number} flag
 * @param {boolean} on
 */
export function marked(state, flag, on) {
  const { status } = state.summary;
  if (hasMark(status, flag) === on) return state;
  return withSummary(state, { status: on ? status + flag : status - flag });
}

/** @param {SessionState} state @param {number} at */
export const touched = (state, at) => withSummary(state, { modifiedAt: at });

/** @param {SessionState} state @param {Partial<SessionState["summary"]>} changes */
export const withSummary = (state, changes) =>
  updated(state, { summary: updated(state.summary, changes) });

/** @param {SessionState} state @param {number} bits */
function withActivity(state, bits) {
  const { status } = state.summary;
  return withSummary(state, { status: status - activityBits(status) + bits });
}
