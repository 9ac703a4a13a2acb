// Free-form answers next to a list of options: one line of text, or several as chips.

/** @import { InputEvents } from "./inputs.js" */
import { fill, h, show } from "../../views/dom.js";

export class FreeformInput {
  /** @type {readonly string[]} shown as chips */
  entries = [];
  isEnabled = true;
  drawn = "";
  chips = h("div", { class: "own-list", hidden: true });

  /** @param {boolean} isMany @param {() => void} changed @param {InputEvents} events */
  constructor(isMany, changed, events) {
    this.isMany = isMany;
    this.changed = changed;
    this.events = events;
    this.input = h("input", {
      class: "field-input",
      type: "text",
      dir: "auto",
      autocomplete: "off",
      placeholder: isMany ? "Add your own…" : "Something else…",
      "aria-label": isMany ? "Add another answer" : "Other answer",
      oninput: changed,
      onblur: () => events.left(),
      onkeydown: (event) => this.#key(event),
    });
    this.elements = [this.chips, h("div", { class: "own-text" }, this.input)];
  }

  /** What is being typed, trimmed. */
  get typed() {
    return this.input.value.trim();
  }

  /** @returns {readonly string[]} */
  get values() {
    return this.typed ? [...this.entries, this.typed] : this.entries;
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.key !== "Enter" || event.isComposing || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    if (this.isMany && this.typed) this.#add(this.typed);
    else this.events.confirmed();
  }

  /** @param {string} text */
  #add(text) {
    this.entries = [...this.entries.filter((own) => own !== text), text];
    this.input.value = "";
    this.#draw();
    this.changed();
  }

  clear() {
    this.input.value = "";
  }

  /**
   * Keeps what is being typed as long as it means the same.
   * @param {readonly string[]} own
   */
  show(own) {
    const { typed } = this;
    if (!this.isMany) {
      const text = own.join(", ");
      if (typed !== text) this.input.value = text;
      return;
    }
    const isLast = typed !== "" && own.at(-1) === typed;
    this.entries = isLast ? own.slice(0, -1) : own;
    if (!isLast && typed) this.clear();
    this.#draw();
  }

  /** Only if something differs, so that the focus stays. */
  #draw() {
    const key = JSON.stringify([this.entries, this.isEnabled]);
    if (key === this.drawn) return;
    this.drawn = key;
    show(this.chips, this.entries.length > 0);
    fill(this.chips, ...this.entries.map((text) => this.#chip(text)));
  }

  /** @param {string} text */
  #chip(text) {
    const remove = () => {
      this.entries = this.entries.filter((own) => own !== text);
      this.#draw();
      this.changed();
      this.input.focus();
    };
    const props = { "aria-label": `Remove ${text}`, disabled: !this.isEnabled, onclick: remove };
    return h("span", { class: "own-chip" }, h("bdi", null, text), h("button", props, "×"));
  }

  /** @param {boolean} isEnabled */
  enable(isEnabled) {
    this.isEnabled = isEnabled;
    this.input.disabled = !isEnabled;
    this.#draw();
  }

  focus() {
    this.input.focus();
  }
}
