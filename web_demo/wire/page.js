/**
 * What the wire takes from the browser around it: the address, storage, and when the page comes,
 * goes or is looked at. Elsewhere, as in tests, there is none of it.
 */

/** @import {Host} from "./host.js" */
/** @import {Tab} from "./tab.js" */
import { MemoryStorage } from "./kept.js";

/**
 * Where the host speaks AHP: beside the page, with the page's token.
 *
 * @param {{ url?: string, token?: string }} options
 */
export function addressOf({ url, token }) {
  const here = globalThis.location?.href ?? "http://127.0.0.1:8737/";
  const address = new URL(url ?? "/ahp", here);
  address.protocol = address.protocol.replace("http", "ws");
  address.hash = "";
  const given = token ?? new URL(here).searchParams.get("tkn");
  if (given) address.searchParams.set("tkn", given);
  return address.href;
}

/**
 * Tells credentials apart in storage without being one.
 *
 * @param {string} url
 */
export function scopeOf(url) {
  let hash = 0x811c9dc5;
  for (const letter of new URL(url).searchParams.get("tkn") ?? "") {
    hash = Math.imul(hash ^ letter.charCodeAt(0), 0x01000193) >>> 0;
  }
  return hash.toString(36);
}

/** @returns {import("./kept.js").KeptStorage} */
export function localStorageOr() {
  try {
    return globalThis.localStorage ?? new MemoryStorage();
  } catch {
    return new MemoryStorage();
  }
}

export function tabStorage() {
  try {
    return globalThis.sessionStorage;
  } catch {
    return undefined;
  }
}

/**
 * @param {Host} host
 * @param {Tab} tab
 * @returns {() => void} stops following
 */
export function followPage(host, tab) {
  if (typeof document === "undefined") return () => {};
  const gone = new AbortController();
  const { signal } = gone;
  const listen = addEventListener.bind(globalThis);
  listen("online", () => host.retry(), { signal });
  listen("offline", () => host.retry(), { signal });
  listen("pagehide", () => {
    host.flush();
    tab.put();
  }, { signal });
  listen("pageshow", ({ persisted }) => {
    if (!persisted) return;
    tab.taken();
    host.retry();
  }, { signal });
  document.addEventListener("visibilitychange", () => {
    const isHidden = document.visibilityState === "hidden";
    host.idle(isHidden);
    if (isHidden) host.flush();
    else host.retry();
  }, { signal });
  return () => gone.abort();
}
