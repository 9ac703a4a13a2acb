/**
 * How one field's answers travel: at a human pace, one at a time, the last one always.
 */

/** @import {Answer} from "./types.d.ts" */
/** @import {WireError} from "./errors.js" */
import { same } from "./reducers/updates.js";

/** At most four drafts a second; the first one waits for a moment's worth of typing. */
export const PACE = 250;
const MOMENT = 60;
/** Refusals that may pass by themselves are met with one more try, after this long. */
const SECOND_TRY = 1_000;
const PASSING = new Set(["limit", "notSaved", "inDoubt"]);
/** How many answers of unknown fate are remembered. */
const UNCERTAIN = 8;
const NO_VERDICT = new Set(["lost", "closed", "gone"]);

/**
 * What the field says about its sending.
 *
 * @typedef {object} Sender
 * @property {() => boolean} isReady - there is something to send, and nothing in the way
 * @property {() => Answer | undefined} answer
 * @property {(answer: Answer | undefined, failed: (error: WireError) => void) => number} send
 * @property {() => void} sent - it is under way now
 * @property {(error: WireError) => void} refused
 */

export class Sending {
  #sender;
  /** @type {Map<number, Answer | undefined>} by number, in the order of sending */ #inFlight = new Map();
  /** @type {(Answer | undefined)[]} sent on a connection that broke */ #uncertain = [];
  #sentAt = 0;
  #hasTriedAgain = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #timer;

  /** @param {Sender} sender */
  constructor(sender) {
    this.#sender = sender;
  }

  get isUnderWay() {
    return this.#inFlight.size > 0;
  }

  /** When it is time, if it is not under way already. */
  soon() {
    if (this.#timer || this.isUnderWay || !this.#sender.isReady()) return;
    const delay = Math.max(MOMENT, this.#sentAt + PACE - Date.now());
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (this.#sender.isReady()) this.#send();
    }, delay);
  }

  now() {
    this.stop();
    if (!this.#sender.isReady()) return;
    if (!this.isUnderWay || !same([...this.#inFlight.values()].at(-1), this.#sender.answer())) {
      this.#send();
    }
  }

  stop() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Something new is to be sent, so what was said of the old no longer counts. */
  renew() {
    this.#hasTriedAgain = false;
  }

  /** The connection is there again, and what was missed has been told. */
  live() {
    this.#uncertain = [];
  }

  /**
   * Our own action came back; of an older one than the last it says nothing new.
   *
   * @param {number} seq
   * @returns {boolean} whether it was the last
   */
  arrived(seq) {
    this.#inFlight.delete(seq);
    return !this.isUnderWay;
  }

  /**
   * Whether the host may have this from us, although the connection broke before it could say so.
   *
   * @param {Answer | undefined} answer
   */
  mayHaveArrived(answer) {
    return this.#uncertain.some((sent) => same(sent, answer));
  }

  /** Answers that were sent and of which the host has not said anything. */
  get unconfirmed() {
    return [...this.#uncertain, ...this.#inFlight.values()];
  }

  /** @param {readonly (Answer | undefined)[]} answers - sent before, maybe by another page */
  mayHaveSent(answers) {
    this.#uncertain = [...this.#uncertain, ...answers].slice(-UNCERTAIN);
  }

  #send() {
    const answer = this.#sender.answer();
    this.#sentAt = Date.now();
    const seq = this.#sender.send(answer, (error) => this.#failed(seq, answer, error));
    this.#inFlight.set(seq, answer);
    this.#sender.sent();
  }

  /**
   * @param {number} seq
   * @param {Answer | undefined} answer
   * @param {WireError} error
   */
  #failed(seq, answer, error) {
    if (error.code === "lost") this.mayHaveSent([answer]);
    this.#inFlight.delete(seq);
    if (this.isUnderWay) return; // the last one has the last word
    if (NO_VERDICT.has(error.code)) return;
    if (!same(answer, this.#sender.answer())) this.soon();
    else if (PASSING.has(error.refusal ?? "") && !this.#hasTriedAgain) this.#tryAgain();
    else this.#sender.refused(error);
  }

  #tryAgain() {
    this.#hasTriedAgain = true;
    this.#sentAt = Date.now() + SECOND_TRY - PACE;
    this.soon();
  }
}
