/**
 * One question on this page: what its field shows, what the host has, and how the two meet.
 *
 * Typing is local at once and goes out as a draft at a human pace, the last value always. Three
 * answers say where a field stands: what it shows, what the host has, and the base, which both had
 * when they last agreed.
 *
 * phase       shown       host has    what happens
 * synced      the base    the base    a change from others is shown at once; own text is offered back
 * unsent      an edit     the base    it is sent, or kept until there is a connection
 * contested   an edit     an edit     nothing is sent until a person chooses one of the two
 * refused     an edit     the base    the reason is shown until something else is entered
 * closed                              what was not included is kept, and offered when it is asked again
 *
 * An edit that is being typed is never replaced, even if the host has had it: that is contested too,
 * until its writer pauses. Above it stand views; below it the session.
 */

/** @import {Answer, Value} from "./types.d.ts" */
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
import { agree, changeOf, covers, isTyped, valueOf, versionOf } from "./versions.js";
import { Waiters } from "./waiters.js";

/** @typedef {"synced" | "unsent" | "contested" | "refused" | "closed"} FieldPhase */

/**
 * The one value beside the field that a person can take instead: the host's in a conflict; our own
 * that somebody replaced; or one that was typed for the same question before.
 *
 * @typedef {Version & { kind: "conflict" | "replaced" | "earlier" }} Alternative
 */

/** @extends {Events<{ change: Field }>} */
export class Field extends Events {
  /** @type {string | undefined} why the host refused the last value */ error;
  isClosed = false;
  /** Whether what is shown was made here. */
  isOwn = false;
  #desk;
  /** @type {Answer | undefined} */ #shown;
  /** @type {Answer | undefined} what was both shown here and held by the host */ #base;
  /** @type {Answer | undefined} */ #held;
  #isRefused = false;
  #isEmptied = false;
  /** It is to be sent although the host has the same. */
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
    this.#shown = this.#base = bare(held);
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

