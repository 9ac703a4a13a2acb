// Yes or no as two radio buttons: an unticked checkbox would be ambiguous.

/** @import { BooleanQuestion, Value } from "../../client/types.d.ts" */
/** @import { InputEvents, QuestionInput } from "./inputs.js" */
import { attribute, h } from "../../views/dom.js";
import { handleChoiceKey, chooseByDigit } from "./select-input.js";

/** @implements {QuestionInput} */
export class BooleanInput {
  /** @param {BooleanQuestion} question @param {InputEvents} events */
  constructor(question, events) {
    this.question = question;
    this.events = events;
    this.yes = this.#choice("Yes", true);
    this.no = this.#choice("No", false);
    this.element = h(
      "div",
      { class: "yes-no", onkeydown: (event) => this.#key(event) },
      this.yes.parentElement,
      this.no.parentElement,
    );
  }

  /** @param {string} label @param {boolean} truth */
  #choice(label, truth) {
    const input = h("input", {
      type: "radio",
      name: this.events.id,
      onchange: () => this.events.edited({ kind: "boolean", value: truth }),
      onblur: () => this.events.left(),
    });
    h("label", { class: "choice" }, input, h("span", { class: "choice-label" }, label));
    return input;
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const letter = { y: this.yes, n: this.no }[event.key.toLowerCase()];
    if (letter && !letter.disabled && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      letter.focus();
      letter.click();
    } else {
      handleChoiceKey(event, [this.yes, this.no], () => this.events.confirmed());
    }
  }

  /** @param {number} digit */
  pick(digit) {
    return chooseByDigit([this.yes, this.no], digit);
  }

  /** @returns {Value | undefined} */
  value() {
    if (!this.yes.checked && !this.no.checked) return undefined;
    return { kind: "boolean", value: this.yes.checked };
  }

  /** @param {Value | undefined} value */
  show(value) {
    this.yes.checked = value?.kind === "boolean" && value.value;
    this.no.checked = value?.kind === "boolean" && !value.value;
  }

  problem() {
    return undefined;
  }

  /** @param {boolean} isEnabled */
  enable(isEnabled) {
    this.yes.disabled = !isEnabled;
    this.no.disabled = !isEnabled;
  }

  focus() {
    (this.no.checked ? this.no : this.yes).focus();
  }

  /** @param {boolean} _isInvalid @param {string} describedBy */
  mark(_isInvalid, describedBy) {
    attribute(this.yes, "aria-describedby", describedBy || undefined);
  }
}
