// The outcome of a form: how it closed, by whom, with which answers, and what was typed here and
// not included.

/** @import { ReviewItem } from "../client/review.js" */
/** @import { Closing } from "../client/session.js" */
/** @import { Author, InputRequest, Question, Value } from "../client/types.d.ts" */
/** @import { SessionContext } from "../views/session-context.js" */
import { reviewOf } from "../client/review.js";
import { capital, labelOf, nameOf, subjectOf, timeOf, valueText } from "../text/format.js";
import { h, icon } from "../views/dom.js";
import { ICONS } from "../views/icons.js";
import { copyText } from "../views/toasts.js";

const VERBS = { accept: "answered", decline: "declined", cancel: "dismissed" };

/**
 * @param {SessionContext} context
 * @param {Closing} closing
 * @param {string | undefined} note the host's note about it in the turn
 * @param {() => void} dismiss
 */
export function outcomeOf(context, closing, note, dismiss) {
  const { request, response } = closing;
  const kind = isPersons(closing.by) ? (response ?? "cancel") : "host";
  return h(
    "section",
    {
      class: "outcome",
      tabindex: -1,
      "data-kind": kind,
      "data-request": request.id,
      "aria-label": "Closed question",
    },
    h(
      "header",
      { class: "outcome-head" },
      icon(response === "accept" ? ICONS.check : ICONS.close),
      h("p", { class: "outcome-text", dir: "auto" }, ...headline(context, closing, note)),
      h(
        "button",
        { type: "button", class: "icon-button", "aria-label": "Hide", onclick: dismiss },
        icon(ICONS.close),
      ),
    ),
    response === "accept" && answersOf(context, closing),
    unsentOf(request, closing.unsent),
  );
}

/** @param {Author | undefined} by */
function isPersons(by) {
  return by !== undefined && by.id !== "host" && !by.id.startsWith("agent:");
}

/**
 * What the host or the asker ended is shown with the host's text: a timeout is not a person's decline.
 * @param {SessionContext} context
 * @param {Closing} closing
 * @param {string | undefined} note
 */
function headline(context, closing, note) {
  const { request, response, by, at } = closing;
  const when = at === undefined ? "" : ` · ${timeOf(at)}`;
  if (!isPersons(by)) return [note ?? `“${subjectOf(request)}” was closed`, when];
  const who = closing.own ? "You" : capital(nameOf(by, context.me));
  return [
    h("bdi", { class: "who" }, who),
    ` ${response === undefined ? "stopped" : VERBS[response]} `,
    h("bdi", null, `“${subjectOf(request)}”`),
    when,
  ];
}

/**
 * Every answer, with its author unless the headline has it already.
 * @param {SessionContext} context
 * @param {Closing} closing
 */
function answersOf(context, closing) {
  const { request } = closing;
  const items = reviewOf(request);
  const rows = (request.questions ?? []).map((question, index) => {
    const item = items[index];
    return item && item.source !== "unanswered" ? rowOf(context, closing, question, item) : null;
  });
  return h("dl", { class: "outcome-answers" }, ...rows);
}

/**
 * @param {SessionContext} context
 * @param {Closing} closing
 * @param {Question} question
 * @param {ReviewItem} item
 */
function rowOf(context, closing, question, item) {
  const text = valueText(question, item.value);
  return row(question, text || (item.source === "skipped" ? "skipped" : "—"), whose());

  function whose() {
    const { by, via } = item._meta ?? {};
    if (item.source === "default" || via === "default" || via === "timeout") return "Default";
    const isOwn = closing.ownAnswers.includes(question.id);
    if (isOwn === closing.own && (isOwn || isSame(by, closing.by))) return "";
    const who = isOwn ? "by you" : `by ${nameOf(by, context.me)}`;
    return via === "policy" ? `${who}, a policy` : who;
  }
}

/** @param {Author | undefined} one @param {Author | undefined} other */
function isSame(one, other) {
  return one?.id === other?.id && one?.name === other?.name;
}

/** @param {Question} question @param {string} text @param {string} note */
function row(question, text, note) {
  const isNothing = text === "skipped" || text === "—";
  return h(
    "div",
    { class: "outcome-row" },
    h("dt", null, h("bdi", null, labelOf(question))),
    h(
      "dd",
      null,
      h("bdi", { class: isNothing ? "review-none" : "" }, text),
      note && h("span", { class: "review-note" }, note),
    ),
  );
}

/** @param {InputRequest} request @param {Readonly<Record<string, Value>>} unsent */
function unsentOf(request, unsent) {
  const rows = (request.questions ?? []).flatMap((question) => {
    const value = unsent[question.id];
    return value === undefined ? [] : [[question, valueText(question, value)]];
  });
  if (rows.length === 0) return null;
  return h(
    "div",
    { class: "unsent" },
    h(
      "p",
      { class: "unsent-title" },
      "Your unsent answers weren’t included. They’re saved in case this is asked again.",
    ),
    ...rows.map(([question, text]) =>
      h(
        "div",
        { class: "unsent-row" },
        h("bdi", { class: "unsent-label" }, labelOf(/** @type {Question} */ (question))),
        h("blockquote", { class: "their-text", dir: "auto" }, /** @type {string} */ (text)),
        h(
          "button",
          {
            type: "button",
            class: "small quiet",
            onclick: () => copyText(/** @type {string} */ (text), "Copied."),
          },
          "Copy",
        ),
      ),
    ),
  );
}
