// Short messages: toasts, announcements for screen readers, and copying with a confirmation.

import { h } from "./dom.js";

const SHOWN_FOR = 5000;
// A popover, since a modal dialog covers everything else.
const place = h("div", { class: "toasts", role: "status", "aria-live": "polite", popover: "manual" });

/**
 * @param {string} message
 * @param {() => void} [undo] offered as long as it is shown
 */
export function toast(message, undo) {
  const undoNow = () => {
    note.remove();
    undo?.();
  };
  const note = h(
    "p",
    { class: "toast row", dir: "auto" },
    h("span", null, message),
    undo && h("button", { class: "toast-undo", onclick: undoNow }, "Undo"),
  );
  place.append(note);
  bringToTop();
  setTimeout(() => note.remove(), SHOWN_FOR);
  return note;
}

/**
 * Something that is done in a few seconds, or at once when the page is hidden or closed.
 * @typedef {{ now(): void, drop(): void }} Delayed
 */

/**
 * @param {string} message what is about to be done
 * @param {() => void} act
 * @param {() => void} [undone]
 * @returns {Delayed} to do it now, or not at all
 */
export function unlessUndone(message, act, undone) {
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
  const note = toast(message, () => end(undone));
  addEventListener("pagehide", now);
  document.addEventListener("visibilitychange", ifHidden);
  return { now, drop: () => end(undefined) };
}

/** A popover that is shown last is on top. */
function bringToTop() {
  if (!("showPopover" in place)) return;
  if (place.matches(":popover-open")) place.hidePopover();
  place.showPopover();
}

// One polite live region for screen readers.

const region = h("div", { class: "unseen", role: "status", "aria-live": "polite", id: "announcer" });
/** @type {string[]} */
const waiting = [];
let isBusy = false;
const PAUSE = 700;
const LENGTH_LIMIT = 240;

export function mountMessages() {
  document.body.append(region, place);
}

/** @param {unknown} error */
export const messageOf = (error) => (error instanceof Error ? error.message : String(error));

/**
 * One after the other: two at once would lose one.
 * @param {string} message
 */
export function announce(message) {
  waiting.push(message.length > LENGTH_LIMIT ? `${message.slice(0, LENGTH_LIMIT)}…` : message);
  if (!isBusy) next();
}

function next() {
  const message = waiting.shift();
  isBusy = message !== undefined;
  if (message === undefined) return;
  region.textContent = "";
  setTimeout(() => {
    region.textContent = message;
    setTimeout(next, PAUSE);
  }, 50);
}

// Copying, also over plain HTTP, where the clipboard API is missing.

/**
 * @param {string} text
 * @param {string} confirmation shown when it worked
 */
export async function copyText(text, confirmation) {
  const isCopied = (await copiedByApi(text)) || copiedBySelection(text);
  toast(isCopied ? confirmation : "This browser does not let the page copy. Select the text instead.");
  return isCopied;
}

/** @param {string} text */
async function copiedByApi(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** @param {string} text */
function copiedBySelection(text) {
  const before = document.activeElement;
  const area = h("textarea", { class: "unseen", "aria-hidden": "true" });
  area.value = text;
  // A modal dialog makes everything outside of it inert.
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  if (before instanceof HTMLElement) before.focus();
  return isCopied;
}
