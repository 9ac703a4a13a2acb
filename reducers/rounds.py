"""What a call does next: opening a round, going on after expired state, recovering from a crash.

Each function turns an event of the outside world into one batch for the session's log.
"""

import hashlib
from typing import Any
from urllib.parse import quote

import msgspec

from ..schemas.actions import InputRequested
from ..schemas.calls import Asked, Call, CallError, FailureKind, Sent
from ..schemas.limits import OPEN_REQUESTS_PER_SESSION, RESTARTS_PER_CALL
from ..schemas.mcp import (
    Elicitation,
    ElicitRequest,
    ElicitResult,
    EmbeddedRequest,
    InputRequired,
    Unshowable,
)
from ..schemas.principals import Stamp
from ..schemas.questions import InputRequest, RequestMeta
from ..schemas.record import (
    CallDoubted,
    CallFailed,
    CallFinished,
    CallInputRequired,
    CallRestarted,
    SessionRecord,
)
from .batches import Batch, note, withdrawal
from .calls import leg_out
from .forms import request_of
from .input_rules import CALL_PREFIX, check_form
from .recognition import retry_params

LONGEST_KEY = 128


def next_params(call: Call) -> dict[str, Any]:
    """The parameters of the leg that is to be sent."""
    return retry_params(call.params, input_responses(call), call.request_state)


def input_responses(call: Call) -> dict[str, ElicitResult]:
    """The responses of the latest round, by the server's keys."""
    return {a.key: a.response for a in call.asked if a.response is not None}


def outstanding(record: SessionRecord, call_id: str, leg: int) -> Call | None:
    """The call, if this leg is the one whose answer is awaited. What comes late finds none."""
    call = record.private.calls.get(call_id)
    return call if call is not None and leg_out(call) == leg else None


def open_round(
    record: SessionRecord,
    call_id: str,
    leg: int,
    required: InputRequired,
    stamp: Stamp,
    *,
    held: bool = False,
) -> Batch:
    """All requests of a round open at once; what was answered before is not asked again."""
    call = outstanding(record, call_id, leg)
    if call is None or not isinstance(call.phase, Sent):
        return ()
    if call.rounds_of_run >= call.max_rounds:
        words = f"the server asked more than {call.max_rounds} times"
        return failure(record, call_id, leg, FailureKind.ROUND_LIMIT, words, stamp)
    asked: list[Asked] = []
    opened: list[InputRequested] = []
    room = OPEN_REQUESTS_PER_SESSION - len(record.public.input_requests or ())
    for key, embedded in (required.input_requests or {}).items():
        if not isinstance(embedded, ElicitRequest):
            kind, words = FailureKind.UNSUPPORTED_REQUEST, _unsupported(embedded)
            return failure(record, call_id, leg, kind, words, stamp)
        entry, request = _ask(call, key, embedded.params)
        reason = _unaskable(request, room - len(opened))
        if reason is not None or isinstance(request, Unshowable):
            kind = FailureKind.UNSHOWABLE_FORM
            return failure(record, call_id, leg, kind, str(reason), stamp)
        asked.append(entry)
        if entry.response is None:
            opened.append(InputRequested(request=request))
    round_opened = CallInputRequired(
        call_id=call_id,
        leg=leg,
        asked=tuple(asked),
        request_state=required.request_state,
        held=held,
    )
    carried = len(asked) - len(opened)
    words = f"{carried} answer(s) given before went to {call.server}/{call.target} again."
    return (round_opened, *opened, *(note(record.public, words) if carried else ()))


def finish(
    record: SessionRecord, call_id: str, leg: int, result: dict[str, Any], stamp: Stamp
) -> Batch:
    """The server answered for good; questions that it left open are taken back."""
    if outstanding(record, call_id, leg) is None:
        return ()
    done = CallFinished(call_id=call_id, leg=leg, result=result)
    return (done, *withdrawal(record, call_id, stamp))


def failure(
    record: SessionRecord, call_id: str, leg: int, kind: FailureKind, message: str, stamp: Stamp
) -> Batch:
    """The call cannot go on, and its session says why."""
    call = outstanding(record, call_id, leg)
    if call is None:
        return ()
    error = CallError(kind=kind, message=message)
    return (
        CallFailed(call_id=call_id, leg=leg, error=error),
        *withdrawal(record, call_id, stamp),
        *note(record.public, f"{call.server}/{call.target} failed: {message}."),
    )


