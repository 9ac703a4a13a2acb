/**
 * What the client needs from the browser: the address, storage, preferences and the page's
 * lifecycle. Works without them too, as in Node.
 */

/** @import { Host } from "./host.js" */
import { MemoryStorage } from "./storage.js";

/**
 * The address of the host's WebSocket, next to the page, and the token in the page's address. The
 * token is removed from the address bar, so that a screenshot or a copied link does not leak it.
 *
 * @param {{ url?: string, token?: string }} options
 * @returns {import("./connection/credential.js").Endpoint}
 */
export function endpointOf({ url, token }) {
  const here = new URL(globalThis.location?.href ?? "http://127.0.0.1:8737/");
  const address = new URL(url ?? "ahp", here);
  address.protocol = address.protocol.replace("http", "ws");
  address.hash = "";
  const given = token ?? address.searchParams.get("tkn");
  address.searchParams.delete("tkn");
  if (given) return { url: address.href, token: given };
  return { url: address.href, token: takeToken(here) ?? undefined, session: here.hash };
}

/**
 * A part of an address; what is not encoded well stays as it is.
 *
 * @param {string} part
 */
export function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** @param {URL} here */
function takeToken(here) {
  const token = here.searchParams.get("tkn");
  if (token !== null) {
    here.searchParams.delete("tkn");
    history.replaceState(history.state, "", here);
  }
  return token;
}

/** @returns {import("./storage.js").StorageArea} */
export function localArea() {
  try {
    return globalThis.localStorage ?? new MemoryStorage();
  } catch {
    return new MemoryStorage();
  }
}

export function tabArea() {
  try {
    return globalThis.sessionStorage;
  } catch {
    return undefined;
  }
}

/**
 * @param {Host} host
 * @returns {() => void} stops following
 */
export function followLifecycle(host) {
  if (typeof document === "undefined") return () => {};
  const gone = new AbortController();
  const { signal } = gone;
  addEventListener("online", () => host.retry(), { signal });
  addEventListener("offline", () => host.retry(), { signal });
  addEventListener("pagehide", () => host.hide(), { signal });
  addEventListener("pageshow", ({ persisted }) => persisted && host.show(), { signal });
  document.addEventListener("resume", () => host.retry(), { signal });
  document.addEventListener("visibilitychange", () => followVisibility(host), { signal });
  return () => gone.abort();
}

/** @param {Host} host */
function followVisibility(host) {
  const isHidden = document.visibilityState === "hidden";
  host.idle(isHidden);
  if (isHidden) host.flush();
  else host.retry();
}

// Preferences that are stored between visits; where storage is not allowed or full, until the page
// closes.

const PREFIX = "session-server.";
/** @type {Map<string, string | undefined>} */
const unsaved = new Map();

/** @param {string} key */
export function preference(key) {
  if (unsaved.has(key)) return unsaved.get(key);
  try {
    return localStorage.getItem(PREFIX + key) ?? undefined;
  } catch {
    return undefined;
  }
}

/** @param {string} key @param {string | undefined} value */
export function setPreference(key, value) {
  try {
    if (value === undefined) localStorage.removeItem(PREFIX + key);
    else localStorage.setItem(PREFIX + key, value);
    unsaved.delete(key);
  } catch {
    unsaved.set(key, value);
  }
}
