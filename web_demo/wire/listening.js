/**
 * Whether the host is still there: it is asked after a silence, sooner when we have spoken and
 * nothing came back, and whenever the page wakes up. Who does not answer in time is dead.
 */

/** @import {Protocol} from "./protocol.js" */
import { ROOT } from "./channels.js";

const HANDSHAKE = 10_000;
/** Without a word from the host for this long, it is asked whether it is there. */
const QUIET = 20_000;
/** And for this long, if something was said to it. */
const UNANSWERED = 5_000;
const PATIENCE = 8_000;
/** A page that was asleep, or a network that has changed: the connection is likely to be dead. */
const WAKING = 3_000;
/** A timer that fires this late was held up with everything else: that the host is silent proves nothing. */
const HELD_UP = 2_000;
/** How often that is looked for. */
const STEP = 4_000;

export class Listening {
  #protocol;
  #isDead;
  #quiet;
  #patience;
  #heardAt = 0;
  /** @type {number | undefined} when the first thing was said that nothing was heard after */
  #spokeAt;
  #isAsking = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #timer;

  /**
   * @param {Protocol} protocol
   * @param {() => void} isDead
   * @param {{ quiet?: number, patience?: number }} options
   */
  constructor(protocol, isDead, { quiet = QUIET, patience = PATIENCE }) {
    this.#protocol = protocol;
    this.#isDead = isDead;
    this.#quiet = quiet;
    this.#patience = patience;
  }

  /** A socket is being opened. */
  begin() {
    this.#isAsking = false;
    this.#spokeAt = undefined;
    this.#watch(HANDSHAKE);
  }

  rest() {
    clearTimeout(this.#timer);
    this.#isAsking = false;
  }

  heard() {
    this.#heardAt = Date.now();
    this.#spokeAt = undefined;
  }

  spoke() {
    if (this.#spokeAt !== undefined) return;
    this.#spokeAt = Date.now();
    if (this.#protocol.isLive && !this.#isAsking) this.listen();
  }

  /** Makes sure that the host is there now; what it said before may arrive at any time. */
  ask(patience = Math.min(WAKING, this.#patience)) {
    if (!this.#protocol.isLive || this.#isAsking) return;
    this.#isAsking = true;
    const answered = { resolve: () => this.listen(), reject: () => {} };
    this.#protocol.exchange.ask("ping", { channel: ROOT }, answered);
    this.#watch(patience);
  }

  /** Waits for a silence, and notices when it was asleep meanwhile. */
  listen() {
    clearTimeout(this.#timer);
    this.#isAsking = false;
    const step = Math.min(this.#left, STEP);
    const due = Date.now() + step;
    this.#timer = setTimeout(() => {
      if (Date.now() - due > HELD_UP) this.ask();
      else if (this.#left <= 0) this.ask(this.#patience);
      else this.listen();
    }, step);
  }

  get #left() {
    const isUnanswered = this.#spokeAt !== undefined;
    const quiet = isUnanswered ? Math.min(UNANSWERED, this.#quiet) : this.#quiet;
    const left = (this.#spokeAt ?? this.#heardAt) + quiet - Date.now();
    return Math.min(Math.max(0, left), quiet); // clocks are put right now and then
  }

  /** @param {number} patience */
  #watch(patience) {
    clearTimeout(this.#timer);
    const due = Date.now() + patience;
    this.#timer = setTimeout(() => {
      if (Date.now() - due > HELD_UP) this.#watch(patience);
      else this.#isDead();
    }, patience);
  }
}
