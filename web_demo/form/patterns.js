// Patterns of strangers, as far as a browser can be trusted with them. Browsers try one way after
// another, which for some patterns takes for ever; those are left to the host, which cannot be stuck.

const LONGEST_PATTERN = 200;
const LONGEST_TEXT = 500;
/** Each further one can multiply the ways by the length of the text. */
const MOST_OPEN_ENDS = 2;

/** A group that repeats, a reference back, and whatever looks ahead or behind. */
const WILD = /\)[*+?{]|\\[1-9k]|\(\?/;
const OPEN_ENDS = /[*+]|\{\d*,\}/g;

/**
 * Whether this text certainly does not match; unsure is no.
 * @param {string} pattern
 * @param {string} text
 */
export function isAmiss(pattern, text) {
  if (!isTame(pattern) || text.length > LONGEST_TEXT) return false;
  try {
    return !new RegExp(pattern, "u").test(text);
  } catch {
    return false; // written for another kind of engine
  }
}

/** @param {string} pattern */
function isTame(pattern) {
  if (pattern.length > LONGEST_PATTERN || WILD.test(pattern)) return false;
  return (pattern.match(OPEN_ENDS)?.length ?? 0) <= MOST_OPEN_ENDS;
}
