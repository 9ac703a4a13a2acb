// What is shown before there is any session: how one comes about.

/** @import { Child } from "./dom.js" */
import { copyText } from "./clipboard.js";
import { h, icon } from "./dom.js";
import { ICONS } from "./icons.js";

const USUAL = ["http://127.0.0.1:8737", "http://localhost:8737"];

/** A line for a terminal that asks here, in the pieces in which it may be broken. */
export function askLine(origin = location.origin) {
  const where = USUAL.includes(origin) ? [] : [`--url ${origin}`];
  return ["session-server ask", '"Shall we deploy?"', ...where];
}

/**
 * @param {(() => void) | undefined} create nothing for those who may not
 * @returns {Child[]}
 */
export function beginning(create) {
  if (!create)
    return [
      h("h2", null, "Nothing here yet"),
      h("p", null, "What is shared with you appears here by itself."),
    ];
  return [
    h("h2", null, "No sessions yet"),
    h("p", null, "Start one here, or ask from a terminal. It appears by itself."),
    h("button", { type: "button", class: "primary", onclick: create }, "New session"),
    commandOf(askLine()),
  ];
}

/** @param {readonly string[]} line */
function commandOf(line) {
  const copy = () => void copyText(line.join(" "), "Copied.");
  return h(
    "div",
    { class: "command" },
    h("code", null, ...line.flatMap((piece) => [h("span", null, piece), " "])),
    h(
      "button",
      { type: "button", class: "icon-button", "aria-label": "Copy the line", onclick: copy },
      icon(ICONS.copy),
    ),
  );
}
