"""Sessions in the states that tests start from, and the people who act on them."""

from typing import Any

import msgspec

from session_server.reducers.batches import batch_of
from session_server.reducers.rules.judge import judge
from session_server.reducers.state.record import reduce_record
from session_server.schemas.ahp.actions import SessionAction
from session_server.schemas.ahp.questions import InputRequest, RequestMeta
from session_server.schemas.ahp.session import Lifecycle, SessionState, SessionSummary
from session_server.schemas.ahp.turn_messages import Message, MessageOrigin
from session_server.schemas.ahp.turns import ActiveTurn
from session_server.schemas.errors import Refusal
from session_server.schemas.principals import Principal, Provenance, Role, Stamp
from session_server.schemas.record import RecordAction, SessionRecord

OWNER = Principal(id="u-ana", name="Ana", role=Role.OWNER, client_id="laptop")
PHONE = Principal(id="u-bo", name="Bo", role=Role.ANSWERER, client_id="phone")
WATCHER = Principal(id="u-cy", role=Role.OBSERVER, client_id="wall")
AGENT = Principal(id="a-1", name="Agent", role=Role.AGENT, client_id="agent")

SESSION = "ahp-session:/1"


def user_message(text: str = "Deploy it") -> Message:
    return Message(text=text, origin=MessageOrigin(kind="user"))


def session(*, provider: str = "demo", status: int = 1, **fields: Any) -> SessionRecord:
    summary = SessionSummary(
        resource=SESSION,
        provider=provider,
        title="A session",
        status=status,
        created_at=1,
        modified_at=1,
    )
    fields = {"lifecycle": Lifecycle.READY, "turns": (), **fields}
    return SessionRecord(public=SessionState(summary=summary, **fields))


def in_turn(**fields: Any) -> SessionRecord:
    """A session whose agent is at work on turn `t`."""
    turn = ActiveTurn(id="t", message=user_message(), response_parts=())
    return session(status=8, **{"active_turn": turn, **fields})


def asking(*requests: InputRequest, **fields: Any) -> SessionRecord:
    """A session in turn `t` whose agent has asked these."""
    return in_turn(input_requests=requests, **fields) if requests else in_turn(**fields)


def asked_by(principal: Principal, request: InputRequest) -> InputRequest:
    """The request as the host keeps it, with who asked it."""
    meta = msgspec.structs.replace(request.meta or RequestMeta(), by=principal.author)
    return msgspec.structs.replace(request, meta=meta)


def fold(record: SessionRecord, *batch: RecordAction, at: int = 100) -> SessionRecord:
    for action in batch:
        record = reduce_record(record, action, at)
    return record


def stamp(principal: Principal, at: int = 100, via: Provenance = Provenance.PERSON) -> Stamp:
    return Stamp(at=at, by=principal.author, via=via)


def dispatch(
    record: SessionRecord, principal: Principal, action: SessionAction, at: int = 100
) -> SessionRecord | Refusal:
    """What the host does with an action: rules, batch, reduce."""
    refusal = judge(principal, record, action)
    if refusal is not None:
        return refusal
    return fold(record, *batch_of(record, action, stamp(principal, at)), at=at)


def accepted(
    record: SessionRecord, principal: Principal, action: SessionAction, at: int = 100
) -> SessionRecord:
    after = dispatch(record, principal, action, at)
    assert isinstance(after, SessionRecord), after
    return after


def refused(record: SessionRecord, principal: Principal, action: SessionAction) -> Refusal:
    refusal = judge(principal, record, action)
    assert refusal is not None
    return refusal
