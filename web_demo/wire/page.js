/**
 * What the wire takes from the browser around it: the address, storage, and when the page comes,
 * goes or is looked at. Elsewhere, as in tests, there is none of it.
 */

/** @import {Host} from "./host.js" */
import { MemoryStorage } from "./kept.js";

/**
 * Where the host speaks AHP: beside the page, with the token of the page's address. That leaves the
 * address, so that neither a screenshot nor a copied address gives it away.
 *
 * @param {{ url?: string, token?: string }} options
 * @returns {import("./credential.js").Door}
 */
export function doorOf({ url, token }) {
  const here = new URL(globalThis.location?.href ?? "http://127.0.0.1:8737/");
  const address = new URL(url ?? "ahp", here);
  address.protocol = address.protocol.replace("http", "ws");
  address.hash = "";
  const given = token ?? address.searchParams.get("tkn");
  address.searchParams.delete("tkn");
  if (given) return { url: address.href, token: given };
  return { url: address.href, token: takenFrom(here) ?? undefined, session: here.hash };
}

/** @param {URL} here */
function takenFrom(here) {
  const token = here.searchParams.get("tkn");
  if (token !== null) {
    here.searchParams.delete("tkn");
    history.replaceState(history.state, "", here);
  }
  return token;
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
 * @returns {() => void} stops following
 */
export function followPage(host) {
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
