/** When one field's draft is sent to the host, and when it is saved in the browser. */

/** @import { ClientError } from "./errors.js" */
/** @import { BrowserStorage, StoredText } from "./storage.js" */
/** @import { Answer, Author, Question, Value } from "./types.d.ts" */
import { same } from "./reducers/updates.js";

/** At most four drafts a second; the first one waits a moment for more typing. */
export const SEND_INTERVAL = 250;
const FIRST_DELAY = 60;
/** Often enough that a crash loses next to nothing. */
const SAVE_INTERVAL = 250;
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

/** Throttled: one answer at a time, and always the last one. */
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

  soon() {
    if (this.#timer || this.isSending || !this.#draft.canSend()) return;
    const delay = Math.max(FIRST_DELAY, this.#sentAt + SEND_INTERVAL - Date.now());
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (this.#draft.canSend()) this.#send();
    }, delay);
  }

  now() {
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
    this.soon();
  }
}

/**
 * `base`: what the host had when this was begun; `sent`: what it may have of it.
 *
 * @typedef {{ answer?: Answer, base?: Answer, sent: readonly (Answer | null)[] }} UnsentDraft
 */

/** A field's entries in the browser's storage: its unsent draft, and an earlier text to offer. */
export class DraftSaver {
  /** @type {StoredText | undefined} typed for the same question before, and not included */ text;
  #storage;
  #name;
  #question;
  #unsent;
  #savedAt = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #timer;

  /**
   * @param {BrowserStorage} storage
   * @param {{ session: string, requestId: string, questionId: string }} name
   * @param {() => Question | undefined} question
   * @param {() => UnsentDraft | undefined} unsent - what is to be saved now, if anything
   */
  constructor(storage, name, question, unsent) {
    this.#storage = storage;
    this.#name = name;
    this.#question = question;
    this.#unsent = unsent;
  }

  soon() {
    if (this.#timer) return;
    const delay = this.#savedAt + SAVE_INTERVAL - Date.now();
    if (delay <= 0) this.now();
    else this.#timer = setTimeout(() => this.now(), delay);
  }

  now() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const unsent = this.#unsent();
    if (!unsent) {
      this.#storage.dropDraft(this.#name);
      return;
    }
    this.#savedAt = Date.now();
    const { kind, message } = this.#question() ?? {};
    this.#storage.putDraft({ ...this.#name, ...unsent, at: this.#savedAt, kind, message });
  }

  /** Looks for an earlier text again: the question may have changed. */
  findText() {
    const question = this.#question();
    this.text = question && this.#storage.textFor(this.#name.session, question);
  }

  /**
   * @param {Value} value
   * @param {Author} [by] - who replaced it
   */
  putText(value, by) {
    const question = this.#question();
    if (!question) return;
    const { id: questionId, kind, message } = question;
    const { session, requestId } = this.#name;
    this.#storage.putText({
      session, at: Date.now(), requestId, questionId, kind, message, value, by,
    });
    this.findText();
  }

  dropText() {
    if (this.text) this.#storage.dropText(this.text);
    this.text = undefined;
  }
}
