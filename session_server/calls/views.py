"""A call as its maker may see it: never its arguments, never the server's state."""

from enum import StrEnum

from session_server.schemas.calls import (
    Abandoned,
    Call,
    CallError,
    Failed,
    Finished,
    Sent,
    ToSend,
    Uncertain,
    Waiting,
)
from session_server.schemas.mcp import CallMethod
from session_server.schemas.principals import Author
from session_server.schemas.record import SessionRecord
from session_server.schemas.wire import Count, Extra, Millis, Uri, Wire


class CallState(StrEnum):
    """`waiting`: people are asked; `uncertain`: the owner is, whether it runs again."""

    SENDING = "sending"
    RUNNING = "running"
    WAITING = "waiting"
    UNCERTAIN = "uncertain"
    FINISHED = "finished"
    FAILED = "failed"
    ABANDONED = "abandoned"


class CallView(Wire, frozen=True, kw_only=True):
    """`result` is the server's own, whole; `requests` are the questions that are open for it."""

    id: str
    session: Uri
    server: str
    method: CallMethod
    target: str
    state: CallState
    round: Count
    started_at: Millis
    turn_id: str
    ended_at: Millis | None = None
    by: Author | None = None
    requests: tuple[str, ...] = ()
    result: Extra | None = None
    error: CallError | None = None

    @property
    def is_open(self) -> bool:
        return self.ended_at is None


def view_of(record: SessionRecord, call: Call) -> CallView:
    phase = call.phase
    return CallView(
        id=call.id,
        session=record.public.summary.resource,
        server=call.server,
        method=call.method,
        target=call.target,
        state=_STATES[type(phase)],
        round=call.round,
        started_at=call.started_at,
        turn_id=call.turn_id,
        ended_at=phase.at if isinstance(phase, Finished | Failed | Abandoned) else None,
        by=call.by,
        requests=tuple(
            request.id
            for request in record.public.input_requests or ()
            if request.meta is not None and request.meta.call == call.id
        ),
        result=phase.result if isinstance(phase, Finished) else None,
        error=phase.error if isinstance(phase, Failed) else None,
    )


_STATES: dict[type, CallState] = {
    ToSend: CallState.SENDING,
    Sent: CallState.RUNNING,
    Waiting: CallState.WAITING,
    Uncertain: CallState.UNCERTAIN,
    Finished: CallState.FINISHED,
    Failed: CallState.FAILED,
    Abandoned: CallState.ABANDONED,
}
