// Markdown inside a line: emphasis, code, links. One pass over the text, a bounded stack of what is
// open, and DOM nodes as the only output. What is not understood stays text.

import { h } from "../views/dom.js";
import { safeAddress } from "./addresses.js";

const DEEPEST = 12;
const LONGEST_ADDRESS = 2000;
const ESCAPABLE = /[!-/:-@[-`{-~]/;
const BARE_ADDRESS = /https?:\/\/[^\s<>"'`\\^{|}]{1,2001}/y;
const ANGLED_ADDRESS = /<(https?:\/\/[^\s<>]{1,2000}|mailto:[^\s<>]{1,320})>/y;
const WORD = /[\p{L}\p{N}_]/u;
const MARKS = ["**", "__", "~~", "*", "_"];
/** @type {Readonly<Record<string, "strong" | "em" | "del">>} */
const TAGS = { "**": "strong", __: "strong", "~~": "del", "*": "em", _: "em" };

/** @typedef {{ mark: string, into: Node }} Open */

/** @param {Node} parent @param {string} text */
export function renderInline(parent, text) {
  new Inline(parent, text).render();
}

/**
 * A link that shows its target if its text does not.
 * @param {URL} url
 * @param {Node} content
 */
function linkTo(url, content) {
  const isHidden = url.host !== "" && !(content.textContent ?? "").includes(url.host);
  return h(
    "a",
    { href: url.href, target: "_blank", rel: "noopener noreferrer nofollow" },
    content,
    isHidden && h("span", { class: "link-place" }, ` (${url.host})`),
  );
}

class Inline {
  /** @param {Node} parent @param {string} text */
  constructor(parent, text) {
    this.text = text;
    this.at = 0;
    this.plain = "";
    /** @type {Open[]} */
    this.stack = [{ mark: "", into: parent }];
    this.ticks = runsOfTicks(text);
  }

  render() {
    while (this.at < this.text.length) {
      if (!this.#special()) {
        this.plain += this.text[this.at];
        this.at += 1;
      }
    }
    this.#flush();
    while (this.stack.length > 1) this.#unwrap();
  }

  /** Parses what starts here, if it is more than a letter. */
  #special() {
    switch (this.text[this.at]) {
      case "\\":
        return this.#escape();
      case "\n":
        return this.#lineBreak();
      case "`":
        return this.#code();
      case "*":
      case "_":
      case "~":
        return this.#emphasis();
      case "!":
        return this.text[this.at + 1] === "[" && this.#open("![");
      case "[":
        return this.#open("[");
      case "]":
        return this.#closeLink();
      case "<":
        return this.#angled();
      case "h":
        return this.#bare();
      default:
        return false;
    }
  }

  #escape() {
    const next = this.text[this.at + 1];
    if (next === undefined || !ESCAPABLE.test(next)) return false;
    this.plain += next;
    this.at += 2;
    return true;
  }

  #lineBreak() {
    const isHard = this.plain.endsWith("  ") || this.plain.endsWith("\\");
    let end = this.plain.length;
    while (end > 0 && " \\".includes(/** @type {string} */ (this.plain[end - 1]))) end -= 1;
    this.plain = this.plain.slice(0, end);
    this.at += 1;
    if (isHard) {
      this.#put(document.createElement("br"));
    } else {
      this.plain += "\n";
    }
    return true;
  }

  #code() {
    const size = tickRun(this.text, this.at);
    const close = this.ticks.closing(size, this.at + size);
    if (close === undefined) {
      this.plain += "`".repeat(size);
      this.at += size;
      return true;
    }
    const inside = this.text.slice(this.at + size, close).replaceAll("\n", " ");
    this.at = close + size;
    this.#put(h("code", null, /^ .*[^ ].* $/.test(inside) ? inside.slice(1, -1) : inside));
    return true;
  }

  #emphasis() {
    const before = this.text[this.at - 1] ?? " ";
    const inner = /\S/.test(before) ? (this.stack.at(-1)?.mark ?? "") : "";
    const mark = [inner, ...MARKS].find((m) => m in TAGS && this.text.startsWith(m, this.at));
    if (mark === undefined) return false;
    const after = this.text[this.at + mark.length] ?? " ";
    const depth = this.stack.findLastIndex((open) => open.mark === mark);
    if (depth > 0 && /\S/.test(before) && !(mark.startsWith("_") && WORD.test(after))) {
      this.at += mark.length;
      this.#put(this.#close(depth).into);
      return true;
    }
    if (!/\S/.test(after) || (mark.startsWith("_") && WORD.test(before))) return false;
    return this.#open(mark);
  }

  /** @param {string} mark */
  #open(mark) {
    if (this.stack.length > DEEPEST) return false;
    this.#flush();
    const tag = TAGS[mark];
    const into = tag ? document.createElement(tag) : document.createDocumentFragment();
    this.stack.push({ mark, into });
    this.at += mark.length;
    return true;
  }

  /** Takes what was opened at a depth from the stack; what is open in it is text. */
  /** @param {number} depth */
  #close(depth) {
    this.#flush();
    while (this.stack.length > depth + 1) this.#unwrap();
    return /** @type {Open} */ (this.stack.pop());
  }

  #closeLink() {
    const depth = this.stack.findLastIndex((open) => open.mark.endsWith("["));
    if (depth < 1) return false;
    const address = this.#address();
    if (address === undefined) return false;
    const { into, mark } = this.#close(depth);
    this.#put(linked(address, into, mark));
    return true;
  }

  /** Reads `](address "title")`, and goes on after it. */
  #address() {
    if (this.text[this.at + 1] !== "(") return undefined;
    const start = this.at + 2;
    const end = closingParenthesis(this.text, start);
    if (end === undefined) return undefined;
    this.at = end + 1;
    const inside = this.text.slice(start, end).trim();
    return inside.replace(/\s+["'(].*$/s, "").replace(/^<(.*)>$/, "$1");
  }

  #angled() {
    ANGLED_ADDRESS.lastIndex = this.at;
    const found = ANGLED_ADDRESS.exec(this.text);
    if (found === null) return false;
    this.at += found[0].length;
    this.#putAddress(/** @type {string} */ (found[1]));
    return true;
  }

  #bare() {
    if (WORD.test(this.text[this.at - 1] ?? " ")) return false;
    BARE_ADDRESS.lastIndex = this.at;
    const found = BARE_ADDRESS.exec(this.text);
    const isInLink = this.stack.some((open) => open.mark.endsWith("["));
    if (found === null || isInLink || found[0].length > LONGEST_ADDRESS) return false;
    const address = found[0].replace(/[.,;:!?*_~)\]]+$/, "");
    this.at += address.length;
    this.#putAddress(address);
    return true;
  }

  /** @param {string} address */
  #putAddress(address) {
    const url = safeAddress(address);
    const content = document.createTextNode(address);
    this.#put(url ? linkTo(url, content) : content);
  }

  /** What was opened and never closed is text, and so is its mark. */
  #unwrap() {
    const { into, mark } = /** @type {Open} */ (this.stack.pop());
    this.#top().append(mark, ...into.childNodes);
  }

  /** @param {Node} node */
  #put(node) {
    this.#flush();
    this.#top().append(node);
  }

  #flush() {
    if (this.plain) this.#top().append(this.plain);
    this.plain = "";
  }

  #top() {
    return /** @type {Element} */ (/** @type {Open} */ (this.stack.at(-1)).into);
  }
}

