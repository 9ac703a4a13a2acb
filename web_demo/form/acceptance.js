// What Accept sends: the answers that people see in the review, and nothing that is somebody else's.

/** @import { Answer } from "../wire/types.d.ts" */
/** @import { QuestionView } from "./question.js" */
import { NEEDED } from "./checks.js";
import { byWords } from "./states.js";

/** @typedef {{ view: QuestionView, words: string }} Problem */

/**
 * @param {readonly QuestionView[]} views
 * @returns {{ answers: Map<string, Record<string, Answer>>, problems: Problem[] }} answers by request
 */
export function acceptanceOf(views) {
  /** @type {Map<string, Record<string, Answer>>} */
  const answers = new Map();
  /** @type {Problem[]} */
  const problems = [];
  for (const view of views) {
    const words = problemOf(view);
    if (words !== undefined) problems.push({ view, words });
    const value = isSent(view) ? view.value() : undefined;
    if (value !== undefined) {
      const own = answers.get(view.requestId) ?? {};
      own[view.question.id] = { state: "submitted", value };
      answers.set(view.requestId, own);
    }
  }
  return { answers, problems };
}

/**
 * Whether accepting would submit this one: our own drafts and what the asker filled in, as it is
 * shown. A default is submitted only where an answer is required; elsewhere the host adds it.
 * @param {QuestionView} view
 */
export function isSent(view) {
  if (view.value() === undefined) return false;
  const standing = view.standing();
  if (standing !== "proposed") return standing === "draft";
  return view.question.required === true || view.field.state === "draft";
}

/**
 * Why this question stands in the way of accepting.
 * @param {QuestionView} view
 * @returns {string | undefined}
 */
export function problemOf(view) {
  const standing = view.standing();
  if (standing === "submitted" && !view.input.problem()) return undefined;
  if (standing === "foreign" && view.field.covered?.state === "submitted") return undefined;
  const words = view.check();
  if (words !== undefined) return words;
  if (!view.question.required || isSent(view)) return undefined;
  if (standing === "outdated")
    return "Answered before the question changed. Check the answer and submit it again.";
  if (standing === "foreign") {
    const by = byWords(view.field.by, view.room.me) || " by someone";
    return `Only drafted${by} so far. Use this draft or enter your own answer.`;
  }
  return standing === "skipped" ? "Skipped, but it is required." : NEEDED;
}
