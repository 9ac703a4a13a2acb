// A short word at the edge of the page, gone by itself.

import { h } from "./dom.js";

const SHOWN_FOR = 5000;
const place = h("div", { class: "toasts", role: "status", "aria-live": "polite" });

export function mountToasts() {
  document.body.append(place);
}

/** @param {string} words */
export function toast(words) {
  const note = h("p", { class: "toast", dir: "auto" }, words);
  place.append(note);
  setTimeout(() => note.remove(), SHOWN_FOR);
}
