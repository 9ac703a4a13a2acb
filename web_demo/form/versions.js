// The value beside the field that can be taken instead, and the choice between the two.

/** @import { Author, Question, Value } from "../wire/types.d.ts" */
/** @import { Alternative, Field } from "../wire/drafts.js" */
import { announce } from "../views/announcer.js";
import { attribute, h, say, show } from "../views/dom.js";
import { capital, isMe, labelOf, nameOf, wordsOf } from "../text/words.js";
import { hasOneInput } from "./fields.js";

/** What it is called, and the buttons: to take it, or to stay with what the field shows. */
const CHOICES = {
  conflict: { label: "Conflict", use: "Use theirs", stay: "Keep mine" },
  replaced: { label: "Replaced text", use: "Use mine", stay: "Leave it" },
  earlier: { label: "Earlier draft", use: "Use it", stay: "Discard" },
};

export class Versions {
  title = h("p", { dir: "auto" });
  words = h("blockquote", { class: "their-words", dir: "auto" });
  /** @type {Alternative["kind"] | undefined} */
  kind = undefined;

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
    const button = (/** @type {() => void} */ act) =>
      h("button", { type: "button", onclick: choosing(act) });
    this.use = button(() => field.useAlternative());
    this.stay = button(() => field.dropAlternative());
    const actions = h("div", { class: "version-actions" }, this.use, this.stay);
    this.element = h("div", { role: "group", hidden: true }, this.title, this.words, actions);
  }

  /**
   * Only the words change while it stands, so that nothing moves under a pointer.
   * @param {boolean} mayAnswer
   * @param {Author | undefined} me
   */
  update(mayAnswer, me) {
    const { alternative, isClosed } = this.field;
    const isShown = alternative !== undefined && mayAnswer && !isClosed;
    show(this.element, isShown);
    if (isShown) this.#show(alternative, me);
    else this.kind = undefined;
  }

  /**
   * @param {Alternative} alternative
   * @param {Author | undefined} me
   */
  #show(alternative, me) {
    const { kind, value } = alternative;
    const { label, use, stay } = CHOICES[kind];
    const title = this.#titleOf(alternative, me);
    const words = wordsOf(this.question, value);
    attribute(this.element, "class", `version ${kind}`);
    attribute(this.element, "aria-label", label);
    attribute(this.use, "class", kind === "conflict" ? "small" : "small primary-quiet");
    attribute(this.stay, "class", kind === "conflict" ? "small primary-quiet" : "small quiet");
    say(this.title, title);
    say(this.words, words);
    show(this.words, words !== "");
    say(this.use, use);
    say(this.stay, stay);
    // Once for each time that there is a choice, not with each key of somebody else.
    if (kind !== this.kind && kind !== "earlier")
      announce(`${labelOf(this.question)}: ${title} ${words}. ${use} or ${stay.toLowerCase()}?`);
    this.kind = kind;
  }

  /**
   * @param {Alternative} alternative
   * @param {Author | undefined} me
   */
  #titleOf({ kind, by, value }, me) {
    if (kind === "earlier") return "You have an earlier draft:";
    if (kind === "conflict") return `${changedWords(by, value, me)}${value ? " to:" : "."}`;
    const what = hasOneInput(this.question) ? "text" : "choice";
    const changed = changedWords(by, this.field.value, me);
    return `${changed}. Your ${what}${isMe(by, me) ? " here" : ""} was:`;
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
