"""Calls that were cut off: by a crash, a lost connection, expired state, or the wrong revision.

Each function turns such an event into one batch for the session's log: the call starts over, people
are asked first if that could repeat a side effect, or it fails.
"""

from urllib.parse import quote

from session_server.reducers.batches import Batch, note, withdrawal
from session_server.reducers.calls.redaction import masked
from session_server.reducers.calls.rounds import failure, outstanding, request_meta, unfinished
from session_server.reducers.rules.input_rules import CALL_PREFIX
from session_server.schemas.ahp.actions import InputRequested
from session_server.schemas.ahp.questions import InputRequest
from session_server.schemas.limits import RESTARTS_PER_CALL, UNREACHED_LIMIT_MS
from session_server.schemas.principals import Stamp
from session_server.schemas.record import (
    Begun,
    Call,
    CallDoubted,
    CallRestarted,
    CallUnsent,
    FailureKind,
    SessionRecord,
)


def after_no_connection(
    record: SessionRecord, call_id: str, leg: int, reason: str, stamp: Stamp
) -> Batch:
    """The leg was not sent. It is retried if people have answered for it; a new call fails."""
    call = unfinished(record, call_id, leg)
    if call is None:
        return ()
    since = stamp.at if call.unreached_since is None else call.unreached_since
    if call.round == 0 or stamp.at - since >= UNREACHED_LIMIT_MS:
        reason = f"{call.server} cannot be used: {reason}"
        return failure(record, call_id, leg, FailureKind.UPSTREAM, reason, stamp)
    text = f"{call.server} cannot be used now, and is tried again: {masked(call, reason)}."
    return (
        CallUnsent(call_id=call_id, leg=leg),
        *(note(record.public, text) if call.unreached == 0 else ()),
    )


def after_expired_state(record: SessionRecord, call_id: str, leg: int, stamp: Stamp) -> Batch:
    """The server lost its state: start over, but ask first if that could repeat a side effect."""
    call = outstanding(record, call_id, leg)
    if call is None:
        return ()
    if call.restarts >= RESTARTS_PER_CALL:
        reason = f"the server forgot this call {call.restarts + 1} times"
        return failure(record, call_id, leg, FailureKind.RESTART_LIMIT, reason, stamp)
    if call.repeatable or call.rounds_of_run <= 1:
        text = f"{call.server}/{call.target} took too long and starts over; answers are kept."
        return (CallRestarted(call_id=call_id, leg=leg), *note(record.public, text))
    return _doubt(call, leg, "The server no longer knows this call. Start it over?", stamp)


def after_crash(record: SessionRecord, call_id: str, leg: int, stamp: Stamp) -> Batch:
    """The process died while a leg was out, so it is not known whether it ran.

    Questions that a server asked on the lost connection can no longer be answered there; what was
    written in them is kept for when they are asked again.
    """
    call = outstanding(record, call_id, leg)
    if call is None:
        return ()
    if call.restarts >= RESTARTS_PER_CALL:
        reason = f"it was interrupted {call.restarts + 1} times"
        return failure(record, call_id, leg, FailureKind.RESTART_LIMIT, reason, stamp)
    lost, begun = withdrawal(record, call_id, stamp), _begun(record, call)
    if call.repeatable:
        text = f"{call.server}/{call.target} was interrupted and runs again."
        again = CallRestarted(call_id=call_id, leg=leg, begun=begun)
        return (again, *lost, *note(record.public, text))
    return (*_doubt(call, leg, "It may already have run. Run it again?", stamp, begun), *lost)


def in_other_revision(
    record: SessionRecord,
    call_id: str,
    leg: int,
    revision: str,
    stamp: Stamp,
    *,
    has_only_asked: bool,
) -> Batch:
    """The tool failed because it can only ask in another revision of MCP.

    It may have had side effects before. So it runs again only if it is repeatable or people agree.
    """
    call = outstanding(record, call_id, leg)
    if call is None:
        return ()
    if call.restarts >= RESTARTS_PER_CALL:
        reason = f"it could not ask in either revision of MCP, {call.restarts + 1} times"
        return failure(record, call_id, leg, FailureKind.RESTART_LIMIT, reason, stamp)
    if call.repeatable or has_only_asked:
        text = f"{call.server}/{call.target} runs again over MCP {revision}, where it can ask."
        return (CallRestarted(call_id=call_id, leg=leg), *note(record.public, text))
    reason = (
        f"It stopped because it needed to ask something, and it can ask only over MCP {revision}."
        " Anything it did before that has already taken effect."
        f" Run it again from the start, over MCP {revision}?"
    )
    return _doubt(call, leg, reason, stamp)


def _begun(record: SessionRecord, call: Call) -> tuple[Begun, ...]:
    written = {r.id: r.answers for r in record.public.input_requests or () if r.answers}
    lost = tuple(
        Begun(key=a.key, fingerprint=a.fingerprint, answers=written[a.request_id])
        for a in call.asked
        if a.request_id in written
    )
    return lost or call.begun


def _doubt(call: Call, leg: int, reason: str, stamp: Stamp, begun: tuple[Begun, ...] = ()) -> Batch:
    """Asks whether to run it again. A timeout counts as no consent."""
    request_id = f"{CALL_PREFIX}{quote(call.id, safe='')}/again/{leg}"
    request = InputRequest(
        id=request_id,
        message=f"{call.server}/{call.target}: {reason}",
        meta=request_meta(call, stamp),
    )
    return (
        CallDoubted(call_id=call.id, leg=leg, request_id=request_id, begun=begun),
        InputRequested(request=request),
    )
