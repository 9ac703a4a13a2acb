// One or several of a list of options, all visible, with free-form answers where allowed. Long
// lists can be searched, and are rendered in chunks while scrolling.

/**
 * @import {
 *   MultiSelectQuestion, Option, SingleSelectQuestion, Value,
 * } from "../../client/types.d.ts"
 */
/** @import { InputEvents, QuestionInput } from "./inputs.js" */
import { attribute, choice, fill, h, setText } from "../../views/dom.js";
import { FreeformInput } from "./freeform-input.js";

const SEARCHED_BEYOND = 12;
const CHUNK = 100;

/** @implements {QuestionInput} */
export class SelectInput {
  /** @param {SingleSelectQuestion | MultiSelectQuestion} question @param {InputEvents} events */
  constructor(question, events) {
    this.question = question;
    this.events = events;
    this.isMany = question.kind === "multi-select";
    this.isEnabled = true;
    /** @type {Set<string>} */
    this.chosen = new Set();
    /** @type {readonly Option[]} */
    this.matching = question.options;
    /** @type {Map<string, HTMLInputElement>} */
    this.inputs = new Map();
    const isLong = question.options.length > SEARCHED_BEYOND;
    this.search = isLong ? this.#searchInput() : undefined;
    this.own = question.allowFreeformInput
      ? new FreeformInput(this.isMany, () => this.#freeformChanged(), events)
      : undefined;
    this.count = h("p", { class: "choice-count hint", role: "status" });
    this.list = h("div", {
      class: isLong ? "choices stack is-long" : "choices stack",
      onscroll: () => this.#moreIfNear(),
    });
    this.element = h(
      "div",
      { class: "select-field", onkeydown: (event) => this.#key(event) },
      this.search,
      isLong && this.count,
      this.list,
      this.own?.elements,
    );
    this.#restart();
  }

  #searchInput() {
    return h("input", {
      class: "field-input choice-search",
      type: "search",
      placeholder: `Search ${this.question.options.length} options`,
      "aria-label": "Search the options",
      autocomplete: "off",
      oninput: () => this.#filter(),
    });
  }

  // The list

  #filter() {
    const query = this.search?.value.trim().toLowerCase() ?? "";
    const fits = /** @param {Option} option */ (option) =>
      `${option.label} ${option.description ?? ""}`.toLowerCase().includes(query);
    this.matching = query ? this.question.options.filter(fits) : this.question.options;
    this.#restart();
  }

