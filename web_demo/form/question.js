// One question: its input, status, problems, conflicts and actions.

/** @import { Present, Question, Value } from "../client/types.d.ts" */
/** @import { SessionContext } from "../views/session/session-context.js" */
/** @import { QuestionStatus } from "./question-status.js" */
import { labelOf, valueText } from "../text/format.js";
import { afterClick, attribute, h, setText, show } from "../views/dom.js";
import { ConflictPrompt } from "./conflict-prompt.js";
import { inputFor, hasOneInput } from "./inputs/inputs.js";
import {
  coveredText,
  isSettled,
  shownValue,
  statusOf,
  statusLabel,
} from "./question-status.js";
import { constraintsOf, NEEDED, problemWith } from "./validation.js";

const CHOOSE = "Choose a version before sending.";

let count = 0;

/** A refusal is an error of the field, which reports that it changed. */
const shownByField = () => {};

/** @param {string} kind @param {string} label @param {() => void} act */
const smallButton = (kind, label, act) =>
  h("button", { class: `small ${kind}`, onclick: act }, label);

export class QuestionView {
  id = `question-${(count += 1)}`;
  statusText = h("span", { class: "state-text", dir: "auto" });
  problemText = h("p", { class: "problem", id: `${this.id}-problem`, role: "alert" });
  submit = smallButton("primary-quiet", "Mark done", () => this.submitNow());
  edit = smallButton("quiet", "Edit", () => this.input.focus());
  skip = smallButton("quiet", "Skip", () => this.#skip());
  clear = smallButton("quiet", "Clear", () => this.#clear());
  /** @type {string | undefined} */
  problem = undefined;
  isLocked = false;

  /**
   * @param {SessionContext} context
   * @param {string} requestId
   * @param {Question} question
   * @param {boolean} isAlone the only question of its form: it is sent, and never just marked done
   * @param {(from: QuestionView) => void} confirmed Enter was pressed, and the answer is valid
   */
  constructor(context, requestId, question, isAlone, confirmed) {
    this.context = context;
    this.requestId = requestId;
    this.question = question;
    this.isAlone = isAlone;
    /** Answered by the buttons Yes and No in the form's footer. */
    this.isYesNo = isAlone && question.kind === "boolean";
    this.confirmed = confirmed;
    this.field = context.session.field(requestId, question.id);
    this.input = inputFor(question, {
      id: `${this.id}-input`,
      edited: (value) => this.#edited(value),
      left: () => this.#left(),
      confirmed: () => this.#confirm(),
    });
    this.conflict = new ConflictPrompt(question, this.field, () => this.input.focus());
    this.element = this.#layout();
    this.off = this.field.on("change", () => this.update());
  }

  // Layout

  #layout() {
    const { question } = this;
    const title = labelOf(question);
    const constraints = constraintsOf(question);
    const body = h(
      "fieldset",
      { class: "question-body stack" },
      h(
        "legend",
        { id: `${this.id}-title` },
        hasOneInput(question)
          ? h("label", { class: "question-title", for: `${this.id}-input`, dir: "auto" }, title)
          : h("bdi", { class: "question-title" }, title),
        question.required
          ? h("span", { class: "required" }, "Required")
          : h("span", { class: "optional" }, "Optional"),
      ),
      question.title &&
        question.message !== title &&
        h("p", { class: "question-message", dir: "auto" }, question.message),
      !this.isYesNo && this.input.element,
      this.problemText,
      this.conflict.element,
      h(
        "div",
        { class: "question-foot row" },
        h("p", { class: "constraints faint", id: `${this.id}-constraints` }, constraints),
        h("div", { class: "question-actions" }, this.clear, this.skip, this.edit, this.submit),
      ),
    );
    return h(
      "div",
      {
        class: "question",
        id: this.id,
        tabindex: -1,
        "data-question": question.id,
        "data-alone": this.isAlone,
        onfocusout: (event) => this.#focusLeft(event),
        onkeydown: (event) => this.#key(event),
      },
      body,
      h(
        "p",
        { class: "question-state faint" },
        h("span", { class: "state-mark", "aria-hidden": "true" }),
        this.statusText,
      ),
    );
  }

  /** Drawn by its form, and when its field changes. */
  update() {
    const { field, question, context } = this;
    const isOpen = context.access.mayAnswer && !field.isClosed && !this.isLocked;
    const status = this.status();
    const writers = this.writers();
    if (!this.input.problem() || field.isClosed) this.input.show(shownValue(question, field));
    this.input.enable(isOpen && !this.isYesNo);
    attribute(this.element, "data-status", status);
    attribute(this.element, "data-writing", writers.length > 0);
    const text = this.#statusText(status, writers);
    setText(this.statusText, text);
    attribute(this.statusText, "title", text);
    this.#showProblem();
    this.conflict.update(context.access.mayAnswer, context.me);
    this.#showActions(status, isOpen);
  }

  /** @param {QuestionStatus} status @param {readonly Present[]} writers */
  #statusText(status, writers) {
    const { field, question, context, isAlone } = this;
    const label = statusLabel(question, status, field, writers, context.me);
    const value = this.isYesNo ? valueText(question, this.value()) : "";
    const text = `${label}${value && `: ${value}`}${coveredText(question, field, context.me)}`;
    return isAlone && isSettled(status) ? `${text}, not sent yet` : text;
  }

