// A form that has closed: how, by whom, with which answers, and what was typed here and not sent.

/** @import { Author, InputRequest, Question, Value } from "../wire/types.d.ts" */
/** @import { ReviewItem } from "../wire/review.js" */
/** @import { Closing } from "../wire/session.js" */
/** @import { Room } from "../views/room.js" */
import { copyText } from "../views/clipboard.js";
import { h, icon } from "../views/dom.js";
import { ICONS } from "../views/icons.js";
import { capital, labelOf, nameOf, subjectOf, timeOf, wordsOf } from "../text/words.js";
import { reviewOf } from "../wire/review.js";

const VERBS = { accept: "answered", decline: "declined", cancel: "dismissed" };

/**
 * @param {Room} room
 * @param {Closing} closing
 * @param {string | undefined} note what the host wrote into the turn about it
 * @param {() => void} dismiss
 */
export function outcomeOf(room, closing, note, dismiss) {
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
      h("p", { class: "outcome-words", dir: "auto" }, ...headline(room, closing, note)),
      h(
        "button",
        { type: "button", class: "icon-button", "aria-label": "Hide", onclick: dismiss },
        icon(ICONS.close),
      ),
    ),
    response === "accept" && answersOf(room, closing),
    unsentOf(request, closing.unsent),
  );
}

/** @param {Author | undefined} by */
function isPersons(by) {
  return by !== undefined && by.id !== "host" && !by.id.startsWith("agent:");
}

/**
 * What the host or the asker ended is told in the host's words: a timeout is nobody's decline.
 * @param {Room} room
 * @param {Closing} closing
 * @param {string | undefined} note
 */
function headline(room, closing, note) {
  const { request, response, by, at } = closing;
  const when = at === undefined ? "" : ` · ${timeOf(at)}`;
  if (!isPersons(by)) return [note ?? `“${subjectOf(request)}” was closed`, when];
  const who = closing.own ? "You" : capital(nameOf(by, room.me));
  return [
    h("bdi", { class: "who" }, who),
    ` ${response === undefined ? "stopped" : VERBS[response]} `,
    h("bdi", null, `“${subjectOf(request)}”`),
    when,
  ];
}

/**
 * Every answer; whose it is and how it came about, where the headline does not say so already.
 * @param {Room} room
 * @param {Closing} closing
 */
function answersOf(room, closing) {
  const { request } = closing;
  const items = reviewOf(request);
  const rows = (request.questions ?? []).map((question, index) => {
    const item = items[index];
    return item && item.source !== "unanswered" ? rowOf(room, closing, question, item) : null;
  });
  return h("dl", { class: "outcome-answers" }, ...rows);
}

/**
 * @param {Room} room
 * @param {Closing} closing
 * @param {Question} question
 * @param {ReviewItem} item
 */
function rowOf(room, closing, question, item) {
  const words = wordsOf(question, item.value);
  return row(question, words || (item.source === "skipped" ? "skipped" : "—"), whose());

  function whose() {
    const { by, via } = item._meta ?? {};
    if (item.source === "default" || via === "default" || via === "timeout") return "Default";
    const isOwn = closing.ownAnswers.includes(question.id);
    if (isOwn === closing.own && (isOwn || isSame(by, closing.by))) return "";
    const who = isOwn ? "by you" : `by ${nameOf(by, room.me)}`;
    return via === "policy" ? `${who}, a policy` : who;
  }
}

/**
 * @param {Author | undefined} one
 * @param {Author | undefined} other
 */
function isSame(one, other) {
  return one?.id === other?.id && one?.name === other?.name;
}

/**
 * @param {Question} question
 * @param {string} words
 * @param {string} note
 */
function row(question, words, note) {
  const isNothing = words === "skipped" || words === "—";
  return h(
    "div",
    { class: "outcome-row" },
    h("dt", null, h("bdi", null, labelOf(question))),
    h(
      "dd",
      null,
      h("bdi", { class: isNothing ? "review-none" : "" }, words),
      note && h("span", { class: "review-note" }, note),
    ),
  );
}

/**
 * @param {InputRequest} request
 * @param {Readonly<Record<string, Value>>} unsent
 */
function unsentOf(request, unsent) {
  const rows = (request.questions ?? []).flatMap((question) => {
    const value = unsent[question.id];
    return value === undefined ? [] : [[question, wordsOf(question, value)]];
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
    ...rows.map(([question, words]) =>
      h(
        "div",
        { class: "unsent-row" },
        h("bdi", { class: "unsent-label" }, labelOf(/** @type {Question} */ (question))),
        h("blockquote", { class: "their-words", dir: "auto" }, /** @type {string} */ (words)),
        h(
          "button",
          {
            type: "button",
            class: "small quiet",
            onclick: () => copyText(/** @type {string} */ (words), "Copied."),
          },
          "Copy",
        ),
      ),
    ),
  );
}
