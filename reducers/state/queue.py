"""Transitions of messages that wait: one that steers the turn, and a queue for the next ones."""

from session_server.reducers.state.frozen_values import updated
from session_server.schemas.ahp.actions import (
    PendingKind,
    PendingMessageRemoved,
    PendingMessageSet,
    QueuedMessagesReordered,
)
from session_server.schemas.ahp.messages import PendingMessage
from session_server.schemas.ahp.session import SessionState


def pending_message_set(state: SessionState, action: PendingMessageSet, at: int) -> SessionState:
    message = PendingMessage(id=action.id, message=action.message)
    if action.kind is PendingKind.STEERING:
        return updated(state, steering_message=message)
    queue = state.queued_messages or ()
    if any(m.id == action.id for m in queue):
        return updated(
            state, queued_messages=tuple(message if m.id == action.id else m for m in queue)
        )
    return updated(state, queued_messages=(*queue, message))


def pending_message_removed(
    state: SessionState, action: PendingMessageRemoved, at: int
) -> SessionState:
    if action.kind is PendingKind.STEERING:
        return _without_steering(state, action.id)
    return _without_queued(state, action.id)


def queued_messages_reordered(
    state: SessionState, action: QueuedMessagesReordered, at: int
) -> SessionState:
    """Unknown ids are ignored; messages that the order leaves out keep their place at the end."""
    if state.queued_messages is None:
        return state
    by_id = {m.id: m for m in state.queued_messages}
    named = dict.fromkeys(m for m in action.order if m in by_id)
    rest = (m for m in state.queued_messages if m.id not in named)
    return updated(state, queued_messages=(*(by_id[m] for m in named), *rest))


def without_message(state: SessionState, message_id: str) -> SessionState:
    """Removes a message that started a turn, from the queue or from the steering message."""
    rest = _without_queued(_without_steering(state, message_id), message_id)
    return updated(rest, queued_messages=rest.queued_messages or None)


def _without_steering(state: SessionState, message_id: str) -> SessionState:
    steering = state.steering_message
    if steering is None or steering.id != message_id:
        return state
    return updated(state, steering_message=None)


def _without_queued(state: SessionState, message_id: str) -> SessionState:
    queue = state.queued_messages or ()
    rest = tuple(m for m in queue if m.id != message_id)
    return state if len(rest) == len(queue) else updated(state, queued_messages=rest or None)
