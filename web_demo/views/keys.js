// Keys for the whole page; those of a form are the form's.

import { openDialog } from "./dialog.js";
import { h } from "./dom.js";

const KEYS = [
  ["/", "Filter the sessions"],
  ["w", "Go to the next waiting question"],
  ["n", "New session"],
  ["↑ ↓", "Move through options or the list"],
  ["Space", "Choose an option"],
  ["1 … 9", "Choose an option by its number"],
  ["Enter", "Mark this question done and go on; send it if it is the only one"],
  ["← →", "Previous or next question (when not typing)"],
  ["y n", "Go to Yes or No, where Enter sends"],
  ["Ctrl Enter", "Review the answers, then send them (⌘ Enter on a Mac)"],
  ["Esc", "Leave a field; nothing is lost"],
  ["?", "This list"],
];

export function showKeys() {
  const rows = KEYS.map(([key, words]) =>
    h("div", null, h("dt", null, h("kbd", null, key)), h("dd", null, words)),
  );
  openDialog("Keyboard shortcuts", h("dl", { class: "keys" }, ...rows));
}

/** @param {Readonly<Record<string, () => void>>} acts */
export function listenToKeys(acts) {
  document.addEventListener("keydown", (event) => {
    const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey && !event.isComposing;
    const act = event.defaultPrevented ? undefined : acts[event.key];
    if (!act || !isPlain || isTyping(event.target) || document.querySelector("dialog[open]"))
      return;
    event.preventDefault();
    act();
  });
}

/** @param {EventTarget | null} target */
function isTyping(target) {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement)
    return (
      !["radio", "checkbox", "button"].includes(target.type) || target.name.startsWith("question-")
    );
  return target.isContentEditable || ["TEXTAREA", "SELECT"].includes(target.tagName);
}
