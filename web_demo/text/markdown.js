// Markdown as DOM nodes: the common part of it, and of GitHub's tables and task lists. HTML in it is
// text. For untrusted input: linear in its length, bounded in its depth, no HTML strings.

import { h } from "../views/dom.js";
import { renderInline } from "./inline.js";

const DEEPEST = 8;
const MOST_COLUMNS = 50;
/** Headings of content are below those of the page. */
const HEADING_OFFSET = 1;

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:\s+|$)/;
const RULE = /^ {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,3})([-+*]|\d{1,9}[.)])(\s+|$)/;
const TABLE_RULE = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;
const TASK = /^\[([ xX])\]\s/;

/**
 * @typedef {{ kind: "paragraph", raw: string }
 *   | { kind: "heading", raw: string, level: number }
 *   | { kind: "code", raw: string, language: string }
 *   | { kind: "quote", raw: string }
 *   | { kind: "list", raw: string, ordered: boolean, start: number, items: string[] }
 *   | { kind: "table", raw: string, rows: string[] }
 *   | { kind: "rule", raw: string }} Block
 */

/** @type {WeakMap<Element, Block[]>} */
const shown = new WeakMap();

/**
 * Shows a source in an element. Blocks that are the same as before are left alone, so that a text
 * that grows costs its last block and a reader's selection survives.
 * @param {Element} element
 * @param {string} source
 */
export function renderMarkdown(element, source) {
  const before = shown.get(element) ?? [];
  const after = blocksOf(source);
  const changed = after.findIndex((block, index) => !isSame(before[index], block));
  const unchanged = changed === -1 ? after.length : changed;
  while (element.childNodes.length > unchanged) element.lastChild?.remove();
  for (const block of after.slice(unchanged)) element.append(nodeOf(block, 0));
  shown.set(element, after);
}

/** @param {Block | undefined} a @param {Block} b */
function isSame(a, b) {
  return a !== undefined && a.kind === b.kind && a.raw === b.raw;
}

/** @param {string} source @returns {Block[]} */
function blocksOf(source) {
  const lines = source.replaceAll("\r\n", "\n").replaceAll("\t", "    ").split("\n");
  const blocks = [];
  let at = 0;
  while (at < lines.length) {
    if (isBlank(lines[at])) {
      at += 1;
      continue;
    }
    const [block, next] = blockAt(lines, at);
    blocks.push(block);
    at = next;
  }
  return blocks;
}

/**
 * The block that begins at a line, and the line after it.
 * @param {string[]} lines
 * @param {number} at
 * @returns {[Block, number]}
 */
