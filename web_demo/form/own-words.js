// Answers of one's own beside a list of options: one line of words, or several as chips.

import { fill, h, show } from "../views/dom.js";

/**
 * @typedef {{
 *   changed(): void, left(): void, confirmed(): void,
 * }} OwnEvents
 */

export class OwnWords {
  /** @type {readonly string[]} those that stand as chips */
  kept = [];
  isEnabled = true;
  drawn = "";
  chips = h("div", { class: "own-list", hidden: true });

  /**
   * @param {boolean} isMany
   * @param {OwnEvents} events
   */
  constructor(isMany, events) {
    this.isMany = isMany;
    this.events = events;
    this.input = h("input", {
      class: "field-input",
      type: "text",
      dir: "auto",
      autocomplete: "off",
      placeholder: isMany ? "Add your own…" : "Something else…",
      "aria-label": isMany ? "Add another answer" : "Other answer",
      oninput: () => events.changed(),
      onblur: () => events.left(),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.#key(event),
    });
    this.elements = [this.chips, h("div", { class: "own-words" }, this.input)];
  }

  /** What is being written now; blanks around it are not meant. */
  get writing() {
    return this.input.value.trim();
  }

  /** @returns {readonly string[]} */
  get values() {
    return this.writing ? [...this.kept, this.writing] : this.kept;
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.key !== "Enter" || event.isComposing || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    if (this.isMany && this.writing) this.#keep(this.writing);
    else this.events.confirmed();
  }

  /** @param {string} words */
  #keep(words) {
    this.kept = [...this.kept.filter((own) => own !== words), words];
    this.input.value = "";
    this.#draw();
    this.events.changed();
  }

  clear() {
    this.input.value = "";
  }

  /**
   * What is being written stays as it is as long as it says the same.
   * @param {readonly string[]} own
   */
  show(own) {
    const { writing } = this;
    if (!this.isMany) {
      const words = own.join(", ");
      if (writing !== words) this.input.value = words;
      return;
    }
    const isLast = writing !== "" && own.at(-1) === writing;
    this.kept = isLast ? own.slice(0, -1) : own;
    if (!isLast && writing) this.clear();
    this.#draw();
  }

  /** Only when something differs, so that who is at a chip stays there. */
  #draw() {
    const key = JSON.stringify([this.kept, this.isEnabled]);
    if (key === this.drawn) return;
    this.drawn = key;
    show(this.chips, this.kept.length > 0);
    fill(this.chips, ...this.kept.map((words) => this.#chip(words)));
  }

  /** @param {string} words */
  #chip(words) {
    const remove = () => {
      this.kept = this.kept.filter((own) => own !== words);
      this.#draw();
      this.events.changed();
      this.input.focus();
    };
    const props = {
      type: "button",
      "aria-label": `Remove ${words}`,
      disabled: !this.isEnabled,
      onclick: remove,
    };
    return h("span", { class: "own-chip" }, h("bdi", null, words), h("button", props, "×"));
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
