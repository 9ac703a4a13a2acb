/**
 * How a page stands with its host, in the words that people are shown.
 *
 * connecting     there was no connection yet
 * live           connected, and all that we did is confirmed
 * syncing        connected; something has not been confirmed for a while
 * reconnecting   the connection just broke
 * offline        the first try to come back failed; there are more to come
 * closed         over: left, or given up
 */

/** @import {Connection} from "./connection.js" */
/** @import {TokenProblem} from "./credential.js" */
/** @import {WireError} from "./errors.js" */
/** @import {Protocol} from "./protocol.js" */
import { Events } from "./events.js";
import { same } from "./reducers/updates.js";

/** @typedef {"connecting" | "live" | "syncing" | "reconnecting" | "offline" | "closed"} Phase */

/**
 * `waiting` is how many of our own edits the host has not confirmed. `token` is there when it is
 * closed for want of one: none was there to try, or what there was is refused.
 *
 * @typedef {{
 *   phase: Phase, waiting: number, words: string, error?: WireError, nextTryAt?: number,
 *   token?: TokenProblem,
 * }} Status
 */

/** What is confirmed sooner than this was never worth a word. */
const GRACE = 300;
const CLOSED = "disconnected";

/** @extends {Events<{ change: Status }>} */
export class Standing extends Events {
  #protocol;
  #connection;
  #count;
  #hasStarted = false;
  /** @type {number | undefined} since when something is waiting */ #since;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #timer;

  /**
   * @param {Protocol} protocol
   * @param {Connection} connection
   * @param {() => number} count
   */
  constructor(protocol, connection, count) {
    super();
    this.#protocol = protocol;
    this.#connection = connection;
    this.#count = count;
    /** @type {Status} */
    this.status = { phase: "connecting", waiting: 0, words: "connecting" };
    connection.on("change", () => {
      this.#hasStarted = true;
      this.look();
    });
    protocol.on("live", () => this.look());
    protocol.on("lost", () => this.look());
  }

  look() {
    clearTimeout(this.#timer);
    const waiting = this.#count();
    const phase = this.#phase(waiting);
    const { error, nextTryAt, credential } = this.#connection;
    const words = error && phase === "closed" ? error.message : spoken(phase, waiting);
    const token = phase === "closed" ? credential.problem : undefined;
    const status = { phase, waiting, words, error, nextTryAt, token };
    if (same(status, this.status)) return;
    this.status = status;
    this.emit("change", status);
  }

  /**
   * @param {number} waiting
   * @returns {Phase}
   */
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
    this.#timer = setTimeout(() => this.look(), left);
    return false;
  }
}

/**
 * @param {Phase} phase
 * @param {number} waiting
 */
function spoken(phase, waiting) {
  if (phase === "closed") return CLOSED;
  if (phase === "syncing") return `syncing ${waiting}`;
  return waiting && phase !== "live" ? `${phase}, ${waiting} waiting` : phase;
}
