"""A question in a turn, and what people do about it, for the tests of batches."""

from typing import Any

import msgspec

from session_server.schemas.ahp.actions import InputAnswerChanged, InputCompleted
from session_server.schemas.ahp.questions import (
    AnswerMeta,
    Draft,
    InputRequest,
    IntegerQuestion,
    OnExpiry,
    RequestMeta,
    ResponseKind,
    TextQuestion,
    TextValue,
)
from session_server.schemas.principals import Author, Provenance
from session_server.schemas.record import (
    SessionRecord,
)
from tests.sessions import accepted, asking

FORM = InputRequest(
    id="r",
    message="Deploy",
    questions=(
        TextQuestion(id="name", message="Name?", required=True),
        IntegerQuestion(id="size", message="Size?"),
    ),
)
OSLO = TextValue(value="Oslo")
FORGED = AnswerMeta(by=Author(id="someone else"), at=1, via=Provenance.POLICY)


def draft(value: str, principal: Any, record: SessionRecord, at: int = 100) -> SessionRecord:
    action = InputAnswerChanged(
        request_id="r",
        question_id="name",
        answer=Draft(value=TextValue(value=value), meta=FORGED),
    )
    return accepted(record, principal, action, at)


def complete(response: str = "accept", **answers: Any) -> InputCompleted:
    return InputCompleted(request_id="r", response=ResponseKind(response), answers=answers or None)


def due(request: InputRequest, on_expiry: OnExpiry | None, **fields: Any) -> SessionRecord:
    meta = RequestMeta(expires_at=500, on_expiry=on_expiry)
    return asking(msgspec.structs.replace(request, meta=meta, **fields))
