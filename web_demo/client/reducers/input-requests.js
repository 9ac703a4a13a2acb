/** Transitions of input requests: asked, answered bit by bit, completed. */

/**
 * @import {
 *   Answer, InputAnswerChanged, InputCompleted, InputRequest, InputRequested, SessionState,
 * } from "../types.d.ts"
 */
import { filled, IS_READ, marked, touched, updated, withStatus } from "./updates.js";

/**
 * @param {SessionState | undefined} state
 * @param {string} requestId
 * @returns {InputRequest | undefined}
 */
export const openRequest = (state, requestId) =>
  state?.inputRequests?.find((request) => request.id === requestId);

/**
 * The answer to one question; question ids are untrusted, so inherited properties do not count.
 *
 * @param {InputRequest | undefined} request
 * @param {string} questionId
 * @returns {Answer | undefined}
 */
export function answerTo(request, questionId) {
  const answers = request?.answers;
  return answers && Object.hasOwn(answers, questionId) ? answers[questionId] : undefined;
}

/**
 * Adds the request, or replaces it; answers given so far stay unless it brings its own.
 *
 * @param {SessionState} state
 * @param {InputRequested} action
 * @param {number} at
 */
export function inputRequested(state, action, at) {
  const open = state.inputRequests ?? [];
  const existing = openRequest(state, action.request.id);
  const request = updated(action.request, {
    answers: action.request.answers ?? existing?.answers,
  });
  const inputRequests = existing
    ? open.map((other) => (other.id === request.id ? request : other))
    : [...open, request];
  return touched(marked(withStatus(updated(state, { inputRequests })), IS_READ, false), at);
}

/** @param {SessionState} state @param {InputAnswerChanged} action @param {number} at */
export function inputAnswerChanged(state, action, at) {
  const request = openRequest(state, action.requestId);
  if (!request) return state;
  const answered = updated(request, { answers: changed(request.answers ?? {}, action) });
  const inputRequests = state.inputRequests?.map((r) => (r === request ? answered : r));
  return touched(updated(state, { inputRequests }), at);
}

/**
 * Computed keys and entries, since assigning would trip over an id like `__proto__`.
 *
 * @param {{ readonly [id: string]: Answer }} answers
 * @param {InputAnswerChanged} action
 * @returns {{ readonly [id: string]: Answer } | undefined}
 */
function changed(answers, { questionId, answer }) {
  if (answer) return { ...answers, [questionId]: answer };
  const rest = Object.entries(answers).filter(([id]) => id !== questionId);
  return rest.length ? Object.fromEntries(rest) : undefined;
}

/** @param {SessionState} state @param {InputCompleted} action @param {number} at */
export function inputCompleted(state, action, at) {
  if (!openRequest(state, action.requestId)) return state;
  const rest = (state.inputRequests ?? []).filter((request) => request.id !== action.requestId);
  return touched(withStatus(updated(state, { inputRequests: filled(rest) })), at);
}
