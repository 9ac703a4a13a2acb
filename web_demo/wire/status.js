/**
 * What the bits of a session's status mean.
 */

/** @import {SessionSummary} from "./types.d.ts" */
import {
  activityBits,
  ERROR,
  hasMark,
  IN_PROGRESS,
  INPUT_NEEDED,
  IS_ARCHIVED,
  IS_READ,
} from "./reducers/status.js";

/** @param {number} status */
export const isRead = (status) => hasMark(status, IS_READ);

/** @param {number} status */
export const isArchived = (status) => hasMark(status, IS_ARCHIVED);

/**
 * Out of sight. An archived session with open questions is not: somebody may wait for the answers.
 * @param {number} status
 */
export const isHidden = (status) => isArchived(status) && activityOf(status) !== "input-needed";

/**
 * Whether nobody waits for the answers that are open in it any more.
 * @param {SessionSummary} summary
 */
export const isLeft = (summary) => summary._meta?.askersGone === true;

/**
 * @param {number} status
 * @returns {"idle" | "error" | "running" | "input-needed"}
 */
export function activityOf(status) {
  const bits = activityBits(status);
  if (bits >= INPUT_NEEDED) return "input-needed";
  if (bits >= IN_PROGRESS) return "running";
  return hasMark(bits, ERROR) ? "error" : "idle";
}
