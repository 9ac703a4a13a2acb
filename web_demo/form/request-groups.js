// Which requests make one form.

/** @import { Session } from "../client/session.js" */
/** @import { InputRequest } from "../client/types.d.ts" */
import { same } from "../client/reducers/updates.js";

/** @typedef {{ key: string, requests: readonly InputRequest[] }} Group */

/**
 * Open requests, and those that were completed here and are not confirmed yet.
 * @param {Session} session
 * @returns {readonly InputRequest[]}
 */
export function shownRequests({ state, confirmed, completions }) {
  const open = state?.inputRequests ?? [];
  if (completions.length === 0) return open;
  const isWaiting = new Set(completions.map(({ requestId }) => requestId));
  return (confirmed?.inputRequests ?? []).flatMap((request) => {
    const shown = open.find(({ id }) => id === request.id);
    return shown ?? (isWaiting.has(request.id) ? request : []);
  });
}

/**
 * Requests that belong to one round of one call make one form.
 * @param {readonly InputRequest[]} requests
 * @returns {Group[]}
 */
export function groupsOf(requests) {
  const keys = new Set(requests.map(keyOf));
  return [...keys].map((key) => ({ key, requests: requests.filter((each) => keyOf(each) === key) }));
}

/** @param {InputRequest} request */
export function keyOf({ id, _meta }) {
  const { call, round } = _meta ?? {};
  return call !== undefined && round !== undefined ? `call ${call} round ${round}` : id;
}

/**
 * Since when the asker of a request no longer waits for the answer.
 * @param {InputRequest} request
 */
export const goneSince = ({ _meta }) => _meta?.askerGoneSince;

/**
 * Whether the form need not be rebuilt; answers and deadlines may differ.
 * @param {Group} before
 * @param {Group} after
 */
export const isSameShape = (before, after) => same(shapeOf(before), shapeOf(after));

/** @param {Group} group */
const shapeOf = ({ requests }) =>
  requests.map(({ id, message, url, questions }) => ({ id, message, url, questions }));