def after_expired_state(record: SessionRecord, call_id: str, leg: int, stamp: Stamp) -> Batch:
    """The server forgot its state. Start over; ask first if that could do a thing twice."""
    call = outstanding(record, call_id, leg)
    if call is None:
        return ()
    if call.restarts >= RESTARTS_PER_CALL:
        words = f"the server forgot this call {call.restarts + 1} times"
        return failure(record, call_id, leg, FailureKind.RESTART_LIMIT, words, stamp)
    if call.repeatable or call.rounds_of_run <= 1:
        words = f"{call.server}/{call.target} took too long and starts over; answers are kept."
        return (CallRestarted(call_id=call_id, leg=leg), *note(record.public, words))
    return _doubt(call, leg, "The server no longer knows this call. Start it over?")


def after_crash(record: SessionRecord, call_id: str, leg: int, stamp: Stamp) -> Batch:
    """The process died while a leg was out, and nobody knows whether it ran.

    Questions that a server asked on the lost connection can no longer be answered there.
    """
    call = outstanding(record, call_id, leg)
    if call is None:
        return ()
    if call.restarts >= RESTARTS_PER_CALL:
        words = f"it was interrupted {call.restarts + 1} times"
        return failure(record, call_id, leg, FailureKind.RESTART_LIMIT, words, stamp)
    lost = withdrawal(record, call_id, stamp)
    if call.repeatable:
        words = f"{call.server}/{call.target} was interrupted and runs again."
        return (CallRestarted(call_id=call_id, leg=leg), *lost, *note(record.public, words))
    return (*_doubt(call, leg, "It may already have run. Run it again?"), *lost)


def request_id_of(call_id: str, round_number: int, key: str) -> str:
    """Derived, so that asking twice changes nothing; nobody else may use such an id."""
    short = key if len(key) <= LONGEST_KEY else hashlib.sha256(key.encode()).hexdigest()
    return f"{CALL_PREFIX}{quote(call_id, safe='')}/{round_number}/{short}"


def fingerprint_of(elicitation: Elicitation) -> str:
    """The same question has the same fingerprint, however its schema is ordered."""
    asked = (elicitation.message, elicitation.requested_schema, elicitation.url)
    return hashlib.sha256(msgspec.json.encode(asked, order="deterministic")).hexdigest()


def _ask(call: Call, key: str, elicitation: Elicitation) -> tuple[Asked, InputRequest | Unshowable]:
    round_number = call.round + 1
    fingerprint = fingerprint_of(elicitation)
    meta = RequestMeta(
        call=call.id, round=round_number, key=key, server=call.server, tool=call.target
    )
    request_id = request_id_of(call.id, round_number, key)
    known = (
        memory
        for memory in call.remembered
        if (memory.key, memory.fingerprint) == (key, fingerprint)
        and memory.run < call.restarts
        and elicitation.mode != "url"
    )
    memory = next(known, None)
    entry = Asked(
        key=key,
        request_id=request_id,
        fingerprint=fingerprint,
        schema=None if elicitation.mode == "url" else elicitation.requested_schema or _EMPTY_FORM,
        response=None if memory is None else memory.response,
    )
    return entry, request_of(request_id, elicitation, meta)


_EMPTY_FORM: dict[str, Any] = {"type": "object", "properties": {}}


def _unsupported(embedded: EmbeddedRequest) -> str:
    method = embedded.__struct_config__.tag
    return f"the server asked for {method}, which was not offered to it"


def _unaskable(request: InputRequest | Unshowable, room: int) -> str | None:
    """Why a request cannot be put before people."""
    if isinstance(request, Unshowable):
        return f"the server asked for what cannot be shown: {request.reason}"
    if room <= 0:
        return f"more than {OPEN_REQUESTS_PER_SESSION} questions would be open at once"
    refusal = check_form(request)
    return None if refusal is None else refusal.message.rstrip(".")


def _doubt(call: Call, leg: int, words: str) -> Batch:
    request_id = f"{CALL_PREFIX}{quote(call.id, safe='')}/again/{leg}"
    request = InputRequest(
        id=request_id,
        message=f"{call.server}/{call.target}: {words}",
        meta=RequestMeta(call=call.id, server=call.server, tool=call.target),
    )
    return (
        CallDoubted(call_id=call.id, leg=leg, request_id=request_id),
        InputRequested(request=request),
    )
