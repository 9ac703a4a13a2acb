// One polite live region: what a screen reader is told of that happened elsewhere on the page.

import { h } from "./dom.js";

const region = h("div", {
  class: "unseen",
  role: "status",
  "aria-live": "polite",
  id: "announcer",
});
/** @type {string[]} */
const waiting = [];
let isBusy = false;
const PAUSE = 700;
const MOST_CHARS = 240;

export function mountAnnouncer() {
  document.body.append(region);
}

/**
 * Said after what is being said: two at once would swallow one.
 * @param {string} words
 */
export function announce(words) {
  waiting.push(words.length > MOST_CHARS ? `${words.slice(0, MOST_CHARS)}…` : words);
  if (!isBusy) next();
}

function next() {
  const words = waiting.shift();
  isBusy = words !== undefined;
  if (words === undefined) return;
  region.textContent = "";
  setTimeout(() => {
    region.textContent = words;
    setTimeout(next, PAUSE);
  }, 50);
}
