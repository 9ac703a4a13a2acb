/**
 * What would be sent if a request were accepted now; the same as the host's
 * `reducers/forms/review.py`.
 *
 * A draft is never sent; the answer that it covers is. A default is sent only where nobody has
 * submitted or skipped an answer.
 */

/**
 * @import {
 *   Action, Answer, AnswerMeta, Draft, InputRequest, Question, Reviewed, SessionState, Skipped,
 *   Submitted, Value,
 * } from "./types.d.ts"
 */
import { answerTo, openRequest } from "./reducers/input-requests.js";
import { same, withoutUndefined } from "./reducers/updates.js";

/** @typedef {"submitted" | "default" | "skipped" | "unanswered"} Source */

/**
 * `_meta` says who submitted or skipped it. `draft` is a draft that is not included.
 *
 * @typedef {{
 *   questionId: string, source: Source, value?: Value, _meta?: AnswerMeta, draft?: Draft,
 * }} ReviewItem
 */

/**
 * The answer that counts: this one, or the one that this draft covers.
 *
 * @param {Answer | undefined} answer
 * @returns {Submitted | Skipped | undefined}
 */
export function decided(answer) {
  const counted = answer?.state === "draft" ? answer._meta?.covers : answer;
  return counted?.state === "draft" ? undefined : counted;
}

/**
 * An own action as the host will apply it: a draft covers an answer, and clearing the draft
 * uncovers it.
 *
 * @param {SessionState} state
 * @param {Action} action
 * @returns {Action}
 */
export function predicted(state, action) {
  if (action.type !== "session/inputAnswerChanged") return action;
  const { requestId, questionId, answer } = action;
  if (answer && answer.state !== "draft") return action;
  const existing = answerTo(openRequest(state, requestId), questionId);
  const isDraft = existing?.state === "draft";
  if (!answer) return isDraft ? withoutUndefined({ ...action, answer: existing._meta?.covers }) : action;
  const covers = isDraft ? existing._meta?.covers : existing;
  return covers ? { ...action, answer: { ...answer, _meta: { covers } } } : action;
}

/**
 * @param {InputRequest} request
 * @param {Readonly<Record<string, Answer>>} own - the answers of the completion
 * @param {string} questionId
 */
function effective(request, own, questionId) {
  const included = answerTo({ ...request, answers: own }, questionId);
  return included && included.state !== "draft" ? included : decided(answerTo(request, questionId));
}

/**
 * What accepting sends for each question.
 *
 * @param {InputRequest} request
 * @param {Readonly<Record<string, Answer>>} [own] - the answers of the completion
 * @returns {ReviewItem[]}
 */
export function reviewOf(request, own = {}) {
  return (request.questions ?? []).map((question) => {
    const answer = effective(request, own, question.id);
    const { source, value } = sentFor(answer, defaultOf(question));
    const shown = answerTo(request, question.id);
    const isLeftOut = shown?.state === "draft" && !same(shown.value, value);
    return withoutUndefined({
      questionId: question.id,
      source,
      value,
      _meta: answer?._meta,
      draft: isLeftOut ? withoutCover(shown) : undefined,
    });
  });
}

/**
 * The same as part of a completion, which the host refuses if anything else would be sent.
 *
 * @param {InputRequest} request
 * @param {Readonly<Record<string, Answer>>} [own]
 * @returns {Reviewed}
 */
export function reviewed(request, own) {
  const values = new Map(reviewOf(request, own).map(({ questionId, value }) => [questionId, value]));
  const content = (request.questions ?? []).flatMap((question) => {
    const value = values.get(question.id);
    return value ? [[question.id, contentOf(value)]] : [];
  });
  return withoutUndefined({ content: Object.fromEntries(content), revision: request._meta?.revision });
}

/**
 * What is sent for an optional question without an answer: its default, or the recommended options.
 *
 * @param {Question} question
 * @returns {Value | undefined}
 */
export function defaultOf(question) {
  if (question.required) return undefined;
  switch (question.kind) {
    case "single-select": {
      const [first] = recommended(question.options);
      return first === undefined ? undefined : { kind: "selected", value: first };
    }
    case "multi-select": {
      const chosen = recommended(question.options);
      const { min = 0, max = Infinity } = question;
      const fits = chosen.length > 0 && chosen.length >= min && chosen.length <= max;
      return fits ? { kind: "selected-many", value: chosen } : undefined;
    }
    default:
      return declaredDefault(question);
  }
}

/**
 * The default value in the question itself.
 *
 * @param {Question} question
 * @returns {Value | undefined}
 */
export function declaredDefault(question) {
  if (!("defaultValue" in question) || question.defaultValue === undefined) return undefined;
  const kind = question.kind === "integer" ? "number" : question.kind;
  return /** @type {Value} */ ({ kind, value: question.defaultValue });
}

/** @param {readonly { id: string, recommended?: boolean }[]} options */
const recommended = (options) =>
  options.filter((option) => option.recommended).map(({ id }) => id);

/**
 * @param {Submitted | Skipped | undefined} answer
 * @param {Value | undefined} fallback
 * @returns {{ source: Source, value?: Value }}
 */
function sentFor(answer, fallback) {
  if (answer?.state === "skipped") return { source: "skipped" };
  if (answer?.value) return { source: "submitted", value: answer.value };
  return fallback ? { source: "default", value: fallback } : { source: "unanswered" };
}

/**
 * A value as plain JSON; free-form values follow the options.
 *
 * @param {Value} value
 * @returns {unknown}
 */
function contentOf(value) {
  if (value.kind === "selected-many") return [...value.value, ...(value.freeformValues ?? [])];
  if (value.kind !== "selected") return value.value;
  const own = value.freeformValues ?? [];
  const chosen = value.value || own.length === 0 ? [value.value, ...own] : own;
  return chosen.length === 1 ? chosen[0] : chosen;
}

/** @param {Draft} draft */
function withoutCover(draft) {
  if (!draft._meta?.covers) return draft;
  const { covers, ...meta } = draft._meta;
  return { ...draft, _meta: meta };
}
