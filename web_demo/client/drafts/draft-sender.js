/** When one field's draft is sent to the host. */

/** @import { ClientError } from "../errors.js" */
/** @import { Answer } from "../types.d.ts" */
import { same } from "../reducers/updates.js";

/** At most four drafts a second; the first one waits a moment for more typing. */
export const SEND_INTERVAL = 250;
const FIRST_DELAY = 60;
/** Refusals that may be temporary are retried once, after this long. */
const RETRY_DELAY = 1_000;
const TEMPORARY = new Set(["limit", "notSaved", "inDoubt"]);
const NO_VERDICT = new Set(["lost", "closed", "gone"]);
/** How many unconfirmed answers of earlier connections are remembered. */
const UNCERTAIN_LIMIT = 8;

/**
 * `canSend`: there is something to send, and nothing prevents it. `failed`: it was not delivered, and
 * may be sent again.
 *
 * @typedef {{
 *   canSend(): boolean, answer(): Answer | undefined,
 *   send(answer: Answer | undefined, failed: (error: ClientError) => void): number,
 *   sent(): void, failed(): void, refused(error: ClientError): void,
 * }} Draft
 */

/** Throttled: while somebody types, one answer is in flight at a time. The last one is always sent. */
export class DraftSender {
  #draft;
  /** @type {Map<number, Answer | undefined>} by sequence number, in the order of sending */
  #inFlight = new Map();
  /** @type {(Answer | undefined)[]} sent on a connection that broke */ #uncertain = [];
  #sentAt = 0;
  #hasRetried = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #timer;

  /** @param {Draft} draft */
  constructor(draft) {
    this.#draft = draft;
  }

  get isSending() {
    return this.#inFlight.size > 0;
  }

  /** In a moment; while an answer is in flight, not before this is called again after its confirmation. */
  sendSoon() {
    if (this.#timer || this.isSending || !this.#draft.canSend()) return;
    const delay = Math.max(FIRST_DELAY, this.#sentAt + SEND_INTERVAL - Date.now());
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (this.#draft.canSend()) this.#send();
    }, delay);
  }

  /** At once, also while an older answer is in flight. */
  sendNow() {
    this.stop();
    if (!this.#draft.canSend()) return;
    if (!this.isSending || !same([...this.#inFlight.values()].at(-1), this.#draft.answer())) {
      this.#send();
    }
  }

  stop() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** The answer is another one, so it may be retried again. */
  reset() {
    this.#hasRetried = false;
  }

  /** After a reconnect and its replay, nothing is uncertain any more. */
  reconnected() {
    this.#uncertain = [];
  }

  /** @param {number} seq - of our own action, which came back */
  confirmed(seq) {
    this.#inFlight.delete(seq);
  }

  /**
   * Whether the host may have this from us, although the connection broke before it could confirm it.
   *
   * @param {Answer | undefined} answer
   */
  mayHaveSent(answer) {
    return this.#uncertain.some((sent) => same(sent, answer));
  }

  /** Answers that were sent and never confirmed. */
  get unconfirmed() {
    return [...this.#uncertain, ...this.#inFlight.values()];
  }

  /** @param {readonly (Answer | undefined)[]} answers - sent before, maybe by another page */
  addUncertain(answers) {
    this.#uncertain = [...this.#uncertain, ...answers].slice(-UNCERTAIN_LIMIT);
  }

  #send() {
    const answer = this.#draft.answer();
    this.#sentAt = Date.now();
    const seq = this.#draft.send(answer, (error) => this.#failed(seq, answer, error));
    this.#inFlight.set(seq, answer);
    this.#draft.sent();
  }

  /** @param {number} seq @param {Answer | undefined} answer @param {ClientError} error */
  #failed(seq, answer, error) {
    if (error.code === "lost") this.addUncertain([answer]);
    this.#inFlight.delete(seq);
    const isCurrent = !this.isSending && same(answer, this.#draft.answer());
    const isTemporary = TEMPORARY.has(error.refusal ?? "") && !this.#hasRetried;
    if (isCurrent && !isTemporary && !NO_VERDICT.has(error.code)) {
      this.#draft.refused(error);
      return;
    }
    this.#draft.failed();
    if (NO_VERDICT.has(error.code)) return;
    if (isCurrent) {
      this.#hasRetried = true;
      this.#sentAt = Date.now() + RETRY_DELAY - SEND_INTERVAL;
    }
    this.sendSoon();
  }
}
