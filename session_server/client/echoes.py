"""Recognizing one's own actions: in an envelope, and in a state that came without envelopes.

After a lost connection it is not known whether own actions arrived. A replay holds every envelope,
so it shows that. A snapshot shows only the effect of some actions; others are sent again if they
are idempotent, and are otherwise reported as unconfirmed.
"""

from collections.abc import Callable
from enum import Enum, auto
from typing import Any

import msgspec

from session_server.reducers.state.input_requests import open_request
from session_server.schemas.ahp.actions import (
    Action,
    AgentChanged,
    Delta,
    InputAnswerChanged,
    InputCompleted,
    InputRequested,
    ModelChanged,
    PendingMessageRemoved,
    PendingMessageSet,
    Reasoning,
    ResponsePartAdded,
    ToolCallDelta,
    Truncated,
    TurnCancelled,
    TurnComplete,
    TurnStarted,
)
from session_server.schemas.ahp.questions import Answer, Draft, Skipped, Submitted
from session_server.schemas.ahp.session import SessionState
from session_server.schemas.ahp.turn_messages import PendingMessage
from session_server.schemas.ahp.turns import TurnState


class Delivery(Enum):
    DONE = auto()
    REPEAT = auto()
    UNKNOWN = auto()


def is_echo(sent: Action, received: Action) -> bool:
    """Whether this is what we sent, apart from what a host adds to it.

    A cleared draft may come back as the answer that it covered.
    """
    if isinstance(sent, InputRequested) and isinstance(received, InputRequested):
        return sent.request.id == received.request.id
    if isinstance(sent, InputAnswerChanged) and sent.answer is None:
        is_change = isinstance(received, InputAnswerChanged)
        return is_change and msgspec.structs.replace(received, answer=None) == sent
    return type(sent) is type(received) and _unmarked(sent) == _unmarked(received)


def is_deferred_echo(sent: Action, received: Action) -> bool:
    """Whether a host's own action settles ours: it made now what it had put off.

    Of several changes that were put off only the last is made, so it settles all of them.
    """
    if isinstance(sent, ModelChanged | AgentChanged):
        return type(sent) is type(received)
    return isinstance(sent, TurnComplete) and sent == received


def is_same_question(one: InputAnswerChanged, other: InputAnswerChanged) -> bool:
    return (one.request_id, one.question_id) == (other.request_id, other.question_id)


def is_superseded(older: Action, newer: Action) -> bool:
    """Drafts are worth sending only in their last version.

    A clearing needs the draft that it clears: without it, it would clear the answer below.
    """
    return (
        isinstance(older, InputAnswerChanged)
        and isinstance(newer, InputAnswerChanged)
        and isinstance(older.answer, Draft)
        and newer.answer is not None
        and is_same_question(older, newer)
    )


def is_closing(older: Action, newer: Action) -> bool:
    """Whether what came before the older action must stay, although the newer one answers again.

    The older one closes the question, or clears the answer to it.
    """
    if not isinstance(newer, InputAnswerChanged):
        return False
    if isinstance(older, InputAnswerChanged):
        return is_same_question(older, newer) and older.answer is None
    return isinstance(older, InputCompleted) and older.request_id == newer.request_id


def delivery_in(state: SessionState, action: Action) -> Delivery:
    """What a snapshot shows about an action that was sent on a connection that broke."""
    kinds = type(action).__mro__  # those of later versions are subclasses
    is_visible = next((_VISIBLE[kind] for kind in kinds if kind in _VISIBLE), None)
    if is_visible is not None and is_visible(state, action):
        return Delivery.DONE
    if isinstance(action, InputAnswerChanged) and action.answer is None:
        # An answer that is there now may have been brought back by it; twice would remove that.
        is_answered = isinstance(answer_in(state, action), Submitted | Skipped)
        return Delivery.UNKNOWN if is_answered else Delivery.REPEAT
    return Delivery.UNKNOWN if isinstance(action, _NOT_TWICE) else Delivery.REPEAT


# Appending twice appends double; a message or a truncation could hit what came after it.
_NOT_TWICE = (
    Delta,
    PendingMessageSet,
    Reasoning,
    ResponsePartAdded,
    ToolCallDelta,
    Truncated,
)


def answer_in(state: SessionState, action: InputAnswerChanged) -> Answer | None:
    """The current answer that this action changes."""
    request = open_request(state, action.request_id)
    return None if request is None else (request.answers or {}).get(action.question_id)


def _answer_is_there(state: SessionState, action: InputAnswerChanged) -> bool:
    is_open = open_request(state, action.request_id) is not None
    return is_open and bare(answer_in(state, action)) == bare(action.answer)


def _turn_is_there(state: SessionState, action: TurnStarted) -> bool:
    active = () if state.active_turn is None else (state.active_turn,)
    return any(turn.id == action.turn_id for turn in (*active, *state.turns))


def _turn_is_cancelled(state: SessionState, action: TurnCancelled) -> bool:
    return any(
        turn.id == action.turn_id and turn.state is TurnState.CANCELLED for turn in state.turns
    )


def _history_ends_there(state: SessionState, action: Truncated) -> bool:
    last = state.turns[-1].id if state.turns else None
    return state.active_turn is None and last == action.turn_id


def _message_waits(state: SessionState, action: PendingMessageSet) -> bool:
    return any(
        waiting.id == action.id and waiting.message == action.message for waiting in _waiting(state)
    )


def _message_is_gone(state: SessionState, action: PendingMessageRemoved) -> bool:
    return all(waiting.id != action.id for waiting in _waiting(state))


def _waiting(state: SessionState) -> tuple[PendingMessage, ...]:
    steering = () if state.steering_message is None else (state.steering_message,)
    return (*steering, *(state.queued_messages or ()))


_VISIBLE: dict[type, Callable[[SessionState, Any], bool]] = {
    InputAnswerChanged: _answer_is_there,
    TurnStarted: _turn_is_there,
    TurnCancelled: _turn_is_cancelled,
    Truncated: _history_ends_there,
    PendingMessageSet: _message_waits,
    PendingMessageRemoved: _message_is_gone,
}


def _unmarked(action: Action) -> Action:
    if isinstance(action, InputAnswerChanged):
        return msgspec.structs.replace(action, answer=bare(action.answer))
    if isinstance(action, InputCompleted):
        answers = {key: bare(answer) for key, answer in (action.answers or {}).items()}
        return msgspec.structs.replace(action, answers=answers or None, meta=None)
    return action


def bare(answer: Answer | None) -> Answer | None:
    return None if answer is None else msgspec.structs.replace(answer, meta=None)
