"""What happens to a question whose time is up, and to one that its asker takes back."""

import msgspec

from ..schemas.actions import InputCompleted
from ..schemas.principals import HOST, Provenance, Stamp
from ..schemas.questions import (
    Answer,
    BooleanQuestion,
    BooleanValue,
    InputRequest,
    IntegerQuestion,
    MultiSelectQuestion,
    NumberQuestion,
    NumberValue,
    OnExpiry,
    Question,
    ResponseKind,
    SelectedManyValue,
    SelectedValue,
    SingleSelectQuestion,
    Submitted,
    TextQuestion,
    TextValue,
    Value,
)
from ..schemas.record import SessionRecord
from ..schemas.session import SessionState
from .answers import check_value
from .batches import Batch, completion
from .requests import open_request


def expired(record: SessionRecord, request_id: str, at: int) -> Batch:
    """Ends a request whose deadline has passed; nothing if it is closed, early, or waits on.

    With `defaults` it is accepted as it was proposed, unless somebody has begun to answer or a
    required question proposes nothing. Otherwise it is cancelled: an absence is not a no.
    """
    state = record.public
    request = open_request(state, request_id)
    meta = None if request is None else request.meta
    if request is None or meta is None or meta.expires_at is None or at < meta.expires_at:
        return ()
    if meta.on_expiry is OnExpiry.WAIT:
        return ()
    if meta.on_expiry is OnExpiry.DEFAULTS:
        if request_id in record.private.begun:
            return ()
        answers = proposed_answers(request)
        if answers is not None:
            return _completed(state, request, ResponseKind.ACCEPT, Provenance.DEFAULT, at, answers)
    return _completed(state, request, ResponseKind.CANCEL, Provenance.TIMEOUT, at)


def withdrawn(state: SessionState, request_id: str, stamp: Stamp) -> Batch:
    """Ends a request because whoever asked no longer wants to know."""
    if open_request(state, request_id) is None:
        return ()
    action = InputCompleted(request_id=request_id, response=ResponseKind.CANCEL)
    return completion(state, action, msgspec.structs.replace(stamp, via=Provenance.WITHDRAWN))


def proposed_answers(request: InputRequest) -> dict[str, Answer] | None:
    """The answers that a request proposes; `None` if they do not satisfy it."""
    answers: dict[str, Answer] = {}
    for question in request.questions or ():
        value = proposed_value(question)
        if value is not None and check_value(question, value) is None:
            answers[question.id] = Submitted(value=value)
        elif question.required:
            return None
    return answers


def proposed_value(question: Question) -> Value | None:
    match question:
        case SingleSelectQuestion():
            chosen = _recommended(question)
            return SelectedValue(value=chosen[0]) if chosen else None
        case MultiSelectQuestion():
            chosen = _recommended(question)
            return SelectedManyValue(value=chosen) if chosen else None
        case TextQuestion(default_value=str(text)):
            return TextValue(value=text)
        case BooleanQuestion(default_value=bool(truth)):
            return BooleanValue(value=truth)
        case NumberQuestion(default_value=number) | IntegerQuestion(default_value=number):
            return None if number is None else NumberValue(value=number)
        case _:
            return None


def _recommended(question: SingleSelectQuestion | MultiSelectQuestion) -> tuple[str, ...]:
    return tuple(option.id for option in question.options if option.recommended)


def _completed(
    state: SessionState,
    request: InputRequest,
    response: ResponseKind,
    via: Provenance,
    at: int,
    answers: dict[str, Answer] | None = None,
) -> Batch:
    action = InputCompleted(request_id=request.id, response=response, answers=answers)
    return completion(state, action, Stamp(at=at, by=HOST, via=via))
