// The outcome of a form: how it closed, by whom, with which answers, and what was typed here and
// not included.

/** @import { ReviewItem } from "../client/review.js" */
/** @import { Closing } from "../client/session.js" */
/** @import { Author, InputRequest, Value } from "../client/types.d.ts" */
/** @import { SessionContext } from "../views/session/session-context.js" */
import { reviewOf } from "../client/review.js";
import { capital, labelOf, nameOf, subjectOf, timeOf, valueText } from "../text/format.js";
import { h, icon, iconButton } from "../views/dom.js";
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
      { class: "outcome-head row" },
      icon(response === "accept" ? ICONS.check : ICONS.close),
      h("p", { class: "outcome-text", dir: "auto" }, ...headline(context, closing, note)),
      iconButton(ICONS.close, "Hide", dismiss),
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
    if (!item || item.source === "unanswered") return null;
    const text = valueText(question, item.value);
    const nothing = item.source === "skipped" ? "skipped" : "—";
    const note = authorNote(context, closing, item);
    return h(
      "div",
      { class: "review-row" },
      h("dt", null, h("bdi", null, labelOf(question))),
      h(
        "dd",
        null,
        h("bdi", { class: text ? "" : "review-none" }, text || nothing),
        note && h("span", { class: "faint" }, note),
      ),
    );
  });
  return h("dl", { class: "outcome-answers" }, ...rows);
}

/** @param {SessionContext} context @param {Closing} closing @param {ReviewItem} item */
function authorNote(context, closing, item) {
  const { by, via } = item._meta ?? {};
  if (item.source === "default" || via === "default" || via === "timeout") return "Default";
  const isOwn = closing.ownAnswers.includes(item.questionId);
  const isSame = by?.id === closing.by?.id && by?.name === closing.by?.name;
  if (isOwn === closing.own && (isOwn || isSame)) return "";
  const who = isOwn ? "by you" : `by ${nameOf(by, context.me)}`;
  return via === "policy" ? `${who}, a policy` : who;
}

/** @param {InputRequest} request @param {Readonly<Record<string, Value>>} unsent */
function unsentOf(request, unsent) {
  const rows = (request.questions ?? []).flatMap((question) => {
    const value = unsent[question.id];
    return value === undefined ? [] : unsentRow(labelOf(question), valueText(question, value));
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
    ...rows,
  );
}

/** @param {string} label @param {string} text */
const unsentRow = (label, text) =>
  h(
    "div",
    { class: "unsent-row" },
    h("bdi", { class: "unsent-label" }, label),
    h("blockquote", { class: "their-text", dir: "auto" }, text),
    h("button", { class: "small quiet", onclick: () => copyText(text, "Copied.") }, "Copy"),
  );
