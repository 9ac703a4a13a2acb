/**
 * What one answer says, whoever gave it.
 */

/** @import {Answer, Author, InputAnswerChanged, Value} from "./types.d.ts" */
import { present, same } from "./reducers/updates.js";

/** @typedef {{ value: Value | undefined, state: string, by?: Author, at?: number }} Version */

/**
 * @param {Answer | undefined} answer
 * @returns {Value | undefined}
 */
export const valueOf = (answer) =>
  answer && answer.state !== "skipped" ? answer.value : undefined;

/** @param {Answer | undefined} answer */
const isSkipped = (answer) => answer?.state === "skipped";

/**
 * @param {Answer | undefined} answer
 * @returns {Version}
 */
export const versionOf = (answer) => ({
  value: valueOf(answer),
  state: answer?.state ?? "empty",
  by: answer?._meta?.by,
  at: answer?._meta?.at,
});

/**
 * @param {Version} version
 * @returns {Answer | undefined}
 */
export function answerOf({ value, state }) {
  if (state === "skipped") return { state };
  return value && /** @type {Answer} */ ({ state, value });
}

/**
 * How what the host has meets what is shown: it says the same; it is what both had last, so that
 * ours is newer; it gives way to nothing and replaces what is shown; or neither may go.
 *
 * @param {Answer | undefined} held
 * @param {Answer | undefined} shown
 * @param {Answer | undefined} synced - what both had last
 * @param {boolean} isOurs - whether what is shown must not give way
 * @returns {"same" | "unchanged" | "replaced" | "contested"}
 */
export function meeting(held, shown, synced, isOurs) {
  if (same(valueOf(held), valueOf(shown)) && isSkipped(held) === isSkipped(shown)) return "same";
  if (same(held, synced)) return "unchanged";
  return isOurs ? "contested" : "replaced";
}

const LETTER = /[\p{L}\p{N}]/u;

/**
 * Whether a newer value holds all of an older one: then nothing of it is lost. “No” is not in “now”.
 *
 * @param {Value | undefined} newer
 * @param {Value} older
 */
export function covers(newer, older) {
  if (newer?.kind === "text" && older.kind === "text") return hasWords(newer.value, older.value);
  if (newer?.kind !== "selected-many" || older.kind !== "selected-many") return same(newer, older);
  const now = [...newer.value, ...(newer.freeformValues ?? [])];
  return [...older.value, ...(older.freeformValues ?? [])].every((chosen) => now.includes(chosen));
}

/**
 * @param {string} text
 * @param {string} words
 */
function hasWords(text, words) {
  const at = text.indexOf(words);
  const around = [text.charAt(at - 1), text.charAt(at + words.length)];
  return at >= 0 && !around.some((letter) => LETTER.test(letter));
}

/**
 * @param {string} requestId
 * @param {string} questionId
 * @param {Answer | undefined} answer
 * @returns {InputAnswerChanged}
 */
export const changeOf = (requestId, questionId, answer) =>
  present({ type: "session/inputAnswerChanged", requestId, questionId, answer });

/**
 * Whether a value is written letter by letter; a choice is whole as soon as it is made.
 *
 * @param {Value | undefined} value
 */
export const isTyped = (value) =>
  !value || value.kind === "text" || value.kind === "number" || "freeformValues" in value;
