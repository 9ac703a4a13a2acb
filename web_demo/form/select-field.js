// One or many of a list of options, all in view, with words of one's own where they are allowed.
// Long lists can be searched, and are built piece by piece as they are scrolled.

/** @import { MultiSelectQuestion, Option, SingleSelectQuestion, Value } from "../wire/types.d.ts" */
/** @import { FieldEvents, FieldInput } from "./fields.js" */
import { attribute, fill, h, say } from "../views/dom.js";
import { chosenByKey, pickByDigit } from "./choices.js";
import { OwnWords } from "./own-words.js";

const SEARCHED_BEYOND = 12;
const PIECE = 100;

/** @implements {FieldInput} */
export class SelectField {
  /**
   * @param {SingleSelectQuestion | MultiSelectQuestion} question
   * @param {FieldEvents} events
   */
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
    this.own = question.allowFreeformInput ? this.#ownWords() : undefined;
    this.count = h("p", { class: "choice-count", role: "status" });
    this.list = h("div", {
      class: isLong ? "choices is-long" : "choices",
      onscroll: () => this.#moreIfNear(),
    });
    this.element = h(
      "div",
      {
        class: "select-field",
        onkeydown: (/** @type {KeyboardEvent} */ event) => this.#key(event),
      },
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

  #ownWords() {
    return new OwnWords(this.isMany, {
      changed: () => this.#wrote(),
      left: () => this.events.left(),
      confirmed: () => this.events.confirmed(),
    });
  }

  // The list

  #filter() {
    const words = this.search?.value.trim().toLowerCase() ?? "";
    const fits = /** @param {Option} option */ (option) =>
      `${option.label} ${option.description ?? ""}`.toLowerCase().includes(words);
    this.matching = words ? this.question.options.filter(fits) : this.question.options;
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
    const piece = this.matching.slice(from, from + PIECE);
    this.list.append(...piece.map((option, at) => this.#choice(option, from + at)));
    this.#rove();
  }

  #moreIfNear() {
    const { scrollTop, scrollHeight, clientHeight } = this.list;
    if (this.inputs.size < this.matching.length && scrollTop + 2 * clientHeight > scrollHeight)
      this.#more();
  }

  /**
   * @param {Option} option
   * @param {number} index
   */
  #choice(option, index) {
    const input = h("input", {
      type: this.isMany ? "checkbox" : "radio",
      name: this.events.id,
      value: option.id,
      onchange: () => this.#picked(option.id, input.checked),
      onblur: () => this.events.left(),
      onfocus: () => this.#rove(input),
    });
    input.checked = this.chosen.has(option.id);
    input.disabled = !this.isEnabled;
    this.inputs.set(option.id, input);
    return h(
      "label",
      { class: "choice" },
      input,
      h(
        "span",
        { class: "choice-words" },
        h("bdi", { class: "choice-label" }, option.label),
        option.recommended && h("span", { class: "recommended" }, "Recommended"),
        option.description && h("bdi", { class: "choice-description" }, option.description),
      ),
      index < 9 && h("kbd", { class: "choice-digit", "aria-hidden": "true" }, index + 1),
    );
  }

  /** One stop of the Tab key for the whole list. */
  /** @param {HTMLInputElement} [at] */
  #rove(at) {
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
    say(this.count, [matches, chosen + more].filter(Boolean).join(" · "));
  }

  // What people do

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.target === this.search) {
      this.#searchKey(event);
    } else if (event.target !== this.own?.input) {
      if (event.key === "ArrowDown" && this.#isLast(event.target)) this.#more();
      chosenByKey(event, [...this.inputs.values()], () => this.events.confirmed());
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

  /**
   * @param {string} id
   * @param {boolean} isChosen
   */
  #picked(id, isChosen) {
    if (!this.isMany) {
      this.chosen.clear();
      this.own?.clear();
    }
    if (isChosen) this.chosen.add(id);
    else this.chosen.delete(id);
    this.#changed();
  }

  #wrote() {
    if (!this.isMany && this.own?.writing) this.chosen.clear();
    this.#changed();
  }

  #changed() {
    this.#marks();
    this.events.edited(this.value());
  }

  /** @param {number} digit */
  pick(digit) {
    return pickByDigit([...this.inputs.values()], digit);
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
    this.#rove();
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

  /**
   * @param {boolean} isInvalid
   * @param {string} describedBy
   */
  mark(isInvalid, describedBy) {
    attribute(this.list, "data-invalid", isInvalid);
    const [first] = this.inputs.values();
    if (first) attribute(first, "aria-describedby", describedBy || undefined);
  }
}

/**
 * What was chosen and what was written, whichever way a client put it.
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
