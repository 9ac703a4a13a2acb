// The order of sessions, the same wherever they are listed: what was touched last comes first.

/** @import { SessionSummary } from "../wire/types.d.ts" */

/**
 * @param {readonly SessionSummary[]} sessions
 * @returns {SessionSummary[]}
 */
export function latestFirst(sessions) {
  return sessions.toSorted(
    (a, b) => b.modifiedAt - a.modifiedAt || (a.resource < b.resource ? -1 : 1),
  );
}
