// The review before sending: what will be sent for every question, and what will not; and the
// answers that accepting submits.

/** @import { ReviewItem } from "../client/review.js" */
/** @import { Answer, InputRequest } from "../client/types.d.ts" */
/** @import { QuestionView } from "./question.js" */
import { reviewOf as itemsOf } from "../client/review.js";
import { capital, counted, isMe, labelOf, nameOf, timeOf, valueText } from "../text/format.js";
import { h } from "../views/dom.js";
import { byText } from "./authors.js";
import { isSettled } from "./question-status.js";
import { NEEDED } from "./validation.js";

/**
 * @param {readonly QuestionView[]} views
 * @param {readonly InputRequest[]} requests
 * @param {ReadonlyMap<string, Record<string, Answer>>} answers what accepting submits, by request
 * @param {(view: QuestionView) => void} go
 */
export function reviewOf(views, requests, answers, go) {
  const items = new Map(
    requests.map((request) => [request.id, itemsOf(request, answers.get(request.id))]),
  );
  const rows = views.map((view) => {
    const { id } = view.question;
    const item = items.get(view.requestId)?.find(({ questionId }) => questionId === id);
    return item && rowOf(view, item, go);
  });
  const bad = views.filter((view) => problemOf(view) !== undefined).length;
  return h(
    "div",
    { class: "review" },
    h("h3", { class: "review-title", tabindex: -1 }, "Review your answers"),
    h(
      "p",
      { class: "hint" },
      bad > 0
        ? `${counted(bad, "question")} to check before this can be sent.`
        : "This is what will be sent.",
    ),
    h("dl", { class: "review-list" }, ...rows),
  );
}

/** @param {QuestionView} view @param {ReviewItem} item @param {(view: QuestionView) => void} go */
function rowOf(view, item, go) {
  const problem = problemOf(view);
  const label = h("bdi", null, labelOf(view.question));
  const text = valueText(view.question, item.value);
  return h(
    "div",
    { class: "review-row" },
    h("dt", null, h("button", { class: "link", onclick: () => go(view) }, label)),
    h(
      "dd",
      null,
      h("bdi", { class: text ? "review-value" : "review-none" }, text || "—"),
      h("span", { class: problem ? "problem" : "faint" }, problem ?? noteOf(view, item)),
    ),
  );
}

/**
 * Who answered, and what is not included.
 * @param {QuestionView} view
 * @param {ReviewItem} item
 */
function noteOf(view, item) {
  const source = sourceText(view, item);
  if (!item.draft) return source;
  const { me } = view.context;
  const by = item.draft._meta?.by;
  const whose = isMe(by, me) ? "Your" : `${capital(nameOf(by, me))}’s`;
  const left = `${whose} draft “${valueText(view.question, item.draft.value)}” is not included.`;
  return source ? `${source}. ${left}` : left;
}

/** @param {QuestionView} view @param {ReviewItem} item */
function sourceText(view, item) {
  const { me } = view.context;
  const { by, at } = item._meta ?? {};
  const when = at === undefined ? "" : ` ${timeOf(at)}`;
  switch (item.source) {
    case "default":
      return "Default";
    case "skipped":
      return `Skipped${byText(by, me)}${when}`;
    case "unanswered":
      return "Not answered";
    default:
      if (!isSent(view)) return `Answered${byText(by, me)}${when}`;
      return view.status() === "proposed" ? "Default" : "";
  }
}

// What accepting submits: what the review shows, without drafts of others.

/** @typedef {{ view: QuestionView, text: string }} Problem */

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
    const text = problemOf(view);
    if (text !== undefined) problems.push({ view, text });
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
 * A single question has no review, so exactly what its field shows is sent; no default if it is
 * empty.
 * @param {QuestionView} view
 * @returns {Answer | undefined}
 */
function answerOf(view) {
  const value = view.value();
  if (value !== undefined) return isSent(view) ? { state: "submitted", value } : undefined;
  const isLeftEmpty = view.isAlone && !view.question.required && !isSettled(view.status());
  return isLeftEmpty ? { state: "skipped" } : undefined;
}

/**
 * Whether accepting would submit this one: our own drafts and what the asker filled in, as it is
 * shown. A default is submitted only where an answer is required; elsewhere the host adds it.
 * @param {QuestionView} view
 */
export function isSent(view) {
  if (view.value() === undefined) return false;
  const status = view.status();
  if (status !== "proposed") return status === "draft";
  return view.question.required === true || view.field.state === "draft";
}

/**
 * Why the form cannot be accepted because of this question.
 * @param {QuestionView} view
 * @returns {string | undefined}
 */
export function problemOf(view) {
  const status = view.status();
  if (status === "submitted" && !view.input.problem()) return undefined;
  const isTakenOver = status === "foreign" || status === "outdated";
  const isCovering = status === "foreign" && view.field.covered?.state === "submitted";
  if (isCovering && !view.isAlone) return undefined;
  const text = view.check();
  if (text !== undefined) return text;
  const isNeeded = view.question.required || (isTakenOver && view.isAlone);
  if (!isNeeded || isSent(view)) return undefined;
  const again = view.isAlone ? "use it" : "mark it done";
  if (status === "outdated")
    return `Answered before the question changed. Check the answer and ${again} again.`;
  if (status === "foreign") {
    const by = byText(view.field.by, view.context.me) || " by someone";
    return `Only drafted${by} so far. Use this draft or enter your own answer.`;
  }
  return status === "skipped" ? "Skipped, but it is required." : NEEDED;
}
