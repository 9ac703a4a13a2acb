// Keys that every list of choices understands: arrows move, Space toggles (the browser's own), Enter
// goes on, digits pick.

/**
 * @param {KeyboardEvent} event
 * @param {readonly HTMLInputElement[]} choices those that can be reached, in order
 * @param {() => void} confirmed
 * @returns {boolean} whether the key was one of them
 */
export function chosenByKey(event, choices, confirmed) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return false;
  const at = choices.indexOf(/** @type {HTMLInputElement} */ (event.target));
  if (event.key === "Enter" && at >= 0) {
    event.preventDefault();
    confirmed();
    return true;
  }
  if (at >= 0 && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
    event.preventDefault();
    choices[(at + (event.key === "ArrowDown" ? 1 : -1) + choices.length) % choices.length]?.focus();
    return true;
  }
  const digit = /^[1-9]$/.test(event.key) && at >= 0 ? choices[Number(event.key) - 1] : undefined;
  if (digit === undefined || digit.disabled) return false;
  event.preventDefault();
  digit.focus();
  digit.click();
  return true;
}
