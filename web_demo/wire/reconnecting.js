/**
 * When to come back after a connection has ended, and when not to.
 */

import { WireError } from "./errors.js";

export const FIRST_DELAY = 100;
export const LONGEST_DELAY = 10_000;
/** A connection that lasted this long was a good one: the next delay is short again. */
export const STEADY = 5_000;

/** What the host closes with when a token was revoked or has expired. */
const NOT_ALLOWED = 4500;
/** The problem of a token that is wrong and came after too many others. */
const TOO_MANY_WRONG = "tooManyFailures";
const COME_BACK = new Set([1000, 1001, 1005, 1006, 1011, 1012, 1013, 1014, 1015]);

/** Delays that double up to a limit, each shortened by chance so that clients spread out. */
export class BackOff {
  #failures = 0;
  #chance;

  /** @param {() => number} [chance] */
  constructor(chance = Math.random) {
    this.#chance = chance;
  }

  /**
   * @param {number} lasted - for how many milliseconds the connection was there
   * @returns {number} milliseconds to wait
   */
  nextDelay(lasted) {
    if (lasted >= STEADY) this.#failures = 0;
    const longest = Math.min(LONGEST_DELAY, FIRST_DELAY * 2 ** this.#failures);
    this.#failures = Math.min(this.#failures + 1, 32);
    return longest * (0.5 + 0.5 * this.#chance());
  }

  reset() {
    this.#failures = 0;
  }
}

/**
 * The error to give up with, or nothing where coming back may help.
 *
 * @param {number} code
 * @param {string} reason
 * @returns {WireError | undefined}
 */
export function finalError(code, reason) {
  if (COME_BACK.has(code) || (code >= 4000 && code < 4500)) return undefined;
  const kind = code === NOT_ALLOWED ? "turnedAway" : "gaveUp";
  return new WireError(kind, `The host closed the connection: ${reason || `code ${code}`}.`);
}

/**
 * Why the host does not let us in. A browser does not tell how an upgrade was answered, so the
 * same credential knocks at an ordinary door, whose answer it does show.
 *
 * @param {string} url - of the WebSocket
 * @param {string} [token]
 * @param {(url: URL, options: RequestInit) => Promise<Response>} [ask]
 * @returns {Promise<WireError | undefined>} nothing where coming back may help
 */
export async function reasonAt(url, token, ask = fetch) {
  const door = new URL(url.replace(/^ws/, "http"));
  door.pathname = door.pathname.replace(/\/ahp$/, "/v1/sessions");
  door.searchParams.set("limit", "1");
  try {
    const answer = await ask(door, { headers: token ? { Authorization: `Bearer ${token}` } : {} });
    if (![401, 403, 429].includes(answer.status)) return undefined;
    const problem = await answer.json().catch(() => ({}));
    if (answer.status === 429 && problem.code !== TOO_MANY_WRONG) return undefined;
    const kind = answer.status === 403 ? "gaveUp" : "turnedAway";
    return new WireError(kind, problem.detail ?? "The host does not let us in.");
  } catch {
    return undefined;
  }
}
