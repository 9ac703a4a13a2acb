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
  return note;
}

/**
 * Something that is done in a few seconds, and at once when the page is hidden or left.
 * @typedef {{ now(): void, drop(): void }} Delayed
 */

/**
 * @param {string} words what is about to be done
 * @param {() => void} act
 * @param {() => void} [undone]
 * @returns {Delayed} to do it now, or not at all
 */
export function unlessUndone(words, act, undone) {
  let isOpen = true;
  /** @param {(() => void) | undefined} next */
  const end = (next) => {
    if (!isOpen) return;
    isOpen = false;
    clearTimeout(timer);
    note.remove();
    removeEventListener("pagehide", now);
    document.removeEventListener("visibilitychange", ifHidden);
    next?.();
  };
  const now = () => end(act);
  const ifHidden = () => document.visibilityState === "hidden" && now();
  const timer = setTimeout(now, SHOWN_FOR);
  const note = toast(words, () => end(undone));
  addEventListener("pagehide", now);
  document.addEventListener("visibilitychange", ifHidden);
  return { now, drop: () => end(undefined) };
}

/** The last to be shown is on top. */
function raise() {
  if (!("showPopover" in place)) return;
  if (place.matches(":popover-open")) place.hidePopover();
  place.showPopover();
}
