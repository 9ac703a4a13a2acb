/**
 * The state of the connection as it is shown, and the host's clock.
 *
 * connecting     not connected yet
 * live           connected, and everything that was done here is confirmed
 * syncing        connected; something is waiting to be confirmed
 * reconnecting   the connection was lost just now
 * offline        the first attempt to reconnect failed; more will follow
 * closed         stopped, or failed for good
 */

/** @import { Connection } from "./connection.js" */
/** @import { TokenProblem } from "./credential.js" */
/** @import { ClientError } from "../errors.js" */
/** @import { Protocol } from "./protocol.js" */
import { Events } from "../events.js";
import { same } from "../reducers/updates.js";

/** @typedef {"connecting" | "live" | "syncing" | "reconnecting" | "offline" | "closed"} Phase */

/**
 * `waiting` is how many of our own edits the host has not confirmed. `token` is set when it is
 * closed because a token is needed, or because the one there was is refused.
 *
 * @typedef {{
 *   phase: Phase, waiting: number, text: string, error?: ClientError, token?: TokenProblem,
 * }} Status
 */

/** What is confirmed sooner than this is not shown as waiting. */
const GRACE = 300;
const CLOSED = "disconnected";

/** @extends {Events<{ change: Status }>} */
export class ConnectionStatus extends Events {
  #protocol;
  #connection;
  #countWaiting;
  #hasStarted = false;
  /** @type {number | undefined} since when something is waiting */ #since;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #timer;

  /**
   * @param {Protocol} protocol
   * @param {Connection} connection
   * @param {() => number} countWaiting
   */
  constructor(protocol, connection, countWaiting) {
    super();
    this.#protocol = protocol;
    this.#connection = connection;
    this.#countWaiting = countWaiting;
    /** @type {Status} */
    this.status = { phase: "connecting", waiting: 0, text: "connecting" };
    connection.on("change", () => {
      this.#hasStarted = true;
      this.update();
    });
    protocol.on("live", () => this.update());
    protocol.on("lost", () => this.update());
  }

  update() {
    clearTimeout(this.#timer);
    const waiting = this.#countWaiting();
    const phase = this.#phase(waiting);
    const { error, credential } = this.#connection;
    const text = error && phase === "closed" ? error.message : textOf(phase, waiting);
    const token = phase === "closed" ? credential.problem : undefined;
    const status = { phase, waiting, text, error, token };
    if (same(status, this.status)) return;
    // While it is live the count is not shown, and it changes with every draft.
    const isShown = phase !== "live" || this.status.phase !== "live";
    this.status = status;
    if (isShown) this.emit("change", status);
  }

  /** @param {number} waiting @returns {Phase} */
  #phase(waiting) {
    if (this.#protocol.isLive) return this.#isLate(waiting) ? "syncing" : "live";
    this.#since = undefined;
    if (this.#hasStarted && !this.#connection.isWanted) return "closed";
    if (this.#connection.failures > 1) return "offline";
    return this.#protocol.isKnown ? "reconnecting" : "connecting";
  }

  /** @param {number} waiting */
  #isLate(waiting) {
    if (!waiting) {
      this.#since = undefined;
      return false;
    }
    this.#since ??= Date.now();
    const left = this.#since + GRACE - Date.now();
    if (left <= 0) return true;
    this.#timer = setTimeout(() => this.update(), left);
    return false;
  }
}

/** @param {Phase} phase @param {number} waiting */
function textOf(phase, waiting) {
  if (phase === "closed") return CLOSED;
  if (phase === "syncing") return `syncing ${waiting}`;
  return waiting && phase !== "live" ? `${phase}, ${waiting} waiting` : phase;
}

// The host's time, which deadlines are in; the clock of this machine may be wrong.
//
// Every timestamp from the host is a little old when it arrives, so the one furthest ahead on a
// connection is the most accurate.

export class HostClock {
  #ahead = 0;
  #isStale = true;

  /** @returns {number} milliseconds since the epoch */
  now() {
    return Date.now() + this.#ahead;
  }

  /** The connection was lost: the offset is used until the next timestamp arrives. */
  lost() {
    this.#isStale = true;
  }

  /** @param {number | undefined} at - a timestamp from the host */
  update(at) {
    if (at === undefined || !Number.isFinite(at)) return;
    const ahead = at - Date.now();
    this.#ahead = this.#isStale ? ahead : Math.max(this.#ahead, ahead);
    this.#isStale = false;
  }
}

/**
 * The time from the host's HTTP `Date` header, to the second. Actions are more exact, but may be
 * rare.
 *
 * @param {string} url - of the WebSocket
 * @returns {Promise<number | undefined>}
 */
export async function timeAt(url) {
  const address = new URL(url.replace(/^ws/, "http"));
  address.pathname = address.pathname.replace(/\/ahp$/, "/healthz");
  address.search = "";
  try {
    const { headers } = await fetch(address, { cache: "no-store" });
    const date = Date.parse(headers.get("date") ?? "");
    return Number.isNaN(date) ? undefined : date;
  } catch {
    return undefined;
  }
}
