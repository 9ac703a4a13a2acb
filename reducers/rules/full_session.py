"""What a session that has reached its size limit still accepts: actions that make it no larger."""

from collections.abc import Sequence
from typing import Any

from session_server.reducers.state.input_requests import open_request
from session_server.schemas.ahp import actions
from session_server.schemas.ahp.questions import Answer, Skipped
from session_server.schemas.ahp.session import SessionState
from session_server.schemas.codec import encode
from session_server.schemas.limits import ANSWER_CHARS
from session_server.schemas.record import (
    CallAbandoned,
    CallAnswered,
    CallCollected,
    ClientLeft,
    CompletionHeld,
    OutcomeCollected,
    SessionRecord,
)

ENDINGS = (
    CallAbandoned,
    CallAnswered,
    CallCollected,
    ClientLeft,
    CompletionHeld,
    actions.InputCompleted,
    actions.IsArchivedChanged,
    actions.IsReadChanged,
    OutcomeCollected,
    actions.PendingMessageRemoved,
    actions.TitleChanged,
    actions.Truncated,
    actions.TurnCancelled,
    actions.TurnComplete,
    actions.TurnFailed,
)
"""Actions that end or remove something, or only replace what is small anyway."""


def makes_room(record: SessionRecord, batch: Sequence[Any]) -> bool:
    """Whether a session at its size limit accepts these actions: they make it no larger.

    An action that ends something may carry a short text, and an answer may be replaced by one of
    at most its size.
    """
    changes = [action for action in batch if isinstance(action, actions.InputAnswerChanged)]
    endings = [action for action in batch if isinstance(action, ENDINGS)]
    if endings:
        return sum(len(encode(action)) for action in (*changes, *endings)) <= ANSWER_CHARS
    return bool(changes) and all(_is_no_larger(record.public, action) for action in changes)


def _is_no_larger(state: SessionState, action: actions.InputAnswerChanged) -> bool:
    if action.answer is None:
        return True
    request = open_request(state, action.request_id)
    current = ((request and request.answers) or {}).get(action.question_id)
    return current is not None and _size(action.answer) <= _size(current)


def _size(answer: Answer) -> int:
    """The size of the value, and of the answer kept under it."""
    own = len(encode(answer.freeform_values if isinstance(answer, Skipped) else answer.value))
    covers = None if answer.meta is None else answer.meta.covers
    return own if covers is None else own + _size(covers)
