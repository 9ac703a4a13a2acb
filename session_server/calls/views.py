"""A call as its maker may see it: never its arguments, never the server's state."""

from session_server.schemas.calls import (
    Abandoned,
    Call,
    Failed,
    Finished,
    Sent,
    ToSend,
    Uncertain,
    Waiting,
)
from session_server.schemas.http import CallState, CallView
from session_server.schemas.record import SessionRecord


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
        reason=phase.reason if isinstance(phase, Abandoned) else None,
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
