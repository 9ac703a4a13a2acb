// Two versions of one answer, and what was written before: shown side by side, for a person to choose.

/** @import { Author, Question, Value } from "../wire/types.d.ts" */
/** @import { Field } from "../wire/drafts.js" */
import { announce } from "../views/announcer.js";
import { h, say, show } from "../views/dom.js";
import { capital, isMe, labelOf, nameOf, wordsOf } from "../text/words.js";
import { hasOneInput } from "./fields.js";

/** @typedef {readonly [look: string, words: string, act: () => void]} Choice */

/** A text of somebody's beside the field, and what can be done with it; built when there is one. */
class Aside {
  title = h("p", { dir: "auto" });
  words = h("blockquote", { class: "their-words", dir: "auto" });
  /** @type {HTMLButtonElement[]} */
  buttons = [];

  /**
   * @param {string} kind
   * @param {string} label
   * @param {readonly Choice[]} choices
   */
  constructor(kind, label, choices) {
    this.choices = choices;
    this.element = h("div", { class: kind, role: "group", "aria-label": label, hidden: true });
  }

  #build() {
    this.buttons = this.choices.map(([look, words, act]) =>
      h("button", { type: "button", class: `small ${look}`, onclick: act }, words),
    );
    const actions = h("div", { class: "conflict-actions" }, ...this.buttons);
    this.element.append(this.title, this.words, actions);
  }

  /**
   * Only the words change while it stands, so that nothing moves under a pointer.
   * @param {string | undefined} title
   * @param {string} words
   */
  update(title, words) {
    show(this.element, title !== undefined);
    if (title === undefined) return;
    if (this.buttons.length === 0) this.#build();
    say(this.title, title);
    say(this.words, words);
    show(this.words, words !== "");
  }

  /** @param {readonly string[]} labels */
  call(...labels) {
    this.buttons.forEach((button, index) => say(button, labels[index] ?? ""));
  }
}

export class Versions {
  isContested = false;
  isOvertaken = false;

  /**
   * @param {Question} question
   * @param {Field} field
   * @param {() => void} goOn somebody chose
   */
  constructor(question, field, goOn) {
    this.question = question;
    this.field = field;
    const choosing = /** @param {() => void} act */ (act) => () => {
      act();
      goOn();
    };
    this.conflict = new Aside("conflict", "Conflict", [
      ["", "Use theirs", choosing(() => field.useTheirs())],
      ["primary-quiet", "Keep mine", choosing(() => field.keepMine())],
    ]);
    this.offer = new Aside("offer", "Earlier draft", [
      ["primary-quiet", "Use it", choosing(() => field.useOffer())],
      ["quiet", "Discard", choosing(() => field.dropOffer())],
    ]);
  }

  /**
   * @param {boolean} mayAnswer
   * @param {Author | undefined} me
   */
  update(mayAnswer, me) {
    this.#showConflict(me);
    this.#showOffer(mayAnswer && !this.field.isClosed, me);
  }

  /** @param {Author | undefined} me */
  #showConflict(me) {
    const { theirs } = this.field;
    const title = theirs && `${changedWords(theirs.by, theirs.value, me)}${theirs.value ? " to:" : "."}`;
    const words = wordsOf(this.question, theirs?.value);
    this.conflict.update(title, words);
    if (title && !this.isContested)
      this.#announce(`${title} ${words}. Use theirs, or keep yours?`);
    this.isContested = theirs !== undefined;
  }

  /**
   * @param {boolean} isOpen
   * @param {Author | undefined} me
   */
  #showOffer(isOpen, me) {
    const { offer, overtakenBy } = this.field;
    const title = offer && isOpen ? this.#offerWords(me) : undefined;
    const words = wordsOf(this.question, offer?.value);
    this.offer.update(title, words);
    this.offer.call(...(overtakenBy ? ["Use mine", "Leave it"] : ["Use it", "Discard"]));
    const isOvertaken = title !== undefined && overtakenBy !== undefined;
    if (isOvertaken && !this.isOvertaken) this.#announce(`${title} ${words}`);
    this.isOvertaken = isOvertaken;
  }

  /** @param {Author | undefined} me */
  #offerWords(me) {
    const { overtakenBy, value } = this.field;
    if (!overtakenBy) return "You have an earlier draft:";
    const what = hasOneInput(this.question) ? "text" : "choice";
    const changed = changedWords(overtakenBy, value, me);
    return `${changed}. Your ${what}${isMe(overtakenBy, me) ? " here" : ""} was:`;
  }

  /** Once for each time that two versions meet, not with each key. */
  /** @param {string} words */
  #announce(words) {
    announce(`${labelOf(this.question)}: ${words}`);
  }
}

/**
 * The same person may be at two devices.
 * @param {Author | undefined} by
 * @param {Value | undefined} value
 * @param {Author | undefined} me
 */
function changedWords(by, value, me) {
  const did = value ? "changed this" : "cleared this";
  return isMe(by, me) ? `You ${did} in another tab or device` : `${capital(nameOf(by))} ${did}`;
}
