/**
 * What a session's status says: derived from the state, never set.
 *
 * The activity bits follow from what is open; the read and archived bits are people's and stay.
 * Arithmetic instead of bit operators, which would cut a number off at 32 bits.
 */

/** @import {SessionState} from "../types.d.ts" */
import { updated } from "./updates.js";

export const IDLE = 1;
export const ERROR = 2;
export const IN_PROGRESS = 8;
export const INPUT_NEEDED = 24;
export const IS_READ = 32;
export const IS_ARCHIVED = 64;

const ACTIVITIES = 32;

/** @param {number} status */
export const activityBits = (status) => status % ACTIVITIES;

/**
 * @param {number} status
 * @param {number} flag
 */
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
 * Sets or clears one of people's own marks.
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

/**
 * @param {SessionState} state
 * @param {number} at
 */
export const touched = (state, at) => withSummary(state, { modifiedAt: at });

/**
 * @param {SessionState} state
 * @param {Partial<SessionState["summary"]>} changes
 */
export const withSummary = (state, changes) =>
  updated(state, { summary: updated(state.summary, changes) });

/**
 * @param {SessionState} state
 * @param {number} bits
 */
function withActivity(state, bits) {
  const { status } = state.summary;
  return withSummary(state, { status: status - activityBits(status) + bits });
}
