/**
 * One field's place in what is kept: what it shows and the host does not have, and what was once
 * typed for the same question.
 */

/** @import {Answer, Author, Question, Value} from "./types.d.ts" */
/** @import {Kept, KeptText} from "./kept.js" */

/** Often enough that a crash costs nothing to speak of. */
const PACE = 250;

/**
 * `base`: what the host had when this was begun; `sent`: what it may have of it.
 *
 * @typedef {{ answer?: Answer, base?: Answer, sent: readonly (Answer | null)[] }} Unsent
 */

export class Keeping {
  /** @type {KeptText | undefined} what was typed before, and never got in */ text;
  #kept;
  #name;
  #question;
  #unsent;
  #keptAt = 0;
  /** @type {ReturnType<typeof setTimeout> | undefined} */ #timer;

  /**
   * @param {Kept} kept
   * @param {{ session: string, requestId: string, questionId: string }} name
   * @param {() => Question | undefined} question
   * @param {() => Unsent | undefined} unsent - what is to be kept now, if anything
   */
  constructor(kept, name, question, unsent) {
    this.#kept = kept;
    this.#name = name;
    this.#question = question;
    this.#unsent = unsent;
  }

  soon() {
    if (this.#timer) return;
    const delay = this.#keptAt + PACE - Date.now();
    if (delay <= 0) this.now();
    else this.#timer = setTimeout(() => this.now(), delay);
  }

  now() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const unsent = this.#unsent();
    if (!unsent) {
      this.#kept.dropDraft(this.#name);
      return;
    }
    this.#keptAt = Date.now();
    const { kind, message } = this.#question() ?? {};
    this.#kept.putDraft({ ...this.#name, ...unsent, at: this.#keptAt, kind, message });
  }

  /** Looks for a text once more: the question may be another now. */
  look() {
    const question = this.#question();
    this.text = question && this.#kept.textFor(this.#name.session, question);
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
    this.#kept.putText({ session, at: Date.now(), requestId, questionId, kind, message, value, by });
    this.look();
  }

  dropText() {
    if (this.text) this.#kept.dropText(this.text);
    this.text = undefined;
  }
}
