// Addresses within the page: `#/` is the list, `#/s/<session>` a session, and below it `/q` its first
// waiting question or `/q/<request>/<question>` one of them.

import { decoded } from "../client/browser.js";

const SCHEME = "ahp-session:/";
const WHOLE = /^[a-z][a-z0-9+.-]*:/i;

/** @typedef {{ session?: string, asks?: boolean, request?: string, question?: string }} Route */

/** @param {string} hash @returns {Route} */
export function parseRoute(hash) {
  const [kind, session, asks, request, question] = hash
    .replace(/^#\/?/, "")
    .split("/")
    .map(decoded);
  if (kind !== "s" || !session) return {};
  /** @type {Route} */
  const route = { session: WHOLE.test(session) ? session : SCHEME + session };
  if (asks === "q") route.asks = true;
  if (asks === "q" && request) route.request = request;
  if (asks === "q" && question) route.question = question;
  return route;
}

/** @param {string} session @param {string} [request] @param {string} [question] */
export function sessionHash(session, request, question) {
  const parts = ["#", "s", encodeURIComponent(idOf(session))];
  if (request !== undefined) parts.push("q", encodeURIComponent(request));
  if (question !== undefined) parts.push(encodeURIComponent(question));
  return parts.join("/");
}

/** @param {string} session */
export function waitingHash(session) {
  return `${sessionHash(session)}/q`;
}

/**
 * Also if it is the current address: the waiting question gets the focus again.
 * @param {string} hash
 */
export function navigate(hash) {
  if (location.hash === hash) dispatchEvent(new HashChangeEvent("hashchange"));
  else location.hash = hash;
}

/**
 * The id of a session in the HTTP API: its path, or else its whole URI.
 * @param {string} session
 */
export function idOf(session) {
  const path = session.startsWith(SCHEME) ? session.slice(SCHEME.length) : session;
  return WHOLE.test(path) ? session : path;
}
