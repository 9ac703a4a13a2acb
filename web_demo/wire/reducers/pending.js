/**
 * Transitions of messages that wait: one that steers the turn, and a queue for the next ones.
 */

/**
 * @import {
 *   PendingMessageRemoved, PendingMessageSet, QueuedMessagesReordered, SessionState,
 * } from "../types.d.ts"
 */
import { filled, updated } from "./updates.js";

/**
 * @param {SessionState} state
 * @param {PendingMessageSet} action
 */
export function pendingMessageSet(state, action) {
  const message = { id: action.id, message: action.message };
  if (action.kind === "steering") return updated(state, { steeringMessage: message });
  const queue = state.queuedMessages ?? [];
  if (queue.some((waiting) => waiting.id === action.id)) {
    const replaced = queue.map((waiting) => (waiting.id === action.id ? message : waiting));
    return updated(state, { queuedMessages: replaced });
  }
  return updated(state, { queuedMessages: [...queue, message] });
}

/**
 * @param {SessionState} state
 * @param {PendingMessageRemoved} action
 */
export const pendingMessageRemoved = (state, action) =>
  action.kind === "steering"
    ? withoutSteering(state, action.id)
    : withoutQueued(state, action.id);

/**
 * Unknown ids are ignored; messages that the order leaves out keep their place at the end.
 *
 * @param {SessionState} state
 * @param {QueuedMessagesReordered} action
 */
export function queuedMessagesReordered(state, action) {
  if (!state.queuedMessages) return state;
  const byId = new Map(state.queuedMessages.map((message) => [message.id, message]));
  const named = new Set(action.order.filter((id) => byId.has(id)));
  const first = [...named].flatMap((id) => byId.get(id) ?? []);
  const rest = state.queuedMessages.filter((message) => !named.has(message.id));
  return updated(state, { queuedMessages: [...first, ...rest] });
}

/**
 * A turn that began with a waiting message takes it, wherever it waited.
 *
 * @param {SessionState} state
 * @param {string} id
 */
export function withoutMessage(state, id) {
  const rest = withoutQueued(withoutSteering(state, id), id);
  return updated(rest, { queuedMessages: filled(rest.queuedMessages ?? []) });
}

/**
 * @param {SessionState} state
 * @param {string} id
 */
const withoutSteering = (state, id) =>
  state.steeringMessage?.id === id ? updated(state, { steeringMessage: undefined }) : state;

/**
 * @param {SessionState} state
 * @param {string} id
 */
function withoutQueued(state, id) {
  const queue = state.queuedMessages ?? [];
  const rest = queue.filter((message) => message.id !== id);
  return rest.length === queue.length ? state : updated(state, { queuedMessages: filled(rest) });
}
