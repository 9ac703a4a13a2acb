/**
 * Recognising one's own actions: in an envelope, and in a state that came without envelopes.
 *
 * A connection that breaks leaves actions of which nobody knows whether they arrived. A replay
 * tells, since it holds every envelope. A snapshot tells only what can be seen in it; what cannot
 * be seen is sent again where twice does no more than once, and is otherwise unconfirmed.
 */

/** @import {Action, Answer, SessionState} from "./types.d.ts" */
import { answerTo, openRequest } from "./reducers/requests.js";
import { same } from "./reducers/updates.js";

/** @typedef {"done" | "repeat" | "unknown"} Fate */

/**
 * An answer without the marks that a host puts on it.
 *
 * @param {Answer | undefined} answer
 * @returns {Answer | undefined}
 */
export function bare(answer) {
  if (!answer?._meta) return answer;
  const { _meta, ...rest } = answer;
  return /** @type {Answer} */ (rest);
}

/**
 * Whether this is what we sent, apart from the host's marks. A cleared draft may come back as the
 * answer that it covered.
 *
 * @param {Action} sent
 * @param {Action} received
 */
export function isEcho(sent, received) {
  if (sent.type !== received.type) return false;
  const isCleared = sent.type === "session/inputAnswerChanged" && !sent.answer;
  const came = isCleared ? { ...received, answer: undefined } : received;
  return same(unmarked(sent), unmarked(/** @type {Action} */ (came)));
}

/**
 * Whether a host's own action settles ours: it made now what it had put off. Of several changes
 * that were put off only the last is made, so it settles all of them.
 *
 * @param {Action} sent
 * @param {Action} received
 */
export const isDeferredEcho = (sent, received) =>
  sent.type === received.type &&
  (sent.type === "session/modelChanged" || sent.type === "session/agentChanged");

/**
 * What a snapshot says about an action that was sent on a connection that broke.
 *
 * @param {SessionState} state
 * @param {Action} action
 * @returns {Fate}
 */
export function fateIn(state, action) {
  if (isVisible(state, action)) return "done";
  return NOT_TWICE.has(action.type) ? "unknown" : "repeat";
}

/**
 * Whether there is nothing left to do for an action of which nobody waits for the outcome.
 *
 * @param {SessionState} state
 * @param {Action} action
 */
export const isMoot = (state, action) =>
  action.type === "session/inputCompleted" && !openRequest(state, action.requestId);

/** A message or a truncation that comes once more could hit what came after it. */
const NOT_TWICE = new Set(["session/pendingMessageSet", "session/truncated"]);

/**
 * @param {SessionState} state
 * @param {Action} action
 * @returns {boolean}
 */
function isVisible(state, action) {
  switch (action.type) {
    case "session/inputAnswerChanged": {
      const request = openRequest(state, action.requestId);
      return Boolean(request) && same(bare(answerTo(request, action.questionId)), bare(action.answer));
    }
    case "session/turnStarted":
      return [...state.turns, state.activeTurn].some((turn) => turn?.id === action.turnId);
    case "session/turnCancelled":
      return state.turns.some((t) => t.id === action.turnId && t.state === "cancelled");
    case "session/truncated":
      return !state.activeTurn && state.turns.at(-1)?.id === action.turnId;
    case "session/pendingMessageSet":
      return waiting(state).some((m) => m.id === action.id && same(m.message, action.message));
    case "session/pendingMessageRemoved":
      return waiting(state).every((message) => message.id !== action.id);
    default:
      return false;
  }
}

/** @param {SessionState} state */
const waiting = (state) => [
  ...(state.steeringMessage ? [state.steeringMessage] : []),
  ...(state.queuedMessages ?? []),
];

/**
 * @param {Action} action
 * @returns {Action}
 */
function unmarked(action) {
  if (action.type === "session/inputAnswerChanged") {
    return { ...action, answer: bare(action.answer) };
  }
  if (action.type === "session/inputCompleted") {
    const answers = Object.entries(action.answers ?? {}).map(([id, answer]) => [id, bare(answer)]);
    return { ...action, answers: Object.fromEntries(answers), _meta: undefined };
  }
  return action;
}
