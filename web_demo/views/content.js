// Content of turns and tool calls as elements. Nothing in it is fetched or executed.

/** @import { FileEdit, FileEdits, Markdown, ToolContent } from "../client/types.d.ts" */
import { renderMarkdown } from "../text/markdown.js";
import { h, icon } from "./dom.js";
import { ICONS } from "./icons.js";

const SHOWN_CHARS = 20_000;

/** @param {readonly ToolContent[]} content */
export function contentBlocks(content) {
  return content.map((piece) => {
    switch (piece.type) {
      case "text":
        return h(
          "pre",
          { class: "tool-code", tabindex: 0, role: "group", "aria-label": "Result", dir: "auto" },
          cut(piece.text),
        );
      case "fileEdit":
        return editBlock(piece);
      case "embeddedResource":
        return h(
          "p",
          { class: "note", dir: "auto" },
          `${piece.contentType}, ${piece.data.length} characters, not shown`,
        );
      case "resource":
        return h("p", { class: "note", dir: "auto" }, piece.uri);
      case "terminal":
      case "subagent":
        return h("p", { class: "note", dir: "auto" }, piece.title);
      default:
        return h("p", { class: "note" }, "Something this page cannot show");
    }
  });
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
    typeof text === "string" &&
      h("pre", { class: "tool-code", tabindex: 0, dir: "auto" }, cut(text)),
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

/** @param {string | Markdown | undefined} text @param {string} [className] */
export function textBlock(text, className = "") {
  if (typeof text === "object") {
    const block = h("div", { class: `prose ${className}` });
    renderMarkdown(block, text.markdown);
    return block;
  }
  return h("p", { class: `plain ${className}`, dir: "auto" }, text ?? "");
}
