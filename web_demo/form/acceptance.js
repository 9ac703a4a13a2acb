// What Accept sends: the answers that people see in the review, and nothing that is somebody else's.

/** @import { Answer } from "../wire/types.d.ts" */
/** @import { QuestionView } from "./question.js" */
import { NEEDED } from "./checks.js";

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
 * Whether accepting would submit this one: our own drafts and what was proposed, as it is shown.
 * @param {QuestionView} view
 */
export function isSent(view) {
  return ["draft", "proposed"].includes(view.standing()) && view.value() !== undefined;
}

/**
 * Why this question stands in the way of accepting.
 * @param {QuestionView} view
 * @returns {string | undefined}
 */
export function problemOf(view) {
  const standing = view.standing();
  if (standing === "submitted" && !view.input.problem()) return undefined;
  const words = view.check();
  if (words !== undefined) return words;
  if (!view.question.required || isSent(view)) return undefined;
  if (standing === "foreign")
    return "Only a draft of somebody else so far: submit it, or write another.";
  return standing === "skipped" ? "Skipped, but it is required." : NEEDED;
}
