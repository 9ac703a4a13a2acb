// What Accept sends: the answers that people see in the review, and nothing that is somebody else's.

/** @import { Answer } from "../wire/types.d.ts" */
/** @import { QuestionView } from "./question.js" */
import { NEEDED } from "./checks.js";
import { byWords, isSettled } from "./states.js";

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
    const answer = answerOf(view);
    if (answer !== undefined) {
      const own = answers.get(view.requestId) ?? {};
      own[view.question.id] = answer;
      answers.set(view.requestId, own);
    }
  }
  return { answers, problems };
}

/**
 * A single question has no review, so what its field shows is what is sent: if it is empty, no default.
 * @param {QuestionView} view
 * @returns {Answer | undefined}
 */
function answerOf(view) {
  const value = view.value();
  if (value !== undefined) return isSent(view) ? { state: "submitted", value } : undefined;
  const isLeftEmpty = view.isAlone && !view.question.required && !isSettled(view.standing());
  return isLeftEmpty ? { state: "skipped" } : undefined;
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
  const isTakenOver = standing === "foreign" || standing === "outdated";
  const isCovering = standing === "foreign" && view.field.covered?.state === "submitted";
  if (isCovering && !view.isAlone) return undefined;
  const words = view.check();
  if (words !== undefined) return words;
  const isNeeded = view.question.required || (isTakenOver && view.isAlone);
  if (!isNeeded || isSent(view)) return undefined;
  if (standing === "outdated")
    return `Answered before the question changed. Check the answer and ${view.isAlone ? "use it" : "mark it done"} again.`;
  if (standing === "foreign") {
    const by = byWords(view.field.by, view.room.me) || " by someone";
    return `Only drafted${by} so far. Use this draft or enter your own answer.`;
  }
  return standing === "skipped" ? "Skipped, but it is required." : NEEDED;
}
