// Which requests make one form.

/** @import { Session } from "../client/session.js" */
/** @import { InputRequest } from "../client/types.d.ts" */

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
  /** @type {Map<string, InputRequest[]>} */
  const groups = new Map();
  for (const request of requests) {
    const key = keyOf(request);
    groups.set(key, [...(groups.get(key) ?? []), request]);
  }
  return [...groups].map(([key, members]) => ({ key, requests: members }));
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
export function isSameShape(before, after) {
  return (
    before.requests.length === after.requests.length &&
    after.requests.every((request, index) => isSameRequest(before.requests[index], request))
  );
}

/** @param {InputRequest | undefined} a @param {InputRequest} b */
function isSameRequest(a, b) {
  if (a?.id !== b.id || a.message !== b.message || a.url !== b.url) return false;
  return a.questions === b.questions || JSON.stringify(a.questions) === JSON.stringify(b.questions);
}
