/**
 * One question on this page: what its field shows, what can be done with it, and what the host has.
 *
 * Typing is shown at once and sent as a draft, throttled by `draft-sender.js`. The phases, what leads from
 * one to the next, and every other change of a draft's state are in `draft-state.js`.
 */

/** @import { DraftEvent, Version } from "./draft-state.js" */
/** @import { Questions } from "../questions.js" */
/** @import { StoredDraft } from "../storage.js" */
/** @import { Answer, InputAnswerChanged, Value } from "../types.d.ts" */
import {
  covers,
  hasRemoteChange,
  initialDraft,
  isDecided,
  isTypedValue,
  restoredDraft,
  returnedDraft,
  transition,
  valueOf,
} from "./draft-state.js";
import { DraftSender } from "./draft-sender.js";
import { DraftStorage } from "./draft-storage.js";
import { ClientError } from "../errors.js";
import { Events } from "../events.js";
import { withoutMeta } from "../echoes.js";
import { same, withoutUndefined } from "../reducers/updates.js";
import { decided } from "../review.js";

/**
 * The one other value that a person can take instead: the host's in a conflict; our own that somebody
 * replaced; or one that was typed for the same question before.
 *
 * @typedef {Version & { kind: "conflict" | "replaced" | "earlier" }} Alternative
 */

/** @typedef {{ resolve: () => void, reject: (error: ClientError) => void }} Waiter */

/** @extends {Events<{ change: DraftField }>} */
export class DraftField extends Events {
  /** @type {string | undefined} why the host refused the last value */ error;
  isClosed = false;
  #questions;
  #state;
  /** It is to be sent although the host has the same. */
  #mustSend = false;
  /** @type {Waiter[]} until the host has what is shown */ #waiters = [];
  #sender;
  #storage;

