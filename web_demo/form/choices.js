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
  const isPicked = at >= 0 && /^[1-9]$/.test(event.key) && pickByDigit(choices, Number(event.key));
  if (isPicked) event.preventDefault();
  return isPicked;
}

/**
 * @param {readonly HTMLInputElement[]} choices
 * @param {number} digit
 * @returns {boolean} whether there is such a choice
 */
export function pickByDigit(choices, digit) {
  const choice = choices[digit - 1];
  if (choice === undefined || choice.disabled) return false;
  choice.focus();
  choice.click();
  return true;
}
