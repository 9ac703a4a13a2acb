// Text in one line or many, and dates with the browser's own pickers.

/** @import { TextQuestion, Value } from "../../client/types.d.ts" */
/** @import { Props } from "../../views/dom.js" */
/** @import { InputEvents, QuestionInput } from "./inputs.js" */
import { attribute, autoGrow, h } from "../../views/dom.js";

const SHORT = 80;
/** @type {Readonly<Record<string, string>>} */
const TYPES = { email: "email", uri: "url", date: "date", "date-time": "datetime-local" };
const PICKED = ["date", "datetime-local"];
/** @type {Readonly<Record<string, string>>} */
const COMPLETIONS = { email: "email", uri: "url" };

/** @implements {QuestionInput} */
export class TextInput {
  /** @param {TextQuestion} question @param {InputEvents} events */
  constructor(question, events) {
    this.question = question;
    this.events = events;
    this.type = TYPES[question.format ?? ""] ?? "text";
    this.isLine = this.type !== "text" || (question.max !== undefined && question.max <= SHORT);
    this.input = this.isLine ? this.#line() : this.#area();
    this.element = this.input;
  }

  #line() {
    return h("input", {
      ...this.#common(),
      type: this.type,
      autocomplete: COMPLETIONS[this.question.format ?? ""] ?? "off",
      enterkeyhint: "next",
    });
  }

  #area() {
    return h("textarea", { ...this.#common(), rows: 1 });
  }

  /** @returns {Props} */
  #common() {
    return {
      class: "field-input",
      id: this.events.id,
      dir: "auto",
      oninput: () => this.events.edited(this.value()),
      onblur: () => this.events.left(),
      onkeydown: (event) => this.#key(event),
    };
  }

  /** Enter confirms; in a text area on a touch keyboard it starts a new line. */
  /** @param {KeyboardEvent} event */
  #key(event) {
    const isTouch = !this.isLine && matchMedia("(pointer: coarse)").matches;
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || isTouch) return;
    if (event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    this.events.confirmed();
  }

  /** @returns {Value | undefined} */
  value() {
    const text = this.type === "datetime-local" ? zonedOf(this.input.value) : this.input.value;
    // An empty text is a value only if it differs from a default.
    return text || this.question.defaultValue ? { kind: "text", value: text } : undefined;
  }

  /** @param {Value | undefined} value */
  show(value) {
    const text = value?.kind === "text" ? value.value : "";
    const shown = this.type === "datetime-local" ? localOf(text) : text;
    if (this.input.value === shown) return;
    this.#fitType(text);
    const { selectionStart, selectionEnd } = this.#caret();
    this.input.value = this.#isPicker() ? shown : text;
    if (this.input instanceof HTMLTextAreaElement) autoGrow(this.input);
    if (document.activeElement === this.input && selectionStart !== null && !this.#isPicker()) {
      this.input.setSelectionRange(selectionStart, selectionEnd);
    }
  }

  /** A picker cannot show an incomplete date; a text input can. */
  /** @param {string} text */
  #fitType(text) {
    if (!(this.input instanceof HTMLInputElement) || !PICKED.includes(this.type)) return;
    const fits = text === "" || !Number.isNaN(Date.parse(text));
    attribute(this.input, "type", fits ? this.type : "text");
  }

  #isPicker() {
    return this.input instanceof HTMLInputElement && PICKED.includes(this.input.type);
  }

  #caret() {
    const hasCaret =
      !(this.input instanceof HTMLInputElement) || ["text", "url"].includes(this.input.type);
    const { selectionStart, selectionEnd } = this.input;
    return hasCaret
      ? { selectionStart, selectionEnd }
      : { selectionStart: null, selectionEnd: null };
  }

  problem() {
    const isBad = this.input instanceof HTMLInputElement && this.input.validity.badInput;
    return isBad ? "Enter a complete date." : undefined;
  }

  /** @param {boolean} isEnabled */
  enable(isEnabled) {
    this.input.readOnly = !isEnabled;
    attribute(this.input, "aria-readonly", isEnabled ? undefined : "true");
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

// Conversion between a date-time with zone, as the host needs it, and the local one of a picker.

/**
 * @param {string} local `2026-07-28T14:00` or with seconds
 * @returns {string} with the zone that this browser is in at that time
 */
export function zonedOf(local) {
  if (local === "") return "";
  const at = new Date(local);
  if (Number.isNaN(at.getTime())) return local;
  const minutes = -at.getTimezoneOffset();
  const whole = local.length === 16 ? `${local}:00` : local;
  if (minutes === 0) return `${whole}Z`;
  const two = /** @param {number} n */ (n) => String(Math.trunc(Math.abs(n))).padStart(2, "0");
  return `${whole}${minutes < 0 ? "-" : "+"}${two(minutes / 60)}:${two(minutes % 60)}`;
}

/**
 * @param {string} zoned
 * @returns {string} as a picker shows it; invalid values stay as they are
 */
export function localOf(zoned) {
  const at = new Date(zoned);
  if (zoned === "" || Number.isNaN(at.getTime())) return zoned;
  const shifted = new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString();
  return at.getSeconds() === 0 ? shifted.slice(0, 16) : shifted.slice(0, 19);
}
