// Content of turns and tool calls as elements. Nothing in it is fetched or executed.

/** @import { FileEdit, FileEdits, Markdown, ToolContent } from "../../client/types.d.ts" */
import { renderMarkdown } from "../../text/markdown.js";
import { h, icon } from "../dom.js";
import { ICONS } from "../icons.js";

const SHOWN_CHARS = 20_000;

/** @param {readonly ToolContent[]} content */
export function contentBlocks(content) {
  return content.map((piece) => {
    switch (piece.type) {
      case "text":
        return codeBlock(cut(piece.text), "Result", "auto");
      case "fileEdit":
        return editBlock(piece);
      case "embeddedResource":
        return note(`${piece.contentType}, ${piece.data.length} characters, not shown`);
      case "resource":
        return note(piece.uri);
      case "terminal":
      case "subagent":
        return note(piece.title);
      default:
        return note("Something this page cannot show");
    }
  });
}

/** @param {string} text */
const note = (text) => h("p", { class: "note hint", dir: "auto" }, text);

/** @param {string} text @param {string} [label] @param {string} [dir] */
export function codeBlock(text, label, dir) {
  const about = label ? { role: "group", "aria-label": label } : {};
  return h("pre", { class: "tool-code", tabindex: 0, ...about, dir }, text);
}

/** @param {FileEdits} edits */
export function editsBlock(edits) {
  return h("div", { class: "edits" }, ...edits.items.map(editBlock));
}

/** @param {FileEdit} edit */
function editBlock(edit) {
  const name = (edit.after?.uri ?? edit.before?.uri ?? "").replace(/^file:\/\/(?=\/)/, "");
  const verb = edit.before === undefined ? "New" : edit.after === undefined ? "Deleted" : "Changed";
  const text = edit.after?.content;
  return h(
    "details",
    { class: "edit" },
    h(
      "summary",
      null,
      icon(ICONS.chevron),
      h("span", null, `${verb} `, h("bdi", { class: "edit-name" }, name)),
      edit.diff && h("span", { class: "edit-added" }, `+${edit.diff.added ?? 0}`),
      edit.diff && h("span", { class: "edit-removed" }, `−${edit.diff.removed ?? 0}`),
    ),
    typeof text === "string" && codeBlock(cut(text), undefined, "auto"),
  );
}

/** @param {string} text */
function cut(text) {
  return text.length <= SHOWN_CHARS
    ? text
    : `${text.slice(0, SHOWN_CHARS)}\n… ${text.length - SHOWN_CHARS} more characters`;
}

// Text that is Markdown if AHP says so; a plain string never is.

/** @param {string | Markdown | undefined} text */
export function plainOf(text) {
  return text === undefined ? "" : typeof text === "string" ? text : text.markdown;
}

/** @param {string | Markdown} text @param {string} [className] */
export function textBlock(text, className = "") {
  if (typeof text === "string") return h("p", { class: `plain ${className}`, dir: "auto" }, text);
  const block = h("div", { class: `prose ${className}` });
  renderMarkdown(block, text.markdown);
  return block;
}
