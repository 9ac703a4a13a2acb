/**
 * One question on this page: what its field shows, what the host has, and how the two meet.
 *
 * Typing is local at once and goes out as a draft at a human pace, the last value always. What
 * somebody else writes replaces what is shown only while that is what both sides had last and
 * nobody writes here; otherwise both are kept, ours is told once when its writer pauses, and a
 * person chooses. A text that gave way is offered. What the host has not confirmed outlives the
 * page. Above it stand views; below it the session.
 */

/** @import {Answer, Author, Value} from "./types.d.ts" */
/** @import {Desk} from "./desk.d.ts" */
/** @import {KeptDraft} from "./kept.js" */
/** @import {Version} from "./versions.js" */
import { bare } from "./echoes.js";
import { WireError } from "./errors.js";
import { Events } from "./events.js";
import { Keeping } from "./keeping.js";
import { same } from "./reducers/updates.js";
import { decided } from "./review.js";
import { Sending } from "./sending.js";
import { answerOf, changeOf, covers, isTyped, meeting, valueOf, versionOf } from "./versions.js";
import { Waiters } from "./waiters.js";

/** @extends {Events<{ change: Field }>} */
export class Field extends Events {
  /** @type {Version | undefined} somebody else's version, while ours differs */ theirs;
  /** @type {string | undefined} why the host refused the last value */ error;
  /** @type {Author | undefined} who wrote over our text, which is offered since */ overtakenBy;
  isClosed = false;
  /** Whether what is shown was made here. */
  isOwn = false;
  #desk;
  /** @type {Answer | undefined} */ #shown;
  /** @type {Answer | undefined} what was both shown here and held by the host */ #synced;
  /** @type {Answer | undefined} */ #held;
  #isRefused = false;
  #isEmptied = false;
  /** Ours is to be told although it is contested, or although the host has the same. */
  #insists = false;
  #waiters = new Waiters();
  #sending;
  #keeping;

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
    const name = { session: desk.uri, requestId, questionId };
    const question = () => desk.question(requestId, questionId);
    this.#keeping = new Keeping(desk.kept, name, question, () => this.#unsent);
    this.#sending = new Sending({
      isReady: () => this.#isReady,
      answer: () => this.#shown,
      send: (answer, failed) => desk.send(changeOf(requestId, questionId, answer), failed),
      sent: () => this.#sent(),
      refused: (error) => this.#refused(error),
    });
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

  /** What is shown, as an answer. */
  get answer() {
    return this.#shown;
  }

  get by() {
    return this.#isHeld ? this.#held?._meta?.by : undefined;
  }

  get at() {
    return this.#isHeld ? this.#held?._meta?.at : undefined;
  }

  /** How what is shown came about: by a person, or proposed by the asker. */
  get via() {
    return this.#isHeld ? this.#held?._meta?.via : undefined;
  }

  /** Whether what is shown was given before the question changed. */
  get isOutdated() {
    return Boolean(this.#isHeld && this.#held?._meta?.beforeChange);
  }

  /** The answer that counts as long as the draft that is shown is not submitted. */
  get covered() {
    return this.state === "draft" ? decided(this.#held) : undefined;
  }

  /** Emptied by typing over an answer that the host has, and that stays. */
  get isEmptied() {
    return this.#isEmptied;
  }

  get isDirty() {
    return !this.#isBare && !same(this.#shown, this.#synced);
  }

  /** Whether something here is on its way to the host, or will be as soon as that can be reached. */
  get isWaiting() {
    return this.isDirty && !this.theirs && !this.#isRefused && !this.isClosed;
  }

  /** Text that was typed for the same question before, and never got in. */
  get offer() {
    const { text } = this.#keeping;
    return text && !same(text.value, this.value) ? { value: text.value, at: text.at } : undefined;
  }

  get #isHeld() {
    return same(bare(this.#held), this.#shown);
  }

  // What people do

  /** @param {Value | undefined} value - a keystroke or a choice; `undefined` empties the field */
  edit(value) {
    if (this.isClosed) return;
    this.#show(value && { state: "draft", value });
    // Emptied by typing, it is no draft any more; only `clear` takes an answer away.
    this.#isEmptied = !value && decided(this.#held) !== undefined;
    this.#desk.typing(this);
    this.#keeping.soon();
    this.#sending.soon();
    this.#changed();
  }

  /** Sends the last value now: on leaving the field, and before the page goes. */
  flush() {
    if (this.#isBare) this.#showHeld();
    this.#sending.now();
    this.#keeping.now();
  }

  /** @param {Value} [value] @returns {Promise<void>} when the host has it */
  submit(value = this.value) {
    if (!value) return Promise.reject(new WireError("rejected", "There is no answer yet."));
    return this.#decide({ state: "submitted", value });
  }

  skip() {
    return this.#decide({ state: "skipped" });
  }

  /** Takes an answer back, or discards a draft: the answer that it covers is shown again. */
  clear() {
    const isUnsent = this.state === "draft" && isDecided(this.#held) && !this.#sending.isUnderWay;
    if (!isUnsent || this.isClosed) return this.#decide(undefined);
    this.#sending.stop();
    this.#showHeld();
    this.#settle();
    return Promise.resolve();
  }

  /** Tells that somebody is here, where nothing has been written yet: nothing is sent, once more. */
  touch() {
    if (this.state !== "empty" || this.isDirty || this.isClosed) return;
    this.#insists = true;
    this.flush();
  }

  useTheirs() {
    if (!this.theirs) return;
    this.#show(answerOf(this.theirs));
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
    this.#forgetText();
    this.#changed();
  }

  // What the session tells

  /** The question is there, or is there in new words. */
  asked() {
    this.#keeping.look();
  }

  /**
   * What the host has now.
   *
   * @param {Answer | undefined} held
   * @param {number} [ownSeq] - the number of our own action, if it was ours
   */
  took(held, ownSeq) {
    const isNews = !same(this.#held, held);
    this.#held = held;
    if (ownSeq === undefined) {
      if (!this.#isOursByNow()) this.#meet(this.#isHeldFast(isNews));
    } else if (this.#sending.arrived(ownSeq)) this.#arrived();
    this.#settle();
    this.#changed();
  }

  /** @param {string} reason - why the host refused a value */
  refuse(reason) {
    this.error = reason;
    this.#changed();
  }

  /** The connection is there again, and what was missed has been told. */
  live() {
    this.#sending.live();
    this.flush();
  }

  /** Whoever wrote here has paused: what others do not know of it yet is told, over drafts only. */
  paused() {
    if (!this.theirs || !this.isDirty || !["draft", "empty"].includes(this.theirs.state)) return;
    this.#insists = true;
    this.#sending.soon();
  }

  /** What hindered it from being sent is out of the way. */
  goOn() {
    this.#sending.soon();
  }

  /**
   * Its request is no longer open.
   *
   * @param {Answer | undefined} outcome - what was accepted as its answer
   * @returns {Value | undefined} what was typed here and did not get in
   */
  close(outcome) {
    this.#sending.stop();
    this.isClosed = true;
    const own = this.isOwn ? this.value : this.overtakenBy && this.#keeping.text?.value;
    const hasGotIn = own && same(valueOf(outcome), own);
    if (hasGotIn && this.overtakenBy) this.#forgetText();
    const unsent = hasGotIn ? undefined : own;
    if (unsent) this.#keeping.putText(unsent);
    this.#keeping.now();
    this.#waiters.reject(new WireError("requestClosed", "This question is no longer open."));
    this.#changed();
    return unsent;
  }

  /** @param {KeptDraft} draft - what this tab, or one that is gone, had not sent */
  restore(draft) {
    this.#desk.kept.dropDraft(draft);
    this.#sending.mayHaveSent((draft.sent ?? []).map((answer) => answer ?? undefined));
    if (!draft.answer && isDecided(this.#held)) return; // it would take away what is there now
    if (this.isOwn) this.#setAside(draft);
    else {
      this.#synced = draft.base;
      this.#shown = draft.answer;
      this.isOwn = true;
      if (!this.#isOursByNow()) this.#meet(draft.isContested || this.isDirty);
    }
    this.flush();
    this.#settle();
    this.#changed();
  }

  // How

  /** What would be lost with the page. */
  get #unsent() {
    const isContested = this.theirs !== undefined;
    if (this.isClosed || !this.isOwn || !(this.isDirty || isContested)) return undefined;
    const sent = this.#sending.unconfirmed.map((answer) => answer ?? null);
    return { answer: this.#shown, base: this.#synced, sent, isContested };
  }

  /** The host has the last of ours; what we cleared may have been over an answer, which is back. */
  #arrived() {
    this.#synced = bare(this.#held);
    if (this.#shown !== undefined || !isDecided(this.#held)) return;
    if (!this.#isEmptied || !this.#desk.isWriting(this)) this.#showHeld();
  }

  /** Emptied, and the host has the answer alone: there is no draft to take away any more. */
  get #isBare() {
    return this.#isEmptied && isDecided(this.#held) && !this.#sending.isUnderWay;
  }

  /** What the host has takes the place of what was emptied or discarded here. */
  #showHeld() {
    this.#isEmptied = false;
    this.#shown = this.#synced = bare(this.#held);
    this.isOwn = false;
    this.theirs = undefined;
    this.error = undefined;
    this.#changed();
  }

  /** @param {Answer | undefined} answer */
  #show(answer) {
    this.#isEmptied = false;
    this.#shown = answer;
    this.isOwn = true;
    this.error = undefined;
    this.#isRefused = false;
    this.#sending.renew();
  }

  /** @param {Answer | undefined} answer - deliberate: it goes out at once, over whatever is there */
  #decide(answer) {
    if (this.isClosed) {
      return Promise.reject(new WireError("requestClosed", "This question is no longer open."));
    }
    this.#show(answer);
    this.theirs = undefined;
    const decided = this.#waiters.join();
    this.flush();
    this.#settle();
    this.#changed();
    return decided;
  }

  /** One of two versions was chosen, and is shown now; the others are to know in any case. */
  #choose() {
    this.theirs = undefined;
    this.#synced = bare(this.#held);
    this.#insists = this.#held?.state === "draft";
    this.flush();
    this.#settle();
    this.#changed();
  }

  /** Whether the host has something of ours of which we did not know whether it had arrived. */
  #isOursByNow() {
    const held = bare(this.#held);
    if (!this.#sending.mayHaveArrived(held)) return false;
    this.#synced = held;
    this.theirs = undefined;
    return true;
  }

  /**
   * Whether what is shown must not give way: it is being written, or the host does not have it. Who
   * knows of two versions and has paused leaves the choice to whoever goes on, once ours was told.
   * @param {boolean} isNews
   */
  #isHeldFast(isNews) {
    const isWritten = this.#desk.isWriting(this) && isTyped(this.value);
    if (isWritten) return this.isDirty || this.isOwn;
    if (!this.theirs) return this.isDirty;
    return !isNews || this.#insists || this.#sending.isUnderWay;
  }

  /**
   * What the host has, from somebody else, meets ours.
   * @param {boolean} isHeldFast
   */
  #meet(isHeldFast) {
    const held = bare(this.#held);
    const outcome = meeting(held, this.#shown, this.#synced, isHeldFast);
    this.theirs = outcome === "contested" ? versionOf(this.#held) : undefined;
    if (outcome === "contested" && !this.#desk.isWriting(this)) this.paused();
    if (outcome === "unchanged" || outcome === "contested") return;
    this.#isEmptied = false;
    const isDecided = outcome === "same" && this.isDirty && this.state === "submitted";
    if (outcome === "replaced") this.#giveWay();
    else if (!isDecided && held?.state !== this.state) this.isOwn = false;
    if (!isDecided) this.#shown = held;
    this.#synced = held;
  }

  /** Somebody else's answer takes the place of ours, which is offered; or they came back to ours. */
  #giveWay() {
    const { value } = this;
    const held = valueOf(this.#held);
    const isBack = this.overtakenBy !== undefined && same(this.#keeping.text?.value, held);
    const stillCounts = same(valueOf(decided(this.#held)), value);
    if (isBack) this.#forgetText();
    else if (this.isOwn && value && !stillCounts && !covers(held, value)) {
      this.overtakenBy = this.#held?._meta?.by;
      this.#keeping.putText(value);
      this.asked();
    }
    this.isOwn = isBack;
  }

  #forgetText() {
    this.overtakenBy = undefined;
    this.#keeping.dropText();
  }

  /** @param {KeptDraft} draft - somebody has typed on already; this is kept to be offered */
  #setAside(draft) {
    const value = valueOf(draft.answer);
    if (this.theirs) this.#isOursByNow();
    if (value && !same(value, this.value)) this.#keeping.putText(value);
    this.asked();
  }

  /** Brings what is kept, what waits and what is still to be sent in line. */
  #settle() {
    if (this.isDirty || this.#sending.isUnderWay || this.theirs) {
      this.#keeping.soon();
      this.#sending.soon();
      return;
    }
    this.#keeping.now();
    this.#waiters.resolve();
  }

  get #isReady() {
    const isInsisting = this.#insists && !this.#isRefused && !this.isClosed;
    if (!this.isWaiting && !isInsisting) return false;
    return this.#desk.isLive && !this.#desk.isCompleting(this.requestId);
  }

  #sent() {
    this.#insists = false;
    this.#keeping.now();
  }

  /** @param {WireError} error */
  #refused(error) {
    this.#isRefused = true;
    this.error = error.message;
    this.#waiters.reject(error);
    this.#changed();
  }

  #changed() {
    this.emit("change", this);
    this.#desk.fieldChanged(this);
  }
}

/** @param {Answer | undefined} answer */
const isDecided = (answer) => answer !== undefined && answer.state !== "draft";
