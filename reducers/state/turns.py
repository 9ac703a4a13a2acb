"""Transitions of turns: they start, grow by parts and deltas, and end.

Also of messages that wait: one that steers the turn, and a queue for the next ones.
"""

from typing import Any

import msgspec

from session_server.reducers.state.frozen_values import updated
from session_server.reducers.state.status import marked, touched, with_error_status, with_status
from session_server.schemas.ahp.actions import (
    Delta,
    PendingKind,
    PendingMessageRemoved,
    PendingMessageSet,
    QueuedMessagesReordered,
    Reasoning,
    ResponsePartAdded,
    Truncated,
    TurnCancelled,
    TurnComplete,
    TurnFailed,
    TurnStarted,
    Usage,
)
from session_server.schemas.ahp.session import SessionState, Status
from session_server.schemas.ahp.tool_calls import (
    CancellationReason,
    Cancelled,
    Completed,
    Streaming,
    ToolCall,
)
from session_server.schemas.ahp.turn_messages import PendingMessage
from session_server.schemas.ahp.turns import (
    ActiveTurn,
    MarkdownPart,
    ReasoningPart,
    ResponsePart,
    ToolCallPart,
    Turn,
    TurnState,
    UnknownPart,
)
from session_server.schemas.wire import ErrorInfo


def active_turn(state: SessionState, turn_id: str) -> ActiveTurn | None:
    """The active turn, if it is the one that is meant."""
    turn = state.active_turn
    return turn if turn is not None and turn.id == turn_id else None


def tool_call(state: SessionState, turn_id: str, tool_call_id: str) -> ToolCall | None:
    """The tool call of that id in the active turn, if that is the one that is meant."""
    turn = active_turn(state, turn_id)
    for part in () if turn is None else turn.response_parts:
        if isinstance(part, ToolCallPart) and part.tool_call.tool_call_id == tool_call_id:
            return part.tool_call
    return None


def identity_of_call(call: ToolCall) -> dict[str, Any]:
    """The fields that every state of one call shares."""
    return {
        "tool_call_id": call.tool_call_id,
        "tool_name": call.tool_name,
        "display_name": call.display_name,
        "contributor": call.contributor,
        "meta": call.meta,
    }


def turn_started(state: SessionState, action: TurnStarted, at: int) -> SessionState:
    turn = ActiveTurn(id=action.turn_id, message=action.message, response_parts=())
    started = marked(with_status(updated(state, active_turn=turn)), Status.IS_READ, on=False)
    if action.queued_message_id:
        started = _without_message(started, action.queued_message_id)
    return touched(started, at)


def response_part_added(state: SessionState, action: ResponsePartAdded, at: int) -> SessionState:
    turn = active_turn(state, action.turn_id)
    if turn is None:
        return state
    return updated(
        state, active_turn=updated(turn, response_parts=(*turn.response_parts, action.part))
    )


def delta(state: SessionState, action: Delta, at: int) -> SessionState:
    return _appended(state, action, MarkdownPart)


def reasoning(state: SessionState, action: Reasoning, at: int) -> SessionState:
    return _appended(state, action, ReasoningPart)


def usage(state: SessionState, action: Usage, at: int) -> SessionState:
    turn = active_turn(state, action.turn_id)
    if turn is None:
        return state
    return updated(state, active_turn=updated(turn, usage=action.usage))


def turn_complete(state: SessionState, action: TurnComplete, at: int) -> SessionState:
    return _ended(state, action.turn_id, TurnState.COMPLETE, at)


def turn_cancelled(state: SessionState, action: TurnCancelled, at: int) -> SessionState:
    return _ended(state, action.turn_id, TurnState.CANCELLED, at)


def turn_failed(state: SessionState, action: TurnFailed, at: int) -> SessionState:
    ended = _ended(state, action.turn_id, TurnState.ERROR, at, action.error)
    return ended if ended is state else with_error_status(ended)


def truncated(state: SessionState, action: Truncated, at: int) -> SessionState:
    """Drops the turns after the named one, or all; an active turn is dropped too."""
    kept = () if action.turn_id is None else turns_up_to(state, action.turn_id)
    if kept is None:
        return state
    rest = updated(state, turns=kept, active_turn=None, input_requests=None)
    return touched(with_status(rest), at)


def turns_up_to(state: SessionState, turn_id: str) -> tuple[Turn, ...] | None:
    """The turns up to and including the named one, if it has ended."""
    for index, turn in enumerate(state.turns):
        if turn.id == turn_id:
            return state.turns[: index + 1]
    return None


def _appended(
    state: SessionState,
    action: Delta | Reasoning,
    kind: type[MarkdownPart] | type[ReasoningPart],
) -> SessionState:
    """Appends text to the first part with that id, if it is of the right kind."""
    turn = active_turn(state, action.turn_id)
    if turn is None:
        return state
    for index, part in enumerate(turn.response_parts):
        if part_id(part) == action.part_id:
            if not isinstance(part, kind):
                return state
            grown = updated(part, content=part.content + action.content)
            parts = (*turn.response_parts[:index], grown, *turn.response_parts[index + 1 :])
            return updated(state, active_turn=updated(turn, response_parts=parts))
    return state


def part_id(part: ResponsePart) -> str | None:
    match part:
        case MarkdownPart() | ReasoningPart():
            return part.id
        case ToolCallPart():
            return part.tool_call.tool_call_id
        case UnknownPart():
            return part.raw.get("id")
        case _:
            return None


def _ended(
    state: SessionState,
    turn_id: str,
    how: TurnState,
    at: int,
    error: ErrorInfo | None = None,
) -> SessionState:
    """Moves the active turn to the history; open tool calls are skipped, open questions dropped."""
    active = active_turn(state, turn_id)
    if active is None:
        return state
    turn = Turn(
        id=active.id,
        message=active.message,
        response_parts=tuple(_settled(part) for part in active.response_parts),
        usage=active.usage,
        state=how,
        error=error,
    )
    rest = msgspec.structs.replace(
        state, turns=(*state.turns, turn), active_turn=None, input_requests=None
    )
    return touched(with_status(rest), at)


def _settled(part: ResponsePart) -> ResponsePart:
    if not isinstance(part, ToolCallPart) or isinstance(part.tool_call, Completed | Cancelled):
        return part
    call = part.tool_call
    skipped = Cancelled(
        **identity_of_call(call),
        invocation_message=call.invocation_message or "",
        tool_input=None if isinstance(call, Streaming) else call.tool_input,
        reason=CancellationReason.SKIPPED,
    )
    return ToolCallPart(tool_call=skipped)


# Messages that wait


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


def _without_message(state: SessionState, message_id: str) -> SessionState:
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
