// Copying, also over plain HTTP in a LAN, where browsers keep their clipboard to themselves.

import { h } from "./dom.js";
import { toast } from "./toast.js";

/**
 * @param {string} text
 * @param {string} words said when it worked
 */
export async function copyText(text, words) {
  const isCopied = (await copiedByApi(text)) || copiedBySelection(text);
  toast(isCopied ? words : "This browser does not let the page copy. Select the text instead.");
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
