/**
 * Reconnecting: backoff, which close codes are final, and the keepalive that detects dead
 * connections.
 */

/** @import { Protocol } from "./protocol.js" */
import { ClientError } from "../errors.js";
import { ROOT } from "./subscriptions.js";

export const FIRST_DELAY = 100;
export const LONGEST_DELAY = 10_000;
/** After a connection that lasted this long, the backoff starts again. */
export const STABLE = 5_000;

/** The close code for a token that was revoked or has expired. */
const NOT_ALLOWED = 4500;
/** The error code for too many wrong tokens. */
const TOO_MANY_FAILURES = "tooManyFailures";
const RECONNECT = new Set([1000, 1001, 1005, 1006, 1011, 1012, 1013, 1014, 1015]);

/** Exponential backoff with jitter, so that clients do not reconnect all at once. */
export class Backoff {
  #failures = 0;
  #random;

  /** @param {() => number} [random] */
  constructor(random = Math.random) {
    this.#random = random;
  }

  /**
   * @param {number} lasted - how long the connection lasted, in milliseconds
   * @returns {number} milliseconds to wait
   */
  nextDelay(lasted) {
    if (lasted >= STABLE) this.#failures = 0;
    const longest = Math.min(LONGEST_DELAY, FIRST_DELAY * 2 ** this.#failures);
    this.#failures = Math.min(this.#failures + 1, 32);
    return longest * (0.5 + 0.5 * this.#random());
  }

  reset() {
    this.#failures = 0;
  }
}

/**
 * The error to stop with, or `undefined` if reconnecting may help.
 *
 * @param {number} code
 * @param {string} reason
 * @returns {ClientError | undefined}
 */
export function finalError(code, reason) {
  if (RECONNECT.has(code) || (code >= 4000 && code < 4500)) return undefined;
  const kind = code === NOT_ALLOWED ? "unauthorized" : "fatal";
  return new ClientError(kind, `The host closed the connection: ${reason || `code ${code}`}.`);
}

/**
 * Why the host refuses us. A browser does not show the response to a failed upgrade, so the same
 * token is tried on an HTTP endpoint, whose response can be read.
 *
 * @param {string} url - of the WebSocket
 * @param {string} [token]
 * @param {(url: URL, options: RequestInit) => Promise<Response>} [ask]
 * @returns {Promise<ClientError | undefined>} `undefined` if reconnecting may help
 */
export async function refusalReason(url, token, ask = fetch) {
  const address = new URL(url.replace(/^ws/, "http"));
  address.pathname = address.pathname.replace(/\/ahp$/, "/v1/sessions");
  address.searchParams.set("limit", "1");
  try {
    const answer = await ask(address, { headers: token ? { Authorization: `Bearer ${token}` } : {} });
    if (![401, 403, 429].includes(answer.status)) return undefined;
    const problem = await answer.json().catch(() => ({}));
    if (answer.status === 429 && problem.code !== TOO_MANY_FAILURES) return undefined;
    const kind = answer.status === 403 ? "fatal" : "unauthorized";
    return new ClientError(kind, problem.detail ?? "The host refused the connection.");
  } catch {
    return undefined;
  }
}

// Detects a dead connection: pings after a silence, sooner when something was sent and nothing came
// back, and whenever the page wakes up. No response in time means that the connection is dead.

const HANDSHAKE_TIMEOUT = 10_000;
/** After this long without a frame from the host, it is pinged. */
const QUIET = 20_000;
/** And after this long, if something was sent to it. */
const UNANSWERED = 5_000;
const PING_TIMEOUT = 8_000;
/** After a suspended page or a changed network, the connection is probably dead. */
const WAKE_TIMEOUT = 3_000;
/** A timer this late means that the page was suspended: then silence proves nothing. */
const SUSPENDED = 2_000;
/** How often that is checked. */
const CHECK_INTERVAL = 4_000;

export class Keepalive {
  #protocol;
  #onDead;
  #quiet;
  #timeout;
  #receivedAt = 0;
  /** @type {number | undefined} when the first frame was sent after the last one received */
  #sentAt;
  #isPinging = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #timer;

  /**
   * @param {Protocol} protocol
   * @param {() => void} onDead
   * @param {{ quiet?: number, timeout?: number }} options
   */
  constructor(protocol, onDead, { quiet = QUIET, timeout = PING_TIMEOUT }) {
    this.#protocol = protocol;
    this.#onDead = onDead;
    this.#quiet = quiet;
    this.#timeout = timeout;
  }

  /** A socket is being opened. */
  start() {
    this.#isPinging = false;
    this.#sentAt = undefined;
    this.#watch(HANDSHAKE_TIMEOUT);
  }

  stop() {
    clearTimeout(this.#timer);
    this.#isPinging = false;
  }

  received() {
    this.#receivedAt = Date.now();
    this.#sentAt = undefined;
  }

  sent() {
    if (this.#sentAt !== undefined) return;
    this.#sentAt = Date.now();
    if (this.#protocol.isLive && !this.#isPinging) this.wait();
  }

  /** Older frames may still arrive at any time, so only the response to a ping counts. */
  ping(timeout = Math.min(WAKE_TIMEOUT, this.#timeout)) {
    if (!this.#protocol.isLive || this.#isPinging) return;
    this.#isPinging = true;
    const callbacks = { resolve: () => this.wait(), reject: () => {} };
    this.#protocol.rpc.request("ping", { channel: ROOT }, callbacks);
    this.#watch(timeout);
  }

  /** Waits for a silence, and notices when the page was suspended. */
  wait() {
    clearTimeout(this.#timer);
    this.#isPinging = false;
    const step = Math.min(this.#remaining, CHECK_INTERVAL);
    const due = Date.now() + step;
    this.#timer = setTimeout(() => {
      if (Date.now() - due > SUSPENDED) this.ping();
      else if (this.#remaining <= 0) this.ping(this.#timeout);
      else this.wait();
    }, step);
  }

  get #remaining() {
    const isUnanswered = this.#sentAt !== undefined;
    const quiet = isUnanswered ? Math.min(UNANSWERED, this.#quiet) : this.#quiet;
    const left = (this.#sentAt ?? this.#receivedAt) + quiet - Date.now();
    return Math.min(Math.max(0, left), quiet); // the system clock may be adjusted
  }

  /** @param {number} timeout */
  #watch(timeout) {
    clearTimeout(this.#timer);
    const due = Date.now() + timeout;
    this.#timer = setTimeout(() => {
      if (Date.now() - due > SUSPENDED) this.#watch(timeout);
      else this.#onDead();
    }, timeout);
  }
}