  /** @param {QuestionStatus} status @param {boolean} isOpen */
  #showActions(status, isOpen) {
    const hasValue = shownValue(this.question, this.field) !== undefined;
    const isDone = isSettled(status);
    const isContested = status === "conflict";
    const isTakenOver = status === "foreign" || status === "outdated";
    const isMarkable = this.isYesNo ? false : isTakenOver || !this.isAlone;
    show(this.submit, isOpen && hasValue && !isDone && !isContested && isMarkable);
    show(this.skip, isOpen && !this.question.required && !isDone && !isContested && !this.isAlone);
    show(this.edit, isOpen && status === "submitted" && !this.isAlone);
    show(this.clear, isOpen && !isContested && (isDone || this.field.state === "draft"));
    const clears = this.field.covered ? "Discard draft" : "Clear";
    setText(this.clear, status === "skipped" ? "Answer it" : clears);
    const submits = this.isAlone ? "Use this answer" : "Mark done";
    setText(this.submit, status === "foreign" ? "Use this draft" : submits);
  }

  #showProblem() {
    if (this.problem === CHOOSE && !this.field.theirs) this.problem = undefined;
    const text = this.problem ?? this.field.error;
    setText(this.problemText, text ?? "");
    show(this.problemText, text !== undefined);
    const described = [
      text && `${this.id}-problem`,
      constraintsOf(this.question) && `${this.id}-constraints`,
    ];
    this.input.mark(text !== undefined, described.filter(Boolean).join(" "));
  }

  // State

  status() {
    const { session, me } = this.context;
    return statusOf(this.question, this.field, session.others, me);
  }

  /** @returns {readonly Present[]} */
  writers() {
    return this.context.session.others.filter(
      ({ editing }) =>
        editing?.requestId === this.requestId && editing.questionId === this.question.id,
    );
  }

  value() {
    return shownValue(this.question, this.field);
  }

  /** Validates what is shown; the problem, if any, is also shown at the field. */
  check() {
    const value = this.value();
    this.problem = this.input.problem() ?? (value && problemWith(this.question, value));
    if (this.field.theirs) this.problem = CHOOSE;
    this.#showProblem();
    return this.problem;
  }

  /** @param {string} text */
  showError(text) {
    this.problem = text;
    this.#showProblem();
  }

  /** @param {boolean} isLocked */
  lock(isLocked) {
    if (isLocked === this.isLocked) return;
    this.isLocked = isLocked;
    this.update();
  }

  // Input

  /** @param {Value | undefined} value */
  #edited(value) {
    if (this.problem && !this.input.problem()) this.problem = undefined;
    const isUnset = value === undefined && this.field.state === "empty" && !this.field.isDirty;
    if (!isUnset) {
      this.field.edit(value);
      return;
    }
    this.#showProblem();
    this.context.redrawForms();
  }

  #left() {
    this.field.flush();
    afterClick(() => this.#checkLeft());
  }

  #checkLeft() {
    if (this.field.isClosed || this.field.theirs || this.element.contains(document.activeElement))
      return;
    this.update(); // a default that was emptied still counts, so it is shown again
    const isEmpty = this.value() === undefined && !this.input.problem();
    if (isEmpty || this.field.state === "submitted") {
      this.problem = undefined;
      this.#showProblem();
    } else {
      this.check();
    }
  }

  #confirm() {
    const value = this.value();
    if (this.input.problem() || value !== undefined) {
      const isValid = this.isAlone ? this.check() === undefined : this.submitNow();
      if (!isValid) return;
    } else if (this.question.required) {
      this.showError(NEEDED);
      return;
    }
    this.confirmed(this);
  }

  /** Returns whether it is valid; a refusal by the host is shown later. */
  submitNow() {
    const value = this.value();
    if (this.check() !== undefined || value === undefined) {
      this.input.focus();
      return false;
    }
    if (this.field.state !== "submitted") this.field.submit(value).catch(shownByField);
    this.context.session.stopTyping();
    return true;
  }

  #skip() {
    this.problem = undefined;
    this.field.skip().catch(shownByField);
    this.confirmed(this);
  }

  #clear() {
    this.problem = undefined;
    this.field.clear().catch(shownByField);
    this.input.focus();
  }

  /** The focus left the question, so typing here has ended. */
  /** @param {FocusEvent} event */
  #focusLeft({ relatedTarget }) {
    if (relatedTarget instanceof Node && this.element.contains(relatedTarget)) return;
    afterClick(() => {
      if (!this.element.contains(document.activeElement)) this.context.session.stopTyping();
    });
  }

  /** Escape leaves the input and focuses the question; Enter leads back in. */
  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.target === this.element) {
      this.#keyOutside(event);
    } else if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      this.element.focus();
    }
  }

  /** @param {KeyboardEvent} event */
  #keyOutside(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const isIn = ["Enter", "ArrowDown", " "].includes(event.key);
    const isPicked = /^[1-9]$/.test(event.key) && this.input.pick?.(Number(event.key));
    if (!isIn && !isPicked) return;
    event.preventDefault();
    if (isIn) this.focus();
  }

  focus() {
    this.element.scrollIntoView({ block: "nearest" });
    if (this.context.access.mayAnswer && !this.field.isClosed && !this.isYesNo) this.input.focus();
    else this.element.focus();
  }

  remove() {
    this.off();
  }
}