/**
 * Images are never fetched, which would show a foreign server who reads; they stay links.
 * @param {string} address
 * @param {Node} content
 * @param {string} mark
 */
function linked(address, content, mark) {
  const url = safeAddress(address);
  const shown = content.textContent ? content : document.createTextNode(url?.host ?? address);
  if (url) return linkTo(url, shown);
  const whole = document.createDocumentFragment();
  whole.append(mark, shown, `](${address})`);
  return whole;
}

/** @param {string} text @param {number} start */
function closingParenthesis(text, start) {
  let depth = 0;
  const end = Math.min(text.length, start + LONGEST_ADDRESS);
  for (let at = start; at < end; at += 1) {
    if (text[at] === "(") depth += 1;
    if (text[at] === ")" && depth-- === 0) return at;
  }
  return undefined;
}

/** @param {string} text @param {number} at */
function tickRun(text, at) {
  let end = at;
  while (text[end] === "`") end += 1;
  return end - at;
}

/**
 * The positions of runs of backticks by length, so that finding a closing one is not a new search.
 * @param {string} text
 */
function runsOfTicks(text) {
  /** @type {Map<number, number[]>} */
  const runs = new Map();
  for (const { 0: run, index } of text.matchAll(/`+/g)) {
    const places = runs.get(run.length) ?? [];
    runs.set(run.length, places);
    places.push(index);
  }
  for (const places of runs.values()) places.reverse();
  return {
    /** @param {number} size @param {number} from */
    closing(size, from) {
      const places = runs.get(size) ?? [];
      while (places.length > 0 && /** @type {number} */ (places.at(-1)) < from) places.pop();
      return places.at(-1);
    },
  };
}