  /**
   * @param {Questions} questions
   * @param {string} requestId
   * @param {string} questionId
   * @param {Answer | undefined} atHost - what the host has
   */
  constructor(questions, requestId, questionId, atHost) {
    super();
    this.#questions = questions;
    this.requestId = requestId;
    this.questionId = questionId;
    this.#state = initialDraft(atHost);
    const { uri, outbox, storage } = questions;
    this.#storage = new DraftStorage(
      storage,
      { session: uri, requestId, questionId },
      () => questions.question(requestId, questionId),
      () => this.#unsent,
    );
    this.#sender = new DraftSender({
      canSend: () => this.#canSend,
      answer: () => this.#state.shown,
      send: (answer, failed) => outbox.dispatchDraft(answerChanged(this, answer), failed),
      sent: () => this.#sent(),
      failed: () => this.#failed(),
      refused: (error) => this.#refused(error),
    });
    this.#storage.findText();
  }

  // What is shown

  /** @returns {Value | undefined} */
  get value() {
    return valueOf(this.#state.shown);
  }

  /** @returns {"empty" | "draft" | "submitted" | "skipped"} */
  get state() {
    return this.#state.shown?.state ?? "empty";
  }

  get answer() {
    return this.#state.shown;
  }

  get phase() {
    return this.#state.phase;
  }

  /** Whether what is shown was made here. */
  get isOwn() {
    return this.#state.isOwn;
  }

  get by() {
    return this.#heldMeta?.by;
  }

  get at() {
    return this.#heldMeta?.at;
  }

  /** Where what is shown comes from: a person, or proposed by the asker. */
  get via() {
    return this.#heldMeta?.via;
  }

  /** Whether what is shown was given before the question changed. */
  get isOutdated() {
    return Boolean(this.#heldMeta?.beforeChange);
  }

  /** What the host says about the answer, if it has what is shown. */
  get #heldMeta() {
    const { atHost, shown } = this.#state;
    return same(withoutMeta(atHost), shown) ? atHost?._meta : undefined;
  }

  /** The answer that counts until the draft that is shown is submitted. */
  get covered() {
    return this.state === "draft" ? decided(this.#state.atHost) : undefined;
  }

  /** Emptied by typing, over an answer that the host has and that stays. */
  get isEmptied() {
    const { isOwn, shown, atHost } = this.#state;
    return isOwn && !shown && decided(atHost) !== undefined;
  }

  get isDirty() {
    return this.phase !== "emptied" && !same(this.#state.shown, this.#state.base);
  }

  /** Whether something is being sent to the host, or will be as soon as it can be reached. */
  get isWaiting() {
    return !this.isClosed && (this.phase === "unsent" || this.phase === "sending");
  }

  /** What the host has instead of ours, as long as a person has to choose. */
  get theirs() {
    if (this.phase !== "contested" || this.isClosed) return undefined;
    const { atHost } = this.#state;
    return { value: valueOf(atHost), state: atHost?.state ?? "empty", by: atHost?._meta?.by, at: atHost?._meta?.at };
  }

  /** @returns {Alternative | undefined} */
  get alternative() {
    const { theirs } = this;
    if (theirs) return { kind: "conflict", ...theirs };
    const { text } = this.#storage;
    if (!text || same(text.value, this.value)) return undefined;
    const by = this.#replacedBy;
    return { kind: by ? "replaced" : "earlier", value: text.value, state: "draft", by, at: text.at };
  }

  /** Who replaced our text in this request, as long as it is offered. */
  get #replacedBy() {
    const { text } = this.#storage;
    return text?.requestId === this.requestId ? text.by : undefined;
  }

  // What people do

  /** @param {Value | undefined} value - a keystroke or a choice; `undefined` empties the field */
  edit(value) {
    if (this.isClosed) return;
    this.#enter({ type: "edited", answer: value && { state: "draft", value } });
    this.#questions.typing.at(this);
    this.#storage.saveSoon();
    this.#sender.sendSoon();
    this.#changed();
  }

  /** Sends the last value now: when the field is left, and before the page closes. */
  flush() {
    if (this.phase === "emptied") {
      this.error = undefined;
      this.#apply({ type: "left" });
      this.#changed();
    }
    this.#sender.sendNow();
    this.#storage.saveNow();
  }

  /** @param {Value} [value] @returns {Promise<void>} when the host has it */
  submit(value = this.value) {
    if (!value) return Promise.reject(new ClientError("rejected", "There is no answer yet."));
    return this.#decide({ state: "submitted", value });
  }

  skip() {
    return this.#decide({ state: "skipped" });
  }

  /** Removes an answer, or discards a draft: the answer below it is shown again. */
  clear() {
    const cleared = this.#decide(undefined);
    this.#questions.typing.at(undefined);
    return cleared;
  }

  /** Reports to the host that a person is here, although nothing has been entered yet. */
  touch() {
    if (this.state !== "empty" || this.isDirty || this.isClosed) return;
    this.#mustSend = true;
    this.flush();
  }

  /** Chooses the other value. A draft of someone else is sent again, as ours. */
  useAlternative() {
    const { alternative } = this;
    if (!alternative) return;
    if (alternative.kind === "conflict") {
      this.#mustSend = this.#state.atHost?.state === "draft";
      this.#choose({ type: "usedTheirs" });
    } else {
      this.#storage.dropText();
      this.edit(alternative.value);
    }
  }

  /** Keeps what is shown. */
  dropAlternative() {
    if (this.theirs) {
      this.#choose({ type: "keptMine" });
      return;
    }
    this.#storage.dropText();
    this.#changed();
  }

  // What the session reports

  /** The question was asked, or changed; or an earlier text has come to light. */
  asked() {
    const before = this.#storage.text;
    this.#storage.findText();
    if (!same(this.#storage.text, before)) this.#changed();
  }

  /**
   * What the host has now.
   *
   * @param {Answer | undefined} atHost
   * @param {number} [ownSeq] - the number of our own action, if it was ours
   */
  received(atHost, ownSeq) {
    if (ownSeq !== undefined) this.#sender.confirmed(ownSeq);
    if (ownSeq !== undefined || this.#sender.mayHaveSent(withoutMeta(atHost))) this.#confirm(atHost);
    else this.#receive(atHost);
    this.#sendOrFinish();
    this.#changed();
  }

  /** @param {string} reason - why the host refused a value */
  refuse(reason) {
    this.error = reason;
    this.#changed();
  }

  /** Connected again, and everything that was missed has been received. */
  reconnected() {
    this.#sender.reconnected();
    this.flush();
    this.#changed();
  }

  /** Typing has ended: a newer value of the host replaces what was sent from here. */
  typingStopped() {
    if (this.phase !== "contested") return;
    this.#receive(this.#state.atHost, false);
    this.#sendOrFinish();
    this.#changed();
  }

  /** What prevented it from being sent is gone. */
  resume() {
    this.#sender.sendSoon();
  }

  /**
   * Its request is no longer open.
   *
   * @param {Answer | undefined} outcome - what was accepted as its answer
   * @returns {Value | undefined} what was typed here and not included
   */
  close(outcome) {
    this.#sender.stop();
    this.isClosed = true;
    const { text } = this.#storage;
    const own = this.isOwn ? this.value : this.#replacedBy && text?.value;
    if (text && same(valueOf(outcome), text.value)) this.#storage.dropText();
    const unsent = same(valueOf(outcome), own) ? undefined : own;
    if (unsent) this.#storage.putText(unsent);
    this.#storage.saveNow();
    this.#reject(requestClosed());
    this.#changed();
    return unsent;
  }

  /** @param {StoredDraft} draft - what this tab, or one that is closed, had not sent */
  restore(draft) {
    const { answer, base, sent = [] } = draft;
    this.#questions.storage.dropDraft(draft);
    this.#sender.addUncertain(sent.map((each) => each ?? undefined));
    if (!answer && isDecided(this.#state.atHost)) return; // it would remove what is there now
    if (this.isOwn) this.#setAside(valueOf(answer));
    else {
      this.#state = restoredDraft(this.#state, answer, base);
      this.received(this.#state.atHost);
    }
    this.flush();
    this.#sendOrFinish();
    this.#changed();
  }

  // How

  /** @param {DraftEvent} event */
  #apply(event) {
    this.#state = transition(this.#state, event);
  }

  /** @param {DraftEvent} event - a person entered something */
  #enter(event) {
    this.#apply(event);
    this.error = undefined;
    this.#sender.reset();
  }

  /** @param {Answer | undefined} answer - on purpose: it is sent at once, over whatever is there */
  #decide(answer) {
    if (this.isClosed) return Promise.reject(requestClosed());
    this.#enter({ type: "decided", answer });
    const decided = new Promise((/** @type {(value: void) => void} */ resolve, reject) => {
      this.#waiters.push({ resolve, reject });
    });
    decided.catch(() => {}); // a refusal is shown at the field, whether or not anyone awaits this
    this.flush();
    this.#sendOrFinish();
    this.#changed();
    return decided;
  }

  /** @param {DraftEvent} event - which of two versions was chosen */
  #choose(event) {
    this.#enter(event);
    if (this.#replacedBy) this.#storage.dropText();
    this.flush();
    this.#sendOrFinish();
    this.#changed();
  }

  /** @param {Answer | undefined} atHost - ours */
  #confirm(atHost) {
    const isLast = !this.#sender.isSending;
    this.#apply({ type: "confirmed", answer: atHost, isLast, isTyping: this.#isTyping });
  }

  /** @param {Answer | undefined} atHost - someone else's */
  #receive(atHost, isTyping = this.#isTyping) {
    const before = this.#state;
    this.#apply({ type: "received", answer: atHost, isTyping });
    if (!same(valueOf(before.shown), this.value)) this.#offerReplaced(before.isOwn && valueOf(before.shown));
  }

  /** Whether a person is typing here. */
  get #isTyping() {
    return this.isOwn && this.#questions.typing.isAt(this) && isTypedValue(this.value);
  }

  /**
   * Keeps our own value that was replaced, to be offered; drops it when it comes back.
   *
   * @param {Value | false | undefined} replaced
   */
  #offerReplaced(replaced) {
    const { atHost } = this.#state;
    const isReturned = this.#replacedBy !== undefined && same(this.#storage.text?.value, this.value);
    const stillCounts = same(valueOf(decided(atHost)), replaced);
    if (isReturned) {
      this.#storage.dropText();
      this.#state = returnedDraft(this.#state);
    } else if (replaced && !stillCounts && !covers(this.value, replaced)) {
      this.#storage.putText(replaced, atHost?._meta?.by);
    }
  }

  /** @param {Value | undefined} value - an unsent draft, if something newer was typed */
  #setAside(value) {
    const { atHost } = this.#state;
    if (this.theirs && this.#sender.mayHaveSent(withoutMeta(atHost))) this.#confirm(atHost);
    if (value && !same(value, this.value)) this.#storage.putText(value);
  }

  /** Saves and sends what the host does not have yet; if it has all, resolves those who wait for it. */
  #sendOrFinish() {
    const isDone = this.phase === "synced" || this.phase === "emptied";
    if (!isDone || this.#sender.isSending) {
      this.#storage.saveSoon();
      this.#sender.sendSoon();
      return;
    }
    this.#storage.saveNow();
    for (const { resolve } of this.#waiters.splice(0)) resolve();
  }

  get #canSend() {
    const { phase } = this;
    const hasMore = phase === "sending" && this.isDirty && !hasRemoteChange(this.#state);
    const isWanted = phase === "unsent" || hasMore || (phase === "synced" && this.#mustSend);
    if (this.isClosed || !isWanted) return false;
    return this.#questions.canSendDrafts(this.requestId);
  }

  #sent() {
    this.#mustSend = false;
    this.#apply({ type: "sent" });
    this.#storage.saveNow();
  }

  #failed() {
    this.#apply({ type: "failed", isLast: !this.#sender.isSending });
    this.#changed();
  }

  /** @param {ClientError} error */
  #refused(error) {
    this.#apply({ type: "refused" });
    this.error = error.message;
    this.#reject(error);
    this.#changed();
  }

  /** @param {ClientError} error */
  #reject(error) {
    for (const { reject } of this.#waiters.splice(0)) reject(error);
  }

  /** What would be lost with the page. */
  get #unsent() {
    if (this.isClosed || !this.isOwn || !(this.isDirty || this.theirs)) return undefined;
    const sent = this.#sender.unconfirmed.map((answer) => answer ?? null);
    return { answer: this.#state.shown, base: this.#state.base, sent };
  }

  #changed() {
    this.emit("change", this);
    this.#questions.emit("field", this);
  }
}

/** @param {DraftField} field @param {Answer | undefined} answer @returns {InputAnswerChanged} */
const answerChanged = ({ requestId, questionId }, answer) =>
  withoutUndefined({ type: "session/inputAnswerChanged", requestId, questionId, answer });

const requestClosed = () => new ClientError("requestClosed", "This question is no longer open.");
