"""A form in a turn, and what people do with it."""

from typing import Any

import msgspec

from session_server.reducers.rules.judge import judge
from session_server.schemas.ahp.actions import (
    InputAnswerChanged,
    InputCompleted,
    InputRequested,
    TurnStarted,
)
from session_server.schemas.ahp.messages import Message, MessageOrigin
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
from session_server.schemas.errors import RefusalCode
from session_server.schemas.principals import Author, Provenance, Role
from session_server.schemas.record import (
    SessionRecord,
)
from tests.sessions import (
    AGENT,
    PEOPLE,
    accepted,
    asking,
    in_turn,
)

FORM = InputRequest(
    id="r",
    message="Deploy",
    questions=(
        TextQuestion(id="name", message="Name?", required=True, min=2),
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


ROLES = {role: next(p for p in PEOPLE if p.role is role) for role in Role}


def start(turn_id: str = "new", kind: str = "user") -> TurnStarted:
    message = Message(text="Go", origin=MessageOrigin(kind=kind))
    return TurnStarted(turn_id=turn_id, message=message)


SHORT = TextValue(value="x")


def change(answer: Any, question_id: str = "name", request_id: str = "r") -> InputAnswerChanged:
    return InputAnswerChanged(request_id=request_id, question_id=question_id, answer=answer)


def asked(request: InputRequest, record: SessionRecord | None = None) -> RefusalCode | None:
    refusal = judge(AGENT, record or in_turn(), InputRequested(request=request))
    return refusal and refusal.code
