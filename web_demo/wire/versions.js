/**
 * What one answer says, whoever gave it.
 */

/** @import {Answer, Author, Value} from "./types.d.ts" */

/** @typedef {{ value: Value | undefined, state: string, by?: Author, at?: number }} Version */

/**
 * @param {Answer | undefined} answer
 * @returns {Value | undefined}
 */
export const valueOf = (answer) =>
  answer && answer.state !== "skipped" ? answer.value : undefined;

/** @param {Answer | undefined} answer */
export const isSkipped = (answer) => answer?.state === "skipped";

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
