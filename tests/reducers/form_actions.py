"""A form in a turn, and what people do with it."""

from typing import Any

import msgspec

from session_server.reducers.rules.judge import judge
from session_server.schemas.ahp.actions import (
    InputAnswerChanged,
    InputCompleted,
    InputRequested,
    ToolCallReady,
    ToolCallStart,
    TurnStarted,
)
from session_server.schemas.ahp.questions import (
    Answer,
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
from session_server.schemas.ahp.session import ActiveClient
from session_server.schemas.ahp.tool_calls import ClientContributor, ConfirmationReason
from session_server.schemas.ahp.turn_messages import Message, MessageOrigin
from session_server.schemas.errors import RefusalCode
from session_server.schemas.principals import Author, Principal, Provenance
from session_server.schemas.record import SessionRecord
from tests.sessions import AGENT, accepted, asking, fold, in_turn

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
    return accepted(record, principal, change(Draft(value=TextValue(value=value), meta=FORGED)), at)


def complete(response: str = "accept", **answers: Any) -> InputCompleted:
    return InputCompleted(request_id="r", response=ResponseKind(response), answers=answers or None)


def due(request: InputRequest, on_expiry: OnExpiry | None, **fields: Any) -> SessionRecord:
    meta = RequestMeta(expires_at=500, on_expiry=on_expiry)
    return asking(msgspec.structs.replace(request, meta=meta, **fields))


def start(turn_id: str = "new", kind: str = "user") -> TurnStarted:
    message = Message(text="Go", origin=MessageOrigin(kind=kind))
    return TurnStarted(turn_id=turn_id, message=message)


SHORT = TextValue(value="x")


def change(answer: Any, question_id: str = "name", request_id: str = "r") -> InputAnswerChanged:
    return InputAnswerChanged(request_id=request_id, question_id=question_id, answer=answer)


def answer(record: SessionRecord, principal: Principal, given: Answer | None) -> SessionRecord:
    return accepted(record, principal, change(given))


def verdict(principal: Principal, record: SessionRecord, action: Any) -> RefusalCode | None:
    refusal = judge(principal, record, action)
    return refusal and refusal.code


def asked(request: InputRequest, record: SessionRecord | None = None) -> RefusalCode | None:
    return verdict(AGENT, record or in_turn(), InputRequested(request=request))


def with_client_tool(client_id: str = "laptop") -> SessionRecord:
    """The active client is `laptop`, and a tool of this client runs."""
    record = in_turn(active_client=ActiveClient(client_id="laptop", tools=()))
    contributor = ClientContributor(client_id=client_id)
    on_call = {"turn_id": "t", "tool_call_id": "c"}
    start = ToolCallStart(**on_call, tool_name="open", display_name="Open", contributor=contributor)
    ready = ToolCallReady(
        **on_call, invocation_message="Opening", confirmed=ConfirmationReason.NOT_NEEDED
    )
    return fold(record, start, ready)


def recording(record: SessionRecord) -> SessionRecord:
    private = msgspec.structs.replace(record.private, is_recording=True)
    return msgspec.structs.replace(record, private=private)
