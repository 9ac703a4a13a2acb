// The status of a question: its label, its mark in the strip, and whether it is settled.

/** @import { DraftField } from "../client/drafts/draft-field.js" */
/** @import { Author, Present, Question, Value } from "../client/types.d.ts" */
/** @import { QuestionView } from "./question.js" */
import { capital, labelOf, nameOf, timeOf, valueText } from "../text/format.js";
import { attribute, fill, h, icon } from "../views/dom.js";
import { ICONS } from "../views/icons.js";
import { byText, isAlike, isOurs } from "./authors.js";
import { hasOneInput, defaultValueOf } from "./inputs/inputs.js";

/**
 * @typedef {"empty" | "proposed" | "draft" | "foreign" | "outdated" | "conflict" | "submitted"
 *   | "skipped"} QuestionStatus
 */

/**
 * `foreign` is someone else's draft. `outdated` was written before the question changed. `proposed`
 * is a default, or prefilled by the asker.
 * @param {Question} question
 * @param {DraftField} field
 * @param {readonly Present[]} others who else is here
 * @param {Author | undefined} me
 * @returns {QuestionStatus}
 */
export function statusOf(question, field, others, me) {
  if (field.theirs) return "conflict";
  if (field.state === "draft") {
    if (field.isOutdated) return "outdated";
    if (field.via === "proposed") return "proposed";
    return isOurs(field, others, me) ? "draft" : "foreign";
  }
  if (field.state === "empty" && !field.isEmptied && defaultValueOf(question)) return "proposed";
  return field.state;
}

/** Done or skipped. */
/** @param {QuestionStatus} status */
export const isSettled = (status) => status === "submitted" || status === "skipped";

/**
 * What the field shows: an answer, or the default.
 * @param {Question} question
 * @param {DraftField} field
 * @returns {Value | undefined}
 */
export function shownValue(question, field) {
  if (field.isEmptied) return undefined;
  return field.state === "empty" ? defaultValueOf(question) : field.value;
}

/**
 * @param {Question} question
 * @param {QuestionStatus} status
 * @param {DraftField} field
 * @param {readonly Present[]} writers
 * @param {Author | undefined} me
 */
export function statusLabel(question, status, field, writers, me) {
  const doing = hasOneInput(question) ? "writing" : "answering";
  if (writers.length > 0) return writersText(writers, doing);
  const isMine = field.isOwn && field.by && isAlike(field.by, me);
  const by = isMine ? " by you" : byText(field.by, me);
  const when = field.at === undefined ? "" : ` ${timeOf(field.at)}`;
  switch (status) {
    case "submitted":
      return field.isDirty ? "Saving…" : `Done${by}${when}`;
    case "skipped":
      return `Skipped${by}${when}`;
    case "conflict":
      return "Conflict";
    case "foreign":
      return `Draft${by || " by someone"}`;
    case "draft":
      return field.isDirty ? "Draft, not saved yet" : "Draft saved";
    case "outdated":
      return `Answered${by} before the question changed`;
    case "proposed":
      return "Default";
    default:
      return "Not answered";
  }
}

/**
 * Which answer counts until the draft that is shown is marked done.
 * @param {Question} question
 * @param {DraftField} field
 * @param {Author | undefined} me
 */
export function coveredText(question, { covered }, me) {
  if (!covered) return "";
  const by = byText(covered._meta?.by, me);
  if (covered.state === "skipped") return `. Until it is marked done, this stays skipped${by}`;
  return `. Until it is marked done, “${valueText(question, covered.value)}”${by} counts`;
}

/** @param {readonly Present[]} writers @param {"writing" | "answering"} doing */
function writersText(writers, doing) {
  const names = [...new Set(writers.map((writer) => capital(nameOf(writer.by))))];
  if (names.length > 2) return `${names[0]} and ${names.length - 1} others are ${doing}`;
  return `${names.join(" and ")} ${names.length === 1 ? "is" : "are"} ${doing}`;
}

// The strip: one mark per question with its status, which focuses it.

/** @type {Partial<Record<QuestionStatus, string>>} */
const MARKS = { submitted: ICONS.check, skipped: ICONS.skip, conflict: ICONS.warning };

export class QuestionStrip {
  /** @param {readonly QuestionView[]} views */
  constructor(views) {
    this.views = views;
    this.marks = views.map((view, index) =>
      h("button", { class: "mark", onclick: () => view.focus() }, index + 1),
    );
    this.element = h(
      "nav",
      { class: "strip", "aria-label": "Questions" },
      h("div", { class: "strip-marks" }, ...this.marks),
    );
    /** @type {string[]} */
    this.shown = [];
  }

  update() {
    this.views.forEach((view, index) => {
      const { question, field } = view;
      const mark = /** @type {HTMLButtonElement} */ (this.marks[index]);
      const status = view.status();
      const writers = view.writers();
      const problem = view.problem ?? field.error;
      const key = `${status} ${writers.length > 0} ${problem ?? ""}`;
      if (this.shown[index] === key) return;
      this.shown[index] = key;
      attribute(mark, "data-status", status);
      attribute(mark, "data-writing", writers.length > 0);
      attribute(mark, "data-problem", problem !== undefined);
      attribute(mark, "data-required", question.required);
      const needs = question.required ? ", required" : "";
      const text = problem ?? statusLabel(question, status, field, writers, view.context.me);
      attribute(mark, "aria-label", `${index + 1}, ${labelOf(question)}${needs}: ${text}`);
      attribute(mark, "title", `${labelOf(question)}: ${text}`);
      const path = MARKS[status];
      fill(mark, path ? icon(path) : String(index + 1));
    });
  }

  /** @param {QuestionView | undefined} view */
  current(view) {
    this.views.forEach((each, index) => {
      const mark = /** @type {HTMLButtonElement} */ (this.marks[index]);
      attribute(mark, "aria-current", each === view ? "step" : undefined);
    });
  }
}
