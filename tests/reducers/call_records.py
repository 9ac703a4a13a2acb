"""A call and its rounds in a session's record, for the tests of what becomes of them."""

from typing import Any

from session_server.reducers.calls.recovery import after_crash, after_expired_state
from session_server.reducers.calls.rounds import open_round, request_id_of
from session_server.schemas.ahp.actions import InputCompleted
from session_server.schemas.ahp.questions import ResponseKind, Submitted, TextValue
from session_server.schemas.ahp.turns import SystemNotificationPart
from session_server.schemas.mcp import Elicitation, ElicitRequest, EmbeddedRequest, InputRequired
from session_server.schemas.principals import HOST, Stamp
from session_server.schemas.record import (
    Call,
    CallError,
    CallSent,
    CallStarted,
    Failed,
    Sent,
    SessionRecord,
    ToSend,
    Waiting,
)
from tests.sessions import OWNER, accepted, fold, in_turn

BY_HOST = Stamp(at=100, by=HOST)
ARGUMENTS = {"city": None, "deep": {"list": [1, 2.5, "x"]}, "token": "s3cret"}
TEXT = {"type": "object", "properties": {"v": {"type": "string"}}, "required": ["v"]}


def call(**fields: Any) -> Call:
    return Call(
        **{
            "id": "c",
            "server": "cloud",
            "method": "tools/call",
            "params": {"name": "deploy", "arguments": ARGUMENTS, "_meta": {"x": 1}},
            "turn_id": "t",
            "started_at": 1,
            **fields,
        }
    )


def form(message: str, schema: dict[str, Any] | None = None) -> ElicitRequest:
    params = Elicitation(mode="form", message=message, requested_schema=schema or TEXT)
    return ElicitRequest(params=params)


def asks(state: str | None = None, **requests: EmbeddedRequest) -> InputRequired:
    return InputRequired(
        result_type="input_required", input_requests=requests or None, request_state=state
    )


def the_call(record: SessionRecord) -> Call:
    return record.private.calls["c"]


def failed(record: SessionRecord) -> CallError:
    """What the call has failed with."""
    phase = the_call(record).phase
    assert isinstance(phase, Failed)
    return phase.error


def started(**fields: Any) -> SessionRecord:
    return fold(in_turn(), CallStarted(call=call(**fields)))


def sent(record: SessionRecord, **how: Any) -> SessionRecord:
    phase = the_call(record).phase
    assert isinstance(phase, ToSend)
    return fold(record, CallSent(call_id="c", leg=phase.leg, **how))


def leg(record: SessionRecord) -> int:
    phase = the_call(record).phase
    assert isinstance(phase, Sent | Waiting)
    return phase.leg


def asked(record: SessionRecord, required: InputRequired, **how: Any) -> SessionRecord:
    """The server's answer to the leg that is out."""
    batch = open_round(record, "c", leg(record), required, BY_HOST, **how)
    return fold(record, *batch)


def round_of(state: str | None = None, **requests: EmbeddedRequest) -> SessionRecord:
    """A call whose first leg brought these questions."""
    return asked(sent(started()), asks(state, **requests))


def completion(request_id: str, value: str | None = None, response: str = "accept") -> Any:
    answers = None if value is None else {"v": Submitted(value=TextValue(value=value))}
    return InputCompleted(request_id=request_id, response=ResponseKind(response), answers=answers)


def answered(
    record: SessionRecord, key: str, value: str | None = "x", response: str = "accept"
) -> SessionRecord:
    request_id = request_id_of("c", the_call(record).round, key)
    return accepted(record, OWNER, completion(request_id, value, response))


def notes(record: SessionRecord) -> list[str]:
    turn = record.public.active_turn
    parts = () if turn is None else turn.response_parts
    return [str(part.content) for part in parts if isinstance(part, SystemNotificationPart)]


def expire(record: SessionRecord) -> SessionRecord:
    return fold(record, *after_expired_state(record, "c", leg(record), BY_HOST))


def crash(record: SessionRecord) -> SessionRecord:
    return fold(record, *after_crash(record, "c", leg(record), BY_HOST))


def run_again(record: SessionRecord, response: str = "accept") -> SessionRecord:
    """The owner says whether a call in doubt runs again."""
    (request,) = record.public.input_requests or ()
    return accepted(record, OWNER, completion(request.id, response=response))
