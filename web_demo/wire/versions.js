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
 * Whether two answers say the same, be they drafts or not.
 *
 * @param {Answer | undefined} one
 * @param {Answer | undefined} other
 */
export const agree = (one, other) =>
  same(valueOf(one), valueOf(other)) && isSkipped(one) === isSkipped(other);

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
