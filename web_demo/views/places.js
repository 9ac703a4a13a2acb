// Addresses within the page: `#/` is the list, `#/s/<session>` a session, and below it `/q` its first
// waiting question or `/q/<request>/<question>` one of them.

const SCHEME = "ahp-session:/";
const WHOLE = /^[a-z][a-z0-9+.-]*:/i;

/** @typedef {{ session?: string, asks?: boolean, request?: string, question?: string }} Place */

/**
 * @param {string} hash
 * @returns {Place}
 */
export function placeOf(hash) {
  const [kind, session, asks, request, question] = hash
    .replace(/^#\/?/, "")
    .split("/")
    .map(decoded);
  if (kind !== "s" || !session) return {};
  /** @type {Place} */
  const place = { session: WHOLE.test(session) ? session : SCHEME + session };
  if (asks === "q") place.asks = true;
  if (asks === "q" && request) place.request = request;
  if (asks === "q" && question) place.question = question;
  return place;
}

/**
 * @param {string} session
 * @param {string} [request]
 * @param {string} [question]
 */
export function placeHash(session, request, question) {
  const parts = ["#", "s", encodeURIComponent(idOf(session))];
  if (request !== undefined) parts.push("q", encodeURIComponent(request));
  if (question !== undefined) parts.push(encodeURIComponent(question));
  return parts.join("/");
}

/** @param {string} session */
export function waitingHash(session) {
  return `${placeHash(session)}/q`;
}

/**
 * Goes there, also when one is there already: what waits has the focus again.
 * @param {string} hash
 */
export function goTo(hash) {
  if (location.hash === hash) dispatchEvent(new HashChangeEvent("hashchange"));
  else location.hash = hash;
}

/**
 * How HTTP names a session: by its path, or else by its whole address.
 * @param {string} session
 */
export function idOf(session) {
  const path = session.startsWith(SCHEME) ? session.slice(SCHEME.length) : session;
  return WHOLE.test(path) ? session : path;
}

/** @param {string} part */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
