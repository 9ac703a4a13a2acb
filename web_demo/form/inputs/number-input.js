// A number, in a text input: a browser's number input drops what it cannot parse.

/** @import { IntegerQuestion, NumberQuestion, Value } from "../../client/types.d.ts" */
/** @import { InputEvents, QuestionInput } from "./inputs.js" */
import { attribute, h } from "../../views/dom.js";

/** With a decimal point or comma, as in the terminal. */
const NUMBER = /^[+-]?(\d+([.,]\d*)?|[.,]\d+)(e[+-]?\d+)?$/i;
const THOUSANDS = /^[+-]?\d+,\d{3}$/;

/** @param {string} text @returns {number | undefined} */
function numberIn(text) {
  const isReadable = NUMBER.test(text) && !THOUSANDS.test(text);
  const number = isReadable ? Number(text.replace(",", ".")) : Number.NaN;
  return Number.isFinite(number) ? number : undefined;
}

/** @implements {QuestionInput} */
export class NumberInput {
  /** @param {NumberQuestion | IntegerQuestion} question @param {InputEvents} events */
  constructor(question, events) {
    this.question = question;
    this.events = events;
    this.input = h("input", {
      class: "field-input",
      id: events.id,
      type: "text",
      inputmode: question.kind === "integer" ? "numeric" : "decimal",
      autocomplete: "off",
      enterkeyhint: "next",
      oninput: () => events.edited(this.value()),
      onblur: () => events.left(),
      onkeydown: (event) => this.#key(event),
    });
    this.less = this.#step("−", "Decrease", -1);
    this.more = this.#step("+", "Increase", 1);
    this.element = h("div", { class: "number-field" }, this.input, this.less, this.more);
  }

  /** @param {string} sign @param {string} label @param {number} by */
  #step(sign, label, by) {
    const about = { class: "step", "aria-label": label, tabindex: -1 };
    return h("button", { ...about, onclick: () => this.#add(by) }, sign);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      this.events.confirmed();
    } else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      event.preventDefault();
      this.#add(event.key === "ArrowUp" ? 1 : -1);
    }
  }

  /** @param {number} by */
  #add(by) {
    if (this.input.readOnly) return;
    const { min, max } = this.question;
    const from = this.#number() ?? min ?? 0;
    const isFirst = this.input.value.trim() === "";
    const next = isFirst ? from : from + by;
    const bounded = Math.min(max ?? Infinity, Math.max(min ?? -Infinity, next));
    this.input.value = String(Number(bounded.toPrecision(15)));
    this.events.edited(this.value());
  }

  #number() {
    return numberIn(this.input.value.trim());
  }

  /** @returns {Value | undefined} */
  value() {
    const number = this.#number();
    return number === undefined ? undefined : { kind: "number", value: number };
  }

  /** @param {Value | undefined} value */
  show(value) {
    const shown = value?.kind === "number" ? value.value : undefined;
    if (shown === this.#number() && (shown !== undefined || this.#isUnreadable())) return;
    this.input.value = shown === undefined ? "" : String(shown);
  }

  #isUnreadable() {
    return this.input.value.trim() !== "" && this.#number() === undefined;
  }

  problem() {
    if (!this.#isUnreadable()) return undefined;
    return THOUSANDS.test(this.input.value.trim())
      ? "This can be read in two ways. Enter it without a comma."
      : "Must be a number, such as 12 or 1.5.";
  }

  /** @param {boolean} isEnabled */
  enable(isEnabled) {
    this.input.readOnly = !isEnabled;
    this.less.disabled = !isEnabled;
    this.more.disabled = !isEnabled;
  }

  focus() {
    this.input.focus();
  }

  /** @param {boolean} isInvalid @param {string} describedBy */
  mark(isInvalid, describedBy) {
    attribute(this.input, "aria-invalid", isInvalid ? "true" : undefined);
    attribute(this.input, "aria-describedby", describedBy || undefined);
  }
}
