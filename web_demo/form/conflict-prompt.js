// The other version of an answer, in a conflict or from an earlier draft, and the choice between
// the two.

/** @import { Alternative, DraftField } from "../client/drafts/draft-field.js" */
/** @import { Author, Question, Value } from "../client/types.d.ts" */
import { capital, isMe, labelOf, nameOf, valueText } from "../text/format.js";
import { attribute, h, setText, show } from "../views/dom.js";
import { announce } from "../views/toasts.js";
import { hasOneInput } from "./inputs/inputs.js";

/** Its label, and the buttons to use it or to keep what the field shows. */
const CHOICES = {
  conflict: { label: "Conflict", use: "Use theirs", stay: "Keep mine" },
  replaced: { label: "Replaced text", use: "Use mine", stay: "Leave it" },
  earlier: { label: "Earlier draft", use: "Use it", stay: "Discard" },
};

export class ConflictPrompt {
  title = h("p", { dir: "auto" });
  text = h("blockquote", { class: "their-text", dir: "auto" });
  /** @type {Alternative["kind"] | undefined} */
  kind = undefined;

  /**
   * @param {Question} question
   * @param {DraftField} field
   * @param {() => void} chosen a version was chosen
   */
  constructor(question, field, chosen) {
    this.question = question;
    this.field = field;
    const button = (/** @type {() => void} */ choose) => {
      const onclick = () => {
        choose();
        chosen();
      };
      return h("button", { onclick });
    };
    this.use = button(() => field.useAlternative());
    this.stay = button(() => field.dropAlternative());
    const actions = h("div", { class: "version-actions" }, this.use, this.stay);
    this.element = h("div", { role: "group", hidden: true }, this.title, this.text, actions);
  }

  /**
   * Only the text changes while it is shown, so that nothing moves under a pointer.
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

  /** @param {Alternative} alternative @param {Author | undefined} me */
  #show(alternative, me) {
    const { kind, value } = alternative;
    const { label, use, stay } = CHOICES[kind];
    const title = this.#titleOf(alternative, me);
    const text = valueText(this.question, value);
    attribute(this.element, "class", `version stack ${kind}`);
    attribute(this.element, "aria-label", label);
    attribute(this.use, "class", kind === "conflict" ? "small" : "small primary-quiet");
    attribute(this.stay, "class", kind === "conflict" ? "small primary-quiet" : "small quiet");
    setText(this.title, title);
    setText(this.text, text);
    show(this.text, text !== "");
    setText(this.use, use);
    setText(this.stay, stay);
    // Once per conflict, not with every key that someone else presses.
    if (kind !== this.kind && kind !== "earlier")
      announce(`${labelOf(this.question)}: ${title} ${text}. ${use} or ${stay.toLowerCase()}?`);
    this.kind = kind;
  }

  /** @param {Alternative} alternative @param {Author | undefined} me */
  #titleOf({ kind, by, value }, me) {
    if (kind === "earlier") return "You have an earlier draft:";
    if (kind === "conflict") return `${changedText(by, value, me)}${value ? " to:" : "."}`;
    const what = hasOneInput(this.question) ? "text" : "choice";
    const changed = changedText(by, this.field.value, me);
    return `${changed}. Your ${what}${isMe(by, me) ? " here" : ""} was:`;
  }
}

/**
 * The same person may use two devices.
 * @param {Author | undefined} by
 * @param {Value | undefined} value
 * @param {Author | undefined} me
 */
function changedText(by, value, me) {
  const did = value ? "changed this" : "cleared this";
  return isMe(by, me) ? `You ${did} in another tab or device` : `${capital(nameOf(by))} ${did}`;
}