  #restart() {
    this.inputs.clear();
    fill(this.list);
    this.list.scrollTop = 0;
    this.#more();
    this.#counted();
  }

  #more() {
    const from = this.inputs.size;
    const chunk = this.matching.slice(from, from + CHUNK);
    this.list.append(...chunk.map((option, at) => this.#choice(option, from + at)));
    this.#setTabStop();
  }

  #moreIfNear() {
    const { scrollTop, scrollHeight, clientHeight } = this.list;
    if (this.inputs.size < this.matching.length && scrollTop + 2 * clientHeight > scrollHeight)
      this.#more();
  }

  /** @param {Option} option @param {number} index */
  #choice(option, index) {
    const input = h("input", {
      type: this.isMany ? "checkbox" : "radio",
      name: this.events.id,
      value: option.id,
      onchange: () => this.#picked(option.id, input.checked),
      onblur: () => this.events.left(),
      onfocus: () => this.#setTabStop(input),
    });
    input.checked = this.chosen.has(option.id);
    input.disabled = !this.isEnabled;
    this.inputs.set(option.id, input);
    const label = choice(
      input,
      option.label,
      option.recommended && h("span", { class: "recommended" }, "Recommended"),
      option.description && h("bdi", { class: "choice-description hint" }, option.description),
    );
    if (index < 9) label.append(h("kbd", { class: "choice-digit", "aria-hidden": "true" }, index + 1));
    return label;
  }

  /** A roving tabindex: one Tab stop for the whole list. */
  /** @param {HTMLInputElement} [at] */
  #setTabStop(at) {
    const inputs = [...this.inputs.values()];
    const stop = at ?? inputs.find((input) => input.checked) ?? inputs[0];
    for (const input of inputs) input.tabIndex = input === stop ? 0 : -1;
  }

  #counted() {
    const total = this.question.options.length;
    const found = this.matching.length;
    const labels = this.question.options.filter((o) => this.chosen.has(o.id)).map((o) => o.label);
    const chosen = labels.length > 0 ? `Chosen: ${labels.slice(0, 5).join(", ")}` : "";
    const more = labels.length > 5 ? ` and ${labels.length - 5} more` : "";
    const matches = found < total ? `${found} of ${total} match` : "";
    setText(this.count, [matches, chosen + more].filter(Boolean).join(" · "));
  }

  // Input

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.target === this.search) {
      this.#searchKey(event);
    } else if (event.target !== this.own?.input) {
      if (event.key === "ArrowDown" && this.#isLast(event.target)) this.#more();
      handleChoiceKey(event, [...this.inputs.values()], () => this.events.confirmed());
    }
  }

  /** @param {EventTarget | null} target */
  #isLast(target) {
    return [...this.inputs.values()].at(-1) === target && this.inputs.size < this.matching.length;
  }

  /** @param {KeyboardEvent} event */
  #searchKey(event) {
    const [first] = this.inputs.values();
    if (event.key === "ArrowDown" || event.key === "Enter") {
      event.preventDefault();
      first?.focus();
    } else if (event.key === "Escape" && this.search?.value) {
      event.stopPropagation();
      this.search.value = "";
      this.#filter();
    }
  }

  /** @param {string} id @param {boolean} isChosen */
  #picked(id, isChosen) {
    if (!this.isMany) {
      this.chosen.clear();
      this.own?.clear();
    }
    if (isChosen) this.chosen.add(id);
    else this.chosen.delete(id);
    this.#changed();
  }

  #freeformChanged() {
    if (!this.isMany && this.own?.typed) this.chosen.clear();
    this.#changed();
  }

  #changed() {
    this.#marks();
    this.events.edited(this.value());
  }

  /** @param {number} digit */
  pick(digit) {
    return chooseByDigit([...this.inputs.values()], digit);
  }

  // What is shown

  /** @returns {Value | undefined} */
  value() {
    const ids = this.question.options.map((o) => o.id).filter((id) => this.chosen.has(id));
    const own = this.own?.values ?? [];
    if (ids.length + own.length === 0) return undefined;
    const freeform = own.length > 0 ? { freeformValues: own } : {};
    return this.isMany
      ? { kind: "selected-many", value: ids, ...freeform }
      : { kind: "selected", value: ids[0] ?? "", ...freeform };
  }

  /** @param {Value | undefined} value */
  show(value) {
    const [ids, own] = partsOf(value, this.question.options);
    this.chosen = new Set(ids);
    this.own?.show(own);
    this.#marks();
  }

  #marks() {
    for (const [id, input] of this.inputs) input.checked = this.chosen.has(id);
    this.#counted();
    this.#setTabStop();
  }

  problem() {
    return undefined;
  }

  /** @param {boolean} isEnabled */
  enable(isEnabled) {
    if (this.isEnabled === isEnabled) return;
    this.isEnabled = isEnabled;
    for (const input of this.inputs.values()) input.disabled = !isEnabled;
    this.own?.enable(isEnabled);
  }

  focus() {
    const first = [...this.inputs.values()].find((input) => input.tabIndex === 0);
    (this.search ?? first ?? this.own)?.focus();
  }

  /** @param {boolean} isInvalid @param {string} describedBy */
  mark(isInvalid, describedBy) {
    attribute(this.list, "data-invalid", isInvalid);
    const [first] = this.inputs.values();
    if (first) attribute(first, "aria-describedby", describedBy || undefined);
  }
}

/**
 * The chosen options and the free-form values of a value of any client.
 * @param {Value | undefined} value
 * @param {readonly Option[]} options
 * @returns {[readonly string[], readonly string[]]}
 */
function partsOf(value, options) {
  if (value?.kind === "selected-many") return [value.value, value.freeformValues ?? []];
  if (value?.kind !== "selected") return [[], []];
  const isOption = options.some((option) => option.id === value.value);
  const own = value.freeformValues ?? [];
  return isOption ? [[value.value], own] : [[], value.value ? [value.value, ...own] : own];
}

// Keys of every list of choices: arrows move, Space toggles (by the browser), Enter confirms,
// digits choose.

/**
 * @param {KeyboardEvent} event
 * @param {readonly HTMLInputElement[]} choices the choices that can be focused, in order
 * @param {() => void} confirmed
 */
export function handleChoiceKey(event, choices, confirmed) {
  const at = choices.indexOf(/** @type {HTMLInputElement} */ (event.target));
  if (at < 0 || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (event.key === "Enter") confirmed();
  else if (step) choices[(at + step + choices.length) % choices.length]?.focus();
  else if (!/^[1-9]$/.test(event.key) || !chooseByDigit(choices, Number(event.key))) return;
  event.preventDefault();
}

/**
 * @param {readonly HTMLInputElement[]} choices
 * @param {number} digit
 * @returns {boolean} whether there is such a choice
 */
export function chooseByDigit(choices, digit) {
  const choice = choices[digit - 1];
  if (choice === undefined || choice.disabled) return false;
  choice.focus();
  choice.click();
  return true;
}
