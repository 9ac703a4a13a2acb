// A short word at the edge of the page, gone by itself.

import { h } from "./dom.js";

const SHOWN_FOR = 5000;
// A popover, since a dialog stands above everything that is none.
const place = h("div", {
  class: "toasts",
  role: "status",
  "aria-live": "polite",
  popover: "manual",
});

export function mountToasts() {
  document.body.append(place);
}

/**
 * @param {string} words
 * @param {() => void} [undo] offered as long as the words are there
 */
export function toast(words, undo) {
  const takeBack = () => {
    note.remove();
    undo?.();
  };
  const note = h(
    "p",
    { class: "toast", dir: "auto" },
    h("span", null, words),
    undo && h("button", { type: "button", class: "toast-undo", onclick: takeBack }, "Undo"),
  );
  place.append(note);
  raise();
  setTimeout(() => note.remove(), SHOWN_FOR);
}

/** The last to be shown is on top. */
function raise() {
  if (!("showPopover" in place)) return;
  if (place.matches(":popover-open")) place.hidePopover();
  place.showPopover();
}
