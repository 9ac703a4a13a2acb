// The look back before accepting: every question with what will be sent for it, and what will not.

/** @import { QuestionView } from "./question.js" */
import { h } from "../views/dom.js";
import { counted, labelOf, wordsOf } from "../text/words.js";
import { isSent, problemOf } from "./acceptance.js";
import { defaultOf } from "./fields.js";
import { byWords, standingWords } from "./states.js";

/**
 * @param {readonly QuestionView[]} views
 * @param {(view: QuestionView) => void} go
 */
export function reviewOf(views, go) {
  const rows = views.map((view) => rowOf(view, go));
  const bad = views.filter((view) => problemOf(view) !== undefined).length;
  return h(
    "div",
    { class: "review" },
    h("h3", { class: "review-title", tabindex: -1 }, "Review"),
    h(
      "p",
      { class: "review-sum" },
      bad > 0
        ? `${counted(bad, "question")} to look at before this can be accepted.`
        : "This is what will be sent.",
    ),
    h("dl", { class: "review-list" }, ...rows),
  );
}

/**
 * @param {QuestionView} view
 * @param {(view: QuestionView) => void} go
 */
function rowOf(view, go) {
  const problem = problemOf(view);
  const words = wordsOf(view.question, view.value() ?? defaultOf(view.question));
  const isLeftOut = isSkipped(view) || (!isSent(view) && view.standing() !== "submitted");
  return h(
    "div",
    { class: "review-row", "data-problem": problem !== undefined, "data-left-out": isLeftOut },
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
      words && !isSkipped(view)
        ? h("bdi", { class: "review-value" }, words)
        : h("span", { class: "review-none" }, "—"),
      h("span", { class: problem ? "review-problem" : "review-note" }, problem ?? noteOf(view)),
    ),
  );
}

/** @param {QuestionView} view */
function isSkipped(view) {
  return view.standing() === "skipped";
}

/** @param {QuestionView} view */
function noteOf(view) {
  switch (view.standing()) {
    case "draft":
      return "";
    case "proposed":
      return "as proposed";
    case "foreign":
      return `draft${byWords(view.field.by, view.room.me)}, left out`;
    case "empty":
      return defaultOf(view.question) ? "by default" : "left out";
    default:
      return standingWords(view.standing(), view.field, [], view.room.me);
  }
}
