// Text that may be Markdown, as AHP marks it: a plain string never is.

/** @import { Markdown } from "../wire/types.d.ts" */
import { renderMarkdown } from "../text/markdown.js";
import { h } from "../views/dom.js";

/** @param {string | Markdown | undefined} text */
export function plainOf(text) {
  return text === undefined ? "" : typeof text === "string" ? text : text.markdown;
}

/**
 * @param {string | Markdown | undefined} text
 * @param {string} [className]
 */
export function textBlock(text, className = "") {
  if (typeof text === "object") {
    const block = h("div", { class: `prose ${className}` });
    renderMarkdown(block, text.markdown);
    return block;
  }
  return h("p", { class: `plain ${className}`, dir: "auto" }, text ?? "");
}