  /** @returns {FieldPhase} */
  get phase() {
    if (this.isClosed) return "closed";
    if (this.#isContested && !this.#sending.isUnderWay) return "contested";
    if (!this.isDirty) return "synced";
    return this.#isRefused ? "refused" : "unsent";
  }

  /** What is under way may settle this: of two that were sent at once, the host has the later. */
  get #isContested() {
    const held = bare(this.#held);
    return !same(held, this.#base) && !agree(held, this.#shown);
  }

  get isDirty() {
    return !this.#isBare && !same(this.#shown, this.#base);
  }

  /** Whether something here is on its way to the host, or will be as soon as that can be reached. */
  get isWaiting() {
    return this.phase === "unsent";
  }

  /** What the host has instead of ours, while both are there to choose from. */
  get theirs() {
    return this.phase === "contested" ? versionOf(this.#held) : undefined;
  }

  /** @returns {Alternative | undefined} */
  get alternative() {
    const { theirs } = this;
    if (theirs) return { kind: "conflict", ...theirs };
    const { text } = this.#keeping;
    if (!text || same(text.value, this.value)) return undefined;
    const by = this.#replacedBy;
    return { kind: by ? "replaced" : "earlier", value: text.value, state: "draft", by, at: text.at };
  }

  /** Who replaced our text in this request, if it is offered since. */
  get #replacedBy() {
    const { text } = this.#keeping;
    return text?.requestId === this.requestId ? text.by : undefined;
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

  /** Takes the other value. One of somebody else's becomes ours as well: it is sent once more. */
  useAlternative() {
    const { alternative } = this;
    if (!alternative) return;
    if (alternative.kind === "conflict") {
      this.#show(bare(this.#held));
      this.#insists = this.#held?.state === "draft";
      this.#choose();
    } else {
      this.#keeping.dropText();
      this.edit(alternative.value);
    }
  }

  /** Stays with what is shown. */
  dropAlternative() {
    if (this.theirs) {
      this.#choose();
      return;
    }
    this.#keeping.dropText();
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
    this.#held = held;
    if (ownSeq === undefined) {
      if (!this.#isOursByNow()) this.#meet();
    } else {
      this.#base = bare(held);
      if (this.#sending.arrived(ownSeq)) this.#arrived();
    }
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
    this.#changed();
  }

  /** Nobody types here any more: what the host has had from us gives way to what is newer. */
  paused() {
    if (this.phase !== "contested" || this.isDirty) return;
    this.#giveWay();
    this.#settle();
    this.#changed();
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
    const { text } = this.#keeping;
    const own = this.isOwn ? this.value : this.#replacedBy && text?.value;
    if (text && same(valueOf(outcome), text.value)) this.#keeping.dropText();
    const unsent = same(valueOf(outcome), own) ? undefined : own;
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
      this.#base = draft.base;
      this.#shown = draft.answer;
      this.isOwn = true;
      if (!this.#isOursByNow()) this.#meet();
    }
    this.flush();
    this.#settle();
    this.#changed();
  }

  // How

  /** What would be lost with the page. */
  get #unsent() {
    if (this.isClosed || !this.isOwn || !(this.isDirty || this.theirs)) return undefined;
    const sent = this.#sending.unconfirmed.map((answer) => answer ?? null);
    return { answer: this.#shown, base: this.#base, sent };
  }

  /** The host has the last of ours; what we cleared may have been over an answer, which is back. */
  #arrived() {
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
    this.#shown = this.#base = bare(this.#held);
    this.isOwn = false;
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
    if (this.theirs) this.#base = bare(this.#held);
    const decided = this.#waiters.join();
    this.flush();
    this.#settle();
    this.#changed();
    return decided;
  }

  /** What is shown was chosen: it is ours, and based on what the host has. */
  #choose() {
    this.#base = bare(this.#held);
    if (this.#replacedBy) this.#keeping.dropText();
    this.flush();
    this.#settle();
    this.#changed();
  }

  /** Whether the host has something of ours of which we did not know whether it had arrived. */
  #isOursByNow() {
    const held = bare(this.#held);
    if (!this.#sending.mayHaveArrived(held)) return false;
    this.#base = held;
    return true;
  }

  /** What the host has, from somebody else, meets ours. */
  #meet() {
    const held = bare(this.#held);
    if (agree(held, this.#shown)) this.#agreed();
    else if (!same(held, this.#base) && !this.isDirty && !this.#isTyping) this.#giveWay();
  }

  /** Whether somebody types here, letter by letter. */
  get #isTyping() {
    return this.isOwn && this.#desk.isWriting(this) && isTyped(this.value);
  }

  /** Somebody else says the same. An answer of ours that is only a draft there is still to be sent. */
  #agreed() {
    const held = bare(this.#held);
    const isDecision = this.isDirty && this.state === "submitted";
    if (!isDecision) {
      this.isOwn &&= held?.state === this.state;
      this.#shown = held;
    }
    this.#isEmptied = false;
    this.#base = held;
  }

  /** What the host has takes the place of ours, which is offered; or somebody came back to ours. */
  #giveWay() {
    const { value } = this;
    const held = valueOf(this.#held);
    const by = this.#held?._meta?.by;
    const isBack = this.#replacedBy !== undefined && same(this.#keeping.text?.value, held);
    const stillCounts = same(valueOf(decided(this.#held)), value);
    if (isBack) this.#keeping.dropText();
    else if (this.isOwn && value && !stillCounts && !covers(held, value)) {
      this.#keeping.putText(value, by);
    }
    this.isOwn = isBack;
    this.#isEmptied = false;
    this.#shown = this.#base = bare(this.#held);
  }

  /** @param {KeptDraft} draft - somebody has typed on already; this is kept to be offered */
  #setAside(draft) {
    const value = valueOf(draft.answer);
    if (this.theirs) this.#isOursByNow();
    if (value && !same(value, this.value)) this.#keeping.putText(value);
  }

  /** Brings what is kept, what waits and what is still to be sent in line. */
  #settle() {
    if (this.phase !== "synced" || this.#sending.isUnderWay) {
      this.#keeping.soon();
      this.#sending.soon();
      return;
    }
    this.#keeping.now();
    this.#waiters.resolve();
  }

  get #isReady() {
    if (this.isClosed || this.#isRefused || this.#isContested) return false;
    if (!this.isDirty && !this.#insists) return false;
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
