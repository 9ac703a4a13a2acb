// One question: its input, who stands where with it, and what can be done about it.

/** @import { Present, Question } from "../wire/types.d.ts" */
/** @import { Standing } from "./states.js" */
/** @import { Room } from "../views/room.js" */
import { attribute, h, icon, say, show } from "../views/dom.js";
import { ICONS } from "../views/icons.js";
import { afterClick } from "../views/pointer.js";
import { labelOf, wordsOf } from "../text/words.js";
import { NEEDED, demandsOf, problemWith } from "./checks.js";
import { fieldFor, hasOneInput } from "./fields.js";
import { coveredWords, isSettled, shownValue, standingOf, standingWords } from "./states.js";
import { Versions } from "./versions.js";

const CHOOSE = "Choose a version before sending.";

let made = 0;

/** @param {string} kind @param {string} words @param {() => void} act */
const smallButton = (kind, words, act) =>
  h("button", { type: "button", class: `small ${kind}`, onclick: act }, words);

export class QuestionView {
  id = `question-${(made += 1)}`;
  stateWords = h("span", { class: "state-words", dir: "auto" });
  words = h("p", { class: "problem", id: `${this.id}-problem`, role: "alert" });
  submit = smallButton("primary-quiet", "Mark done", () => this.submitNow());
  edit = smallButton("quiet", "Edit", () => this.input.focus());
  skip = smallButton("quiet", "Skip", () => this.#skip());
  clear = smallButton("quiet", "Clear", () => this.#clear());
  /** @type {string | undefined} */
  problem = undefined;
  isLocked = false;

  /**
   * @param {Room} room
   * @param {string} requestId
   * @param {Question} question
   * @param {boolean} isAlone the only question of its form: it is sent, and never just marked done
   * @param {(from: QuestionView) => void} confirmed Enter was pressed, and the answer is valid
   */
  constructor(room, requestId, question, isAlone, confirmed) {
    this.room = room;
    this.requestId = requestId;
    this.question = question;
    this.isAlone = isAlone;
    /** Answered by the buttons Yes and No in the foot of the form. */
    this.isYesNo = isAlone && question.kind === "boolean";
    this.confirmed = confirmed;
    this.field = room.session.field(requestId, question.id);
    this.input = fieldFor(question, {
      id: `${this.id}-input`,
      edited: (value) => this.#edited(value),
      left: () => this.#left(),
      confirmed: () => this.#confirm(),
    });
    this.versions = new Versions(question, this.field, () => this.input.focus());
    this.element = this.#layout();
    this.off = this.field.on("change", () => this.update());
    this.update();
  }

  // How it looks

  #layout() {
    const { question } = this;
    const title = labelOf(question);
    const demands = demandsOf(question);
    const body = h(
      "fieldset",
      { class: "question-body" },
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
      this.words,
      this.versions.element,
      h(
        "div",
        { class: "question-foot" },
        h("p", { class: "demands", id: `${this.id}-demands` }, demands),
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
        onfocusout: (/** @type {FocusEvent} */ event) => this.#focusLeft(event),
        onkeydown: (/** @type {KeyboardEvent} */ event) => this.#key(event),
      },
      body,
      h(
        "p",
        { class: "question-state" },
        h("span", { class: "state-mark", "aria-hidden": "true" }),
        this.stateWords,
      ),
    );
  }

  update() {
    const { field, question, room } = this;
    const isOpen = room.access.mayAnswer && !field.isClosed && !this.isLocked;
    const standing = this.standing();
    if (!this.input.problem() || field.isClosed) this.input.show(shownValue(question, field));
    this.input.enable(isOpen && !this.isYesNo);
    attribute(this.element, "data-standing", standing);
    attribute(this.element, "data-writing", this.writers().length > 0);
    const words = this.#stateText(standing);
    say(this.stateWords, words);
    attribute(this.stateWords, "title", words);
    this.#showProblem();
    this.versions.update(room.access.mayAnswer, room.me);
    this.#showActions(standing, isOpen);
  }

  /** @param {Standing} standing */
  #stateText(standing) {
    const { field, question, room, isAlone } = this;
    const stands = standingWords(question, standing, field, this.writers(), room.me);
    const value = this.isYesNo ? wordsOf(question, this.value()) : "";
    const text = `${stands}${value && `: ${value}`}${coveredWords(question, field, room.me)}`;
    return isAlone && isSettled(standing) ? `${text}, not sent yet` : text;
  }