function blockAt(lines, at) {
  const line = /** @type {string} */ (lines[at]);
  const fence = FENCE.exec(line);
  if (fence) return fenced(lines, at, /** @type {string} */ (fence[1]), fence[2] ?? "");
  const heading = HEADING.exec(line);
  if (heading) {
    const raw = line.slice(heading[0].length).replace(/\s#+\s*$/, "");
    return [{ kind: "heading", raw, level: /** @type {string} */ (heading[1]).length }, at + 1];
  }
  if (RULE.test(line)) return [{ kind: "rule", raw: line }, at + 1];
  if (QUOTE.test(line)) return quoted(lines, at);
  if (ITEM.test(line)) return listed(lines, at);
  if (line.includes("|") && TABLE_RULE.test(lines[at + 1] ?? "")) return tabled(lines, at);
  return paragraph(lines, at);
}

/**
 * A fence that is never closed reaches to the end: the text may still be coming.
 * @param {string[]} lines
 * @param {number} at
 * @param {string} fence
 * @param {string} info
 * @returns {[Block, number]}
 */
function fenced(lines, at, fence, info) {
  const isClose = /** @param {string} line */ (line) => {
    const text = line.trim();
    return text.length >= fence.length && text === fence.charAt(0).repeat(text.length);
  };
  let end = at + 1;
  while (end < lines.length && !isClose(/** @type {string} */ (lines[end]))) end += 1;
  const raw = lines.slice(at + 1, end).join("\n");
  return [{ kind: "code", raw, language: info.trim().split(/\s/)[0] ?? "" }, end + 1];
}

/** @param {string[]} lines @param {number} at @returns {[Block, number]} */
function quoted(lines, at) {
  let end = at;
  while (end < lines.length && QUOTE.test(/** @type {string} */ (lines[end]))) end += 1;
  const raw = lines
    .slice(at, end)
    .map((line) => line.replace(QUOTE, ""))
    .join("\n");
  return [{ kind: "quote", raw }, end];
}

/** @param {string[]} lines @param {number} at @returns {[Block, number]} */
function listed(lines, at) {
  const first = /** @type {RegExpExecArray} */ (ITEM.exec(/** @type {string} */ (lines[at])));
  const marker = /** @type {string} */ (first[2]);
  const ordered = /\d/.test(marker);
  /** @type {string[][]} */
  const items = [];
  let end = at;
  let indent = 0;
  for (; end < lines.length; end += 1) {
    const line = /** @type {string} */ (lines[end]);
    const item = ITEM.exec(line);
    const isNext = item !== null && /\d/.test(item[2] ?? "") === ordered && !RULE.test(line);
    if (isNext && (items.length === 0 || indentOf(line) < indent)) {
      indent = Math.min(item[0].length, indentOf(line) + (item[2] ?? "").length + 4);
      items.push([line.slice(item[0].length)]);
    } else if (isBlank(line) || indentOf(line) >= indent) {
      if (isBlank(line) && !continues(lines, end, indent, ordered)) break;
      items.at(-1)?.push(line.slice(Math.min(indent, indentOf(line))));
    } else if (isBlank(lines[end - 1]) || startsBlock(line)) {
      break;
    } else {
      items.at(-1)?.push(line);
    }
  }
  const raw = lines.slice(at, end).join("\n");
  const start = ordered ? Number.parseInt(marker, 10) : 1;
  return [{ kind: "list", raw, ordered, start, items: items.map((item) => item.join("\n")) }, end];
}

/**
 * Whether a list goes on after a blank line.
 * @param {string[]} lines
 * @param {number} at
 * @param {number} indent
 * @param {boolean} ordered
 */
function continues(lines, at, indent, ordered) {
  const next = lines[at + 1];
  if (next === undefined || isBlank(next)) return false;
  const item = ITEM.exec(next);
  return indentOf(next) >= indent || (item !== null && /\d/.test(item[2] ?? "") === ordered);
}

/** @param {string[]} lines @param {number} at @returns {[Block, number]} */
function tabled(lines, at) {
  let end = at + 2;
  while (end < lines.length && !isBlank(lines[end]) && (lines[end] ?? "").includes("|")) end += 1;
  const rows = [/** @type {string} */ (lines[at]), ...lines.slice(at + 2, end)];
  return [{ kind: "table", raw: lines.slice(at, end).join("\n"), rows }, end];
}

/** @param {string[]} lines @param {number} at @returns {[Block, number]} */
function paragraph(lines, at) {
  let end = at + 1;
  while (end < lines.length && !isBlank(lines[end]) && !startsBlock(lines[end] ?? "")) end += 1;
  return [{ kind: "paragraph", raw: lines.slice(at, end).join("\n") }, end];
}

/** @param {string} line */
function startsBlock(line) {
  return [FENCE, HEADING, RULE, QUOTE, ITEM].some((start) => start.test(line));
}

/** @param {string | undefined} line */
function isBlank(line) {
  return line === undefined || line.trim() === "";
}

/** @param {string} line */
function indentOf(line) {
  return line.length - line.trimStart().length;
}

/** @param {Block} block @param {number} depth @returns {Node} */
function nodeOf(block, depth) {
  switch (block.kind) {
    case "heading":
      return withText(`h${Math.min(6, block.level + HEADING_OFFSET)}`, block.raw);
    case "code":
      return codeOf(block.raw, block.language);
    case "rule":
      return h("hr");
    case "quote":
      return nested("blockquote", block.raw, depth);
    case "list":
      return listOf(block, depth);
    case "table":
      return tableOf(block.rows);
    default:
      return withText("p", block.raw);
  }
}

/** @param {string} tag @param {string} text */
function withText(tag, text) {
  const element = document.createElement(tag);
  renderInline(element, text);
  // Last: a browser checks all of it again for each child that is added.
  element.dir = "auto";
  return element;
}

/** @param {string} tag @param {string} source @param {number} depth */
function nested(tag, source, depth) {
  const element = document.createElement(tag);
  if (depth >= DEEPEST) {
    element.textContent = source;
  } else {
    for (const block of blocksOf(source)) element.append(nodeOf(block, depth + 1));
  }
  return element;
}

/** @param {string} code @param {string} language */
function codeOf(code, language) {
  const label = language ? `Code, ${language}` : "Code";
  return h("pre", { tabindex: 0, role: "group", "aria-label": label }, h("code", { dir: "ltr" }, code));
}

/** @param {Extract<Block, { kind: "list" }>} block @param {number} depth */
function listOf(block, depth) {
  const { ordered, start } = block;
  const list = ordered ? h("ol", { start: start === 1 ? undefined : start }) : h("ul");
  for (const source of block.items) {
    const task = TASK.exec(source);
    const item = nested("li", task ? source.slice(task[0].length) : source, depth);
    if (task) item.prepend(h("span", { class: "task-mark" }, task[1] === " " ? "☐ " : "☑ "));
    unwrapOnly(item);
    item.dir = "auto";
    list.append(item);
  }
  return list;
}

/**
 * A tight item has no paragraph around its text.
 * @param {HTMLElement} item
 */
function unwrapOnly(item) {
  const paragraph = item.querySelector(":scope > p");
  if (paragraph && item.querySelectorAll(":scope > p").length === 1) {
    paragraph.replaceWith(...paragraph.childNodes);
  }
}

/** @param {string[]} rows */
function tableOf(rows) {
  const [head = [], ...body] = rows.map(cellsOf);
  const columns = Math.min(head.length, MOST_COLUMNS);
  return h(
    "div",
    { class: "table-frame", tabindex: 0, role: "group", "aria-label": "Table" },
    h(
      "table",
      null,
      h("thead", null, rowOf(head, columns, "th")),
      h("tbody", null, body.map((cells) => rowOf(cells, columns, "td"))),
    ),
  );
}

/** @param {string} line */
function cellsOf(line) {
  const cells = line
    .trim()
    .replace(/^\|/, "")
    .split(/(?<!\\)\|/);
  if (cells.length > 1 && isBlank(cells.at(-1))) cells.pop();
  return cells.map((cell) => cell.trim().replaceAll("\\|", "|"));
}

/** @param {string[]} cells @param {number} columns @param {"th" | "td"} tag */
function rowOf(cells, columns, tag) {
  const filled = Array.from({ length: columns }, (_, column) => cells[column] ?? "");
  return h("tr", null, filled.map((text) => withText(tag, text)));
}
