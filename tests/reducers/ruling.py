"""Judging one action of somebody in a session, for the tests of the rules."""

from typing import Any

from session_server.reducers.rules.judge import judge
from session_server.schemas.ahp.actions import (
    InputAnswerChanged,
    InputCompleted,
    InputRequested,
    TurnStarted,
)
from session_server.schemas.ahp.messages import Message, MessageOrigin
from session_server.schemas.ahp.questions import (
    InputRequest,
    IntegerQuestion,
    ResponseKind,
    TextQuestion,
    TextValue,
)
from session_server.schemas.errors import RefusalCode
from session_server.schemas.principals import Role
from session_server.schemas.record import SessionRecord
from tests.sessions import (
    AGENT,
    PEOPLE,
    in_turn,
)

ROLES = {role: next(p for p in PEOPLE if p.role is role) for role in Role}


def start(turn_id: str = "new", kind: str = "user") -> TurnStarted:
    message = Message(text="Go", origin=MessageOrigin(kind=kind))
    return TurnStarted(turn_id=turn_id, message=message)


FORM = InputRequest(
    id="r",
    message="Deploy",
    questions=(
        TextQuestion(id="name", message="Name?", required=True, min=2),
        IntegerQuestion(id="size", message="Size?"),
    ),
)
SHORT = TextValue(value="x")


def change(answer: Any, question_id: str = "name", request_id: str = "r") -> InputAnswerChanged:
    return InputAnswerChanged(request_id=request_id, question_id=question_id, answer=answer)


def complete(response: str = "accept", **answers: Any) -> InputCompleted:
    return InputCompleted(request_id="r", response=ResponseKind(response), answers=answers or None)


def asked(request: InputRequest, record: SessionRecord | None = None) -> RefusalCode | None:
    refusal = judge(AGENT, record or in_turn(), InputRequested(request=request))
    return refusal and refusal.code