  /**
   * @param {Standing} standing
   * @param {boolean} isOpen
   */
  #showActions(standing, isOpen) {
    const hasValue = shownValue(this.question, this.field) !== undefined;
    const isDone = isSettled(standing);
    const isContested = standing === "conflict";
    const isTakenOver = standing === "foreign" || standing === "outdated";
    const isMarkable = this.isYesNo ? false : isTakenOver || !this.isAlone;
    show(this.submit, isOpen && hasValue && !isDone && !isContested && isMarkable);
    show(this.skip, isOpen && !this.question.required && !isDone && !isContested && !this.isAlone);
    show(this.edit, isOpen && standing === "submitted" && !this.isAlone);
    show(this.clear, isOpen && !isContested && (isDone || this.field.state === "draft"));
    const clears = this.field.covered ? "Discard draft" : "Clear";
    say(this.clear, standing === "skipped" ? "Answer it" : clears);
    say(this.submit, standing === "foreign" ? "Use this draft" : this.#submitText);
  }

  get #submitText() {
    return this.isAlone ? "Use this answer" : "Mark done";
  }

  #showProblem() {
    if (this.problem === CHOOSE && !this.field.theirs) this.problem = undefined;
    const words = this.problem ?? this.field.error;
    say(this.words, words ?? "");
    show(this.words, words !== undefined);
    const described = [
      words && `${this.id}-problem`,
      demandsOf(this.question) && `${this.id}-demands`,
    ];
    this.input.mark(words !== undefined, described.filter(Boolean).join(" "));
  }

  // What it knows

  standing() {
    const { session, me } = this.room;
    return standingOf(this.question, this.field, session.others, me);
  }

  /** @returns {readonly Present[]} */
  writers() {
    return this.room.session.others.filter(
      ({ editing }) =>
        editing?.requestId === this.requestId && editing.questionId === this.question.id,
    );
  }

  value() {
    return shownValue(this.question, this.field);
  }

  /** Why what is here could not be submitted, if so; said at the field as well. */
  check() {
    const value = this.value();
    this.problem = this.input.problem() ?? (value && problemWith(this.question, value));
    if (this.field.theirs) this.problem = CHOOSE;
    this.#showProblem();
    return this.problem;
  }

  /** @param {string} words */
  complain(words) {
    this.problem = words;
    this.#showProblem();
  }

  /** @param {boolean} isLocked */
  lock(isLocked) {
    this.isLocked = isLocked;
    this.update();
  }

  // What people do

  /** @param {import("../wire/types.d.ts").Value | undefined} value */
  #edited(value) {
    if (this.problem && !this.input.problem()) this.problem = undefined;
    const isUnset = value === undefined && this.field.state === "empty" && !this.field.isDirty;
    if (!isUnset) this.field.edit(value);
    this.room.edited(this);
  }

  #left() {
    this.field.flush();
    afterClick(() => this.#checkLeft());
  }

  #checkLeft() {
    if (this.field.isClosed || this.field.theirs || this.element.contains(document.activeElement))
      return;
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
      this.complain(NEEDED);
      return;
    }
    this.confirmed(this);
  }

  /** Whether it could be sent; refusals of the host come later, to the same place. */
  submitNow() {
    const value = this.value();
    if (this.check() !== undefined || value === undefined) {
      this.input.focus();
      return false;
    }
    if (this.field.state !== "submitted") this.field.submit(value).catch(() => this.update());
    this.room.session.editing();
    return true;
  }

  #skip() {
    this.problem = undefined;
    this.field.skip().catch(() => this.update());
    this.confirmed(this);
  }

  #clear() {
    this.problem = undefined;
    this.field.clear().catch(() => this.update());
    this.input.focus();
  }

  /** Whoever has gone elsewhere does not write here any more. */
  /** @param {FocusEvent} event */
  #focusLeft({ relatedTarget }) {
    if (relatedTarget instanceof Node && this.element.contains(relatedTarget)) return;
    afterClick(() => {
      if (!this.element.contains(document.activeElement)) this.room.session.editing();
    });
  }

  /** Escape leaves the input and stays at the question; from there the keys lead back in. */
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
    if (this.room.access.mayAnswer && !this.field.isClosed && !this.isYesNo) this.input.focus();
    else this.element.focus();
  }

  remove() {
    this.off();
  }
}

/**
 * The mark of a standing in the strip and in the review.
 * @param {Standing} standing
 */
export function markOf(standing) {
  const path = { submitted: ICONS.check, skipped: ICONS.skip, conflict: ICONS.warning }[
    /** @type {string} */ (standing)
  ];
  return path ? icon(path) : null;
}
