/**
 * One question on this page: what its field shows, what the host has, and how the two meet.
 *
 * Typing is local at once and goes out as a draft at a human pace, the last value always. What
 * somebody else writes replaces what is shown only while that is what both sides had last and
 * nobody types here; otherwise both are kept, and nothing more is sent until somebody chooses.
 * What the host has not confirmed outlives the page. Above it stand views; below it the session.
 */

/** @import {Action, Answer, Author, Question, Value} from "./types.d.ts" */
/** @import {Kept, KeptDraft, KeptText} from "./kept.js" */
import { bare } from "./echoes.js";
import { WireError } from "./errors.js";
import { Events } from "./events.js";
import { present, same } from "./reducers/updates.js";

/** At most four drafts a second; the first one waits for a moment's worth of typing. */
export const PACE = 250;
const MOMENT = 60;
/** Refusals that may pass by themselves are met with one more try, after this long. */
const SECOND_TRY = 1_000;
const PASSING = new Set(["limit", "notSaved"]);

/**
 * What a field needs of its session.
 *
 * @typedef {object} Desk
 * @property {string} uri
 * @property {boolean} isLive
 * @property {Kept} kept
 * @property {(requestId: string, questionId: string) => Question | undefined} question
 * @property {(field: Field) => boolean} isFocused
 * @property {(action: Action, failed: (error: WireError) => void) => number} send
 * @property {(field: Field) => void} fieldChanged
 */

/** @typedef {{ value: Value | undefined, state: string, by?: Author, at?: number }} Version */
/** @typedef {{ resolve: () => void, reject: (error: WireError) => void }} Waiter */

/** @extends {Events<{ change: Field }>} */
export class Field extends Events {
  /** @type {Version | undefined} somebody else's version, while ours differs */ theirs;
  /** @type {string | undefined} why the host refused the last value */ error;
  isClosed = false;
  /** Whether what is shown was made here. */
  isOwn = false;
  #desk;
  /** @type {Answer | undefined} */ #shown;
  /** @type {Answer | undefined} what was both shown here and held by the host */ #synced;
  /** @type {Answer | undefined} */ #held;
  /** @type {{ seq: number, answer: Answer | undefined } | undefined} */ #inFlight;
  /** @type {(Answer | undefined)[]} sent on a connection that broke */ #maybeSent = [];
  #isRefused = false;
  #isPaused = false;
  #hasTriedAgain = false;
  /** @type {Waiter[]} */ #waiters = [];
  #sentAt = 0;
  #keptAt = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #sendTimer;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #keepTimer;
  /** @type {KeptText | undefined} */ #text;

  /**
   * @param {Desk} desk
   * @param {string} requestId
   * @param {string} questionId
   * @param {Answer | undefined} held - what the host has
   */
  constructor(desk, requestId, questionId, held) {
    super();
    this.#desk = desk;
    this.requestId = requestId;
    this.questionId = questionId;
    this.#held = held;
    this.#shown = this.#synced = bare(held);
    this.asked();
  }

  // What there is to see

