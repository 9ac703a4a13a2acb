// The look back before accepting: every question with what will be sent for it, and what will not.

/** @import { Answer, InputRequest } from "../wire/types.d.ts" */
/** @import { ReviewItem } from "../wire/review.js" */
/** @import { QuestionView } from "./question.js" */
import { h } from "../views/dom.js";
import { capital, counted, isMe, labelOf, nameOf, timeOf, wordsOf } from "../text/words.js";
import { reviewOf as itemsOf } from "../wire/review.js";
import { isSent, problemOf } from "./acceptance.js";
import { byWords } from "./states.js";

/**
 * @param {readonly QuestionView[]} views
 * @param {readonly InputRequest[]} requests
 * @param {ReadonlyMap<string, Record<string, Answer>>} answers what accepting brings, by request
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
      { class: "review-sum" },
      bad > 0
        ? `${counted(bad, "question")} to check before this can be sent.`
        : "This is what will be sent.",
    ),
    h("dl", { class: "review-list" }, ...rows),
  );
}

/**
 * @param {QuestionView} view
 * @param {ReviewItem} item
 * @param {(view: QuestionView) => void} go
 */
function rowOf(view, item, go) {
  const problem = problemOf(view);
  const words = wordsOf(view.question, item.value);
  return h(
    "div",
    {
      class: "review-row",
      "data-problem": problem !== undefined,
      "data-left-out": item.value === undefined,
    },
    h(
      "dt",
      null,
      h(
        "button",
        { type: "button", class: "link", onclick: () => go(view) },
        h("bdi", null, labelOf(view.question)),
      ),
    ),
    h(
      "dd",
      null,
      words
        ? h("bdi", { class: "review-value" }, words)
        : h("span", { class: "review-none" }, "—"),
      h(
        "span",
        { class: problem ? "review-problem" : "review-note" },
        problem ?? noteOf(view, item),
      ),
    ),
  );
}

/**
 * Whose it is, and what is not included.
 * @param {QuestionView} view
 * @param {ReviewItem} item
 */
function noteOf(view, item) {
  const source = sourceWords(view, item);
  if (!item.draft) return source;
  const { me } = view.room;
  const by = item.draft._meta?.by;
  const whose = isMe(by, me) ? "Your" : `${capital(nameOf(by, me))}’s`;
  const left = `${whose} draft “${wordsOf(view.question, item.draft.value)}” is not included.`;
  return source ? `${source}. ${left}` : left;
}

/**
 * @param {QuestionView} view
 * @param {ReviewItem} item
 */
function sourceWords(view, item) {
  const { me } = view.room;
  const { by, at } = item._meta ?? {};
  const when = at === undefined ? "" : ` ${timeOf(at)}`;
  switch (item.source) {
    case "default":
      return "Default";
    case "skipped":
      return `Skipped${byWords(by, me)}${when}`;
    case "unanswered":
      return "Not answered";
    default:
      if (!isSent(view)) return `Answered${byWords(by, me)}${when}`;
      return view.standing() === "proposed" ? "Default" : "";
  }
}
