// Two versions of one answer, and what was written before: shown side by side, for a person to choose.

/** @import { Author, Question, Value } from "../wire/types.d.ts" */
/** @import { Field } from "../wire/drafts.js" */
import { announce } from "../views/announcer.js";
import { h, say, show } from "../views/dom.js";
import { capital, isMe, labelOf, nameOf, wordsOf } from "../text/words.js";

/** A text of somebody's beside the field, and what can be done with it. */
class Aside {
  title = h("p", { dir: "auto" });
  words = h("blockquote", { class: "their-words", dir: "auto" });

  /**
   * @param {string} kind
   * @param {string} label
   * @param {readonly [string, string, () => void][]} choices
   */
  constructor(kind, label, choices) {
    const buttons = choices.map(([look, words, act]) =>
      h("button", { type: "button", class: `small ${look}`, onclick: act }, words),
    );
    this.buttons = buttons;
    this.element = h(
      "div",
      { class: kind, role: "group", "aria-label": label, hidden: true },
      this.title,
      this.words,
      h("div", { class: "conflict-actions" }, ...buttons),
    );
  }

  /**
   * Only the words change while it stands, so that nothing moves under a pointer.
   * @param {string | undefined} title
   * @param {string} words
   */
  update(title, words) {
    show(this.element, title !== undefined);
    if (title === undefined) return;
    say(this.title, title);
    say(this.words, words);
    show(this.words, words !== "");
  }
}

export class Versions {
  isContested = false;

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
    this.conflict = new Aside("conflict", "Two versions", [
      ["", "Use theirs", choosing(() => field.useTheirs())],
      ["primary-quiet", "Keep mine", choosing(() => field.keepMine())],
    ]);
    this.offer = new Aside("offer", "Written before", [
      ["primary-quiet", "Use it", choosing(() => field.useOffer())],
      ["quiet", "Discard", choosing(() => field.dropOffer())],
    ]);
  }

  /**
   * @param {boolean} mayAnswer
   * @param {Author | undefined} me
   */
  update(mayAnswer, me) {
    const { theirs, offer } = this.field;
    this.conflict.update(theirs && changedWords(theirs.by, theirs.value, me), this.#say(theirs?.value));
    if (theirs && !this.isContested) this.#announce(changedWords(theirs.by, theirs.value, me));
    this.isContested = theirs !== undefined;
    const isOffered = offer !== undefined && mayAnswer && !this.field.isClosed;
    this.offer.update(isOffered ? this.#offerWords(me) : undefined, this.#say(offer?.value));
  }

  /** @param {Author | undefined} me */
  #offerWords(me) {
    const { overtakenBy, value } = this.field;
    const [use, discard] = this.offer.buttons;
    if (use) say(use, overtakenBy ? "Use mine" : "Use it");
    if (discard) say(discard, overtakenBy ? "Leave it" : "Discard");
    if (!overtakenBy) return "You wrote this before, and it was never sent:";
    const wrote = this.question.kind === "text" ? "written" : "chosen";
    return `${changerOf(overtakenBy, me)} ${value ? "changed" : "cleared"} this. You had ${wrote}:`;
  }

  /** @param {Value | undefined} value */
  #say(value) {
    return wordsOf(this.question, value);
  }

  /** Once for each time that two versions meet, not with each key. */
  /** @param {string} words */
  #announce(words) {
    announce(`${labelOf(this.question)}: ${words}. Two versions: use theirs or keep yours.`);
  }
}

/**
 * @param {Author | undefined} by
 * @param {Value | undefined} value
 * @param {Author | undefined} me
 */
function changedWords(by, value, me) {
  return `${changerOf(by, me)} ${value ? "changed this to" : "cleared this"}`;
}

/**
 * The same person may be at two devices.
 * @param {Author | undefined} by
 * @param {Author | undefined} me
 */
function changerOf(by, me) {
  return isMe(by, me) ? "On another device you" : capital(nameOf(by));
}
