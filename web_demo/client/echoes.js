/**
 * Recognizing our own actions: in an envelope, and in a snapshot.
 *
 * When a connection breaks, it is unknown which actions have arrived. A replay contains every
 * envelope. A snapshot shows the effect of some; the others are sent again if that is idempotent,
 * and are otherwise reported as unconfirmed.
 */

/** @import { Action, Answer, SessionState } from "./types.d.ts" */
import { answerTo, openRequest } from "./reducers/input-requests.js";
import { same } from "./reducers/updates.js";

/** @typedef {"done" | "repeat" | "unknown"} Outcome */

/**
 * An answer without the host's metadata.
 *
 * @param {Answer | undefined} answer
 * @returns {Answer | undefined}
 */
export function withoutMeta(answer) {
  if (!answer?._meta) return answer;
  const { _meta, ...rest } = answer;
  return /** @type {Answer} */ (rest);
}

/**
 * Whether this is what we sent, apart from metadata. A cleared draft may come back as the answer
 * that it covered.
 *
 * @param {Action} sent
 * @param {Action} received
 */
export function isEcho(sent, received) {
  if (sent.type !== received.type) return false;
  const isCleared = sent.type === "session/inputAnswerChanged" && !sent.answer;
  const compared = isCleared ? { ...received, answer: undefined } : received;
  return same(comparable(sent), comparable(/** @type {Action} */ (compared)));
}

/**
 * Whether an action of the host settles ours, which it had deferred. Of several deferred changes
 * only the last is made, so it settles all of them.
 *
 * @param {Action} sent
 * @param {Action} received
 */
export const isDeferredEcho = (sent, received) =>
  sent.type === received.type &&
  (sent.type === "session/modelChanged" || sent.type === "session/agentChanged");

/**
 * The outcome, according to a snapshot, of an action that was sent on a broken connection.
 *
 * @param {SessionState} state
 * @param {Action} action
 * @returns {Outcome}
 */
export function outcomeIn(state, action) {
  if (isVisible(state, action)) return "done";
  return NOT_IDEMPOTENT.has(action.type) ? "unknown" : "repeat";
}

/**
 * Whether an action that nothing awaits has become pointless.
 *
 * @param {SessionState} state
 * @param {Action} action
 */
export const isObsolete = (state, action) =>
  action.type === "session/inputCompleted" && !openRequest(state, action.requestId);

/** A repeated message or truncation could affect what came after it. */
const NOT_IDEMPOTENT = new Set(["session/pendingMessageSet", "session/truncated"]);

/** @param {SessionState} state @param {Action} action @returns {boolean} */
function isVisible(state, action) {
  switch (action.type) {
    case "session/inputAnswerChanged": {
      const request = openRequest(state, action.requestId);
      const answer = withoutMeta(answerTo(request, action.questionId));
      return request !== undefined && same(answer, withoutMeta(action.answer));
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

/** @param {Action} action @returns {Action} */
function comparable(action) {
  if (action.type === "session/inputAnswerChanged") {
    return { ...action, answer: withoutMeta(action.answer) };
  }
  if (action.type === "session/inputCompleted") {
    const answers = Object.entries(action.answers ?? {}).map(([id, answer]) => [id, withoutMeta(answer)]);
    return { ...action, answers: Object.fromEntries(answers), _meta: undefined };
  }
  return action;
}