  /** @returns {Value | undefined} */
  get value() {
    return valueOf(this.#shown);
  }

  /** @returns {"empty" | "draft" | "submitted" | "skipped"} */
  get state() {
    return this.#shown?.state ?? "empty";
  }

  /** @returns {Answer | undefined} what is shown, as an answer */
  get answer() {
    return this.#shown;
  }

  get by() {
    return this.#isHeld ? this.#held?._meta?.by : undefined;
  }

  get at() {
    return this.#isHeld ? this.#held?._meta?.at : undefined;
  }

  get isDirty() {
    return !same(this.#shown, this.#synced);
  }

  /** Whether something here is on its way to the host, or will be as soon as that can be reached. */
  get isWaiting() {
    return this.isDirty && !this.theirs && !this.#isRefused && !this.isClosed;
  }

  /** Text that was typed for the same question before, and never got in. */
  get offer() {
    if (!this.#text || same(this.#text.value, this.value)) return undefined;
    return { value: this.#text.value, at: this.#text.at };
  }

  get #isHeld() {
    return same(bare(this.#held), this.#shown);
  }

  // What people do

  /**
   * A keystroke or a choice; `undefined` empties the field.
   *
   * @param {Value | undefined} value
   */
  edit(value) {
    if (this.isClosed) return;
    this.#show(value && { state: "draft", value });
    this.#keepSoon();
    this.#schedule();
    this.#changed();
  }

  /** Sends the last value now: on leaving the field, and before the page goes. */
  flush() {
    clearTimeout(this.#sendTimer);
    this.#sendTimer = undefined;
    this.#keep();
    if (!this.#canSend || !this.isDirty) return;
    if (!this.#inFlight || !same(this.#inFlight.answer, this.#shown)) this.#send();
  }

  /**
   * @param {Value} [value]
   * @returns {Promise<void>} when the host has it
   */
  submit(value = this.value) {
    if (!value) return Promise.reject(new WireError("rejected", "There is no answer yet."));
    return this.#decide({ state: "submitted", value });
  }

  /** @returns {Promise<void>} */
  skip() {
    return this.#decide({ state: "skipped" });
  }

  /** @returns {Promise<void>} */
  clear() {
    return this.#decide(undefined);
  }

  useTheirs() {
    if (!this.theirs) return;
    const { value, state } = this.theirs;
    const answer = state === "skipped" || !value ? undefined : { state, value };
    this.#show(/** @type {Answer | undefined} */ (state === "skipped" ? { state } : answer));
    this.#choose();
  }

  keepMine() {
    if (this.theirs) this.#choose();
  }

  useOffer() {
    const { offer } = this;
    if (!offer) return;
    this.dropOffer();
    this.edit(offer.value);
  }

  dropOffer() {
    if (this.#text) this.#desk.kept.dropText(this.#text);
    this.#text = undefined;
    this.#changed();
  }

  // What the session tells

  /** The question is there, or is there in new words. */
  asked() {
    const question = this.#desk.question(this.requestId, this.questionId);
    this.#text = question && this.#desk.kept.textFor(this.#desk.uri, question);
  }

  /**
   * What the host has now.
   *
   * @param {Answer | undefined} held
   * @param {number} [ownSeq] - the number of our own action, if it was ours
   */
  took(held, ownSeq) {
    this.#held = held;
    const now = bare(held);
    if (ownSeq !== undefined) this.#echoed(now, ownSeq);
    else if (this.#maybeSent.some((sent) => same(sent, now))) this.#synced = now;
    else this.#meet(held, now);
    this.#settle();
    this.#changed();
  }

  /**
   * The host refused a value.
   *
   * @param {string} reason
   */
  refuse(reason) {
    this.error = reason;
    this.#changed();
  }

  /** The connection is there again, and what was missed has been told. */
  live() {
    this.#maybeSent = [];
    this.flush();
  }

  /** The whole form is on its way: drafts behind it would come too late. */
  pause() {
    this.#isPaused = true;
    clearTimeout(this.#sendTimer);
    this.#sendTimer = undefined;
  }

  goOn() {
    this.#isPaused = false;
    this.#schedule();
  }

  /**
   * Its request is no longer open.
   *
   * @param {boolean} isAnswered - by ourselves, with what is shown
   * @returns {Value | undefined} what was typed here and did not get in
   */
  close(isAnswered) {
    clearTimeout(this.#sendTimer);
    this.isClosed = true;
    const unsent = isAnswered || !this.isOwn ? undefined : this.value;
    if (unsent) this.#keepText(unsent);
    this.#keep();
    for (const { reject } of this.#taken()) {
      reject(new WireError("requestClosed", "This question is no longer open."));
    }
    this.#changed();
    return unsent;
  }

  /**
   * What this tab, or one that is gone, had not sent.
   *
   * @param {KeptDraft} draft
   */
  restore(draft) {
    this.#desk.kept.dropDraft(draft);
    if (this.isOwn) {
      const value = valueOf(draft.answer);
      if (value && !same(value, this.value)) this.#keepText(value);
      this.asked();
    } else {
      this.#synced = draft.base;
      this.#shown = draft.answer;
      this.isOwn = true;
      this.#meet(this.#held, bare(this.#held));
      this.flush();
      this.#settle();
    }
    this.#changed();
  }

  // How

  /** @param {Answer | undefined} answer */
  #show(answer) {
    this.#shown = answer;
    this.isOwn = true;
    this.error = undefined;
    this.#isRefused = this.#hasTriedAgain = false;
  }

  /**
   * Something deliberate: it goes out at once, over whatever is there.
   *
   * @param {Answer | undefined} answer
   * @returns {Promise<void>}
   */
  #decide(answer) {
    if (this.isClosed) {
      return Promise.reject(new WireError("requestClosed", "This question is no longer open."));
    }
    this.#show(answer);
    this.theirs = undefined;
    const decided = new Promise((/** @type {(value: void) => void} */ resolve, reject) => {
      this.#waiters.push({ resolve, reject });
    });
    decided.catch(() => {}); // refusals are shown at the field, whoever waits
    this.flush();
    this.#settle();
    this.#changed();
    return decided;
  }

  /** One of two versions was chosen, and is shown now. */
  #choose() {
    this.theirs = undefined;
    this.#synced = bare(this.#held);
    this.flush();
    this.#settle();
    this.#changed();
  }

  /**
   * Our own action came back. An older one than the last says nothing new.
   *
   * @param {Answer | undefined} now
   * @param {number} seq
   */
  #echoed(now, seq) {
    if (this.#inFlight && this.#inFlight.seq !== seq) return;
    this.#inFlight = undefined;
    this.#synced = now;
  }

  /**
   * Somebody else's version meets ours.
   *
   * @param {Answer | undefined} held
   * @param {Answer | undefined} now
   */
  #meet(held, now) {
    if (same(valueOf(now), this.value) && isSkipped(now) === isSkipped(this.#shown)) {
      const isDecided = this.isDirty && this.#shown?.state === "submitted";
      this.#synced = now;
      if (!isDecided) this.#shown = now;
      this.theirs = undefined;
    } else if (same(now, this.#synced)) {
      this.theirs = undefined;
    } else if (this.isDirty || (this.isOwn && this.#desk.isFocused(this))) {
      this.theirs = versionOf(held);
    } else {
      this.#shown = this.#synced = now;
      this.theirs = undefined;
      this.isOwn = false;
    }
  }

  /** Brings what is kept, what waits and what is still to be sent in line. */
  #settle() {
    if (this.isDirty || this.#inFlight) {
      this.#keepSoon();
      this.#schedule();
      return;
    }
    this.#keep();
    for (const { resolve } of this.#taken()) resolve();
  }

  #taken() {
    const waiters = this.#waiters;
    this.#waiters = [];
    return waiters;
  }

  // Sending

  get #canSend() {
    const isHindered = this.theirs || this.isClosed || this.#isRefused || this.#isPaused;
    return this.#desk.isLive && !isHindered;
  }

  #schedule() {
    if (this.#sendTimer || this.#inFlight || !this.#canSend || !this.isDirty) return;
    const delay = Math.max(MOMENT, this.#sentAt + PACE - Date.now());
    this.#sendTimer = setTimeout(() => {
      this.#sendTimer = undefined;
      if (this.#canSend && this.isDirty) this.#send();
    }, delay);
  }

  #send() {
    const { requestId, questionId } = this;
    const answer = this.#shown;
    const action = present({
      type: /** @type {const} */ ("session/inputAnswerChanged"),
      requestId,
      questionId,
      answer,
    });
    this.#sentAt = Date.now();
    const seq = this.#desk.send(action, (error) => this.#failed(seq, answer, error));
    this.#inFlight = { seq, answer };
  }

  /**
   * @param {number} seq
   * @param {Answer | undefined} answer
   * @param {WireError} error
   */
  #failed(seq, answer, error) {
    if (error.code === "lost") this.#maybeSent.push(answer);
    if (this.#inFlight?.seq !== seq) return;
    this.#inFlight = undefined;
    if (error.code === "lost" || error.code === "closed" || error.code === "gone") return;
    if (!same(answer, this.#shown)) this.#schedule();
    else if (PASSING.has(error.refusal ?? "") && !this.#hasTriedAgain) this.#tryAgain();
    else this.#refused(error);
  }

  #tryAgain() {
    this.#hasTriedAgain = true;
    this.#sentAt = Date.now() + SECOND_TRY - PACE;
    this.#schedule();
  }

  /** @param {WireError} error */
  #refused(error) {
    this.#isRefused = true;
    this.error = error.message;
    for (const { reject } of this.#taken()) reject(error);
    this.#changed();
  }

  // Keeping

  /** Often enough that a crash costs nothing to speak of. */
  #keepSoon() {
    if (this.#keepTimer) return;
    const delay = this.#keptAt + PACE - Date.now();
    if (delay <= 0) this.#keep();
    else this.#keepTimer = setTimeout(() => this.#keep(), delay);
  }

  #keep() {
    clearTimeout(this.#keepTimer);
    this.#keepTimer = undefined;
    this.#keptAt = Date.now();
    const { requestId, questionId } = this;
    const name = { session: this.#desk.uri, requestId, questionId };
    if (!this.isDirty || this.isClosed || !this.isOwn) {
      this.#desk.kept.dropDraft(name);
      return;
    }
    const at = Date.now();
    this.#desk.kept.putDraft({ ...name, at, answer: this.#shown, base: this.#synced });
  }

  /** @param {Value} value */
  #keepText(value) {
    const question = this.#desk.question(this.requestId, this.questionId);
    if (!question) return;
    const { id: questionId, kind, message } = question;
    const session = this.#desk.uri;
    this.#desk.kept.putText({ session, at: Date.now(), questionId, kind, message, value });
  }

  #changed() {
    this.emit("change", this);
    this.#desk.fieldChanged(this);
  }
}

/**
 * @param {Answer | undefined} answer
 * @returns {Value | undefined}
 */
export const valueOf = (answer) =>
  answer && answer.state !== "skipped" ? answer.value : undefined;

/** @param {Answer | undefined} answer */
const isSkipped = (answer) => answer?.state === "skipped";

/**
 * @param {Answer | undefined} answer
 * @returns {Version}
 */
const versionOf = (answer) => ({
  value: valueOf(answer),
  state: answer?.state ?? "empty",
  by: answer?._meta?.by,
  at: answer?._meta?.at,
});
