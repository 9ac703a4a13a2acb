"""What a call does next: opening a round, finishing, failing. `recovery` is for calls cut off.

Each function turns an event of the outside world into one batch for the session's log.
"""

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from session_server.reducers.batches import Batch, note, turn_end, withdrawal
from session_server.reducers.calls import presentation as invocations
from session_server.reducers.calls.input_required import retry_params
from session_server.reducers.calls.lifecycle import leg_out
from session_server.reducers.calls.redaction import masked, masked_names, redacted_request
from session_server.reducers.forms.kept_answers import still_fitting
from session_server.reducers.forms.mcp_forms import EMPTY_FORM, request_of
from session_server.reducers.rules.input_rules import CALL_PREFIX, check_form
from session_server.schemas.ahp.actions import InputRequested
from session_server.schemas.ahp.questions import InputRequest, OnExpiry, RequestMeta
from session_server.schemas.limits import OPEN_REQUESTS_PER_SESSION
from session_server.schemas.mcp import (
    Elicitation,
    ElicitRequest,
    EmbeddedRequest,
    EmbeddedResponse,
    InputRequired,
    RootsRequest,
    RootsResult,
    Unshowable,
)
from session_server.schemas.principals import Stamp
from session_server.schemas.record import (
    Asked,
    Call,
    CallAbandoned,
    CallError,
    CallFailed,
    CallFinished,
    CallInputRequired,
    FailureKind,
    Sent,
    SessionRecord,
    ToSend,
)
from session_server.schemas.wire import Json

LONGEST_KEY = 128

CLIENT_CAPABILITIES = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
"""What a client declares that answers such a request."""


def next_params(call: Call) -> dict[str, Any]:
    """The parameters of the leg that is to be sent."""
    return retry_params(call.params, input_responses(call), call.request_state)


def input_responses(call: Call) -> dict[str, EmbeddedResponse]:
    """The responses of the latest round, by the server's keys."""
    responses: dict[str, EmbeddedResponse] = {}
    for asked in call.asked:
        if asked.roots is not None:
            responses[asked.key] = RootsResult(roots=asked.roots)
        elif asked.given is not None:
            responses[asked.key] = asked.given
        elif asked.response is not None:
            responses[asked.key] = asked.response
    return responses


def outstanding(record: SessionRecord, call_id: str, leg: int) -> Call | None:
    """The call, if a reply to this leg is awaited; `None` for a late reply."""
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
    raw: Mapping[str, Any] | None = None,
) -> Batch:
    """All requests of a round open at once; what was answered before is not asked again.

    `raw` are the requests as the server made them, for the MCP client if that is asked.
    """
    call = outstanding(record, call_id, leg)
    if call is None or not isinstance(call.phase, Sent):
        return ()
    if call.rounds_of_run >= call.max_rounds:
        reason = f"the server asked more than {call.max_rounds} times"
        return failure(record, call_id, leg, FailureKind.ROUND_LIMIT, reason, stamp)
    asked: list[Asked] = []
    opened: list[InputRequested] = []
    room = OPEN_REQUESTS_PER_SESSION - len(record.public.input_requests or ())
    requests = required.input_requests or {}
    for shown_key, (key, embedded) in zip(
        masked_names(call, list(requests)), requests.items(), strict=True
    ):
        raw_request = (raw or {}).get(key) or msgspec.to_builtins(embedded)
        question = _question(call, key, shown_key, embedded, raw_request, stamp)
        if isinstance(question, _Unaskable):
            return failure(record, call_id, leg, question.kind, question.reason, stamp)
        asked.append(question.entry)
        if question.request is not None:
            opened.append(InputRequested(request=question.request))
    if len(opened) > room:
        reason = f"more than {OPEN_REQUESTS_PER_SESSION} questions would be open at once"
        return failure(record, call_id, leg, FailureKind.UNSHOWABLE_FORM, reason, stamp)
    round_opened = CallInputRequired(
        call_id=call_id,
        leg=leg,
        asked=tuple(asked),
        request_state=required.request_state,
        held=held,
    )
    return (
        round_opened,
        *opened,
        *_carried_note(record, call, asked),
        *_elsewhere(record, call, asked, opened),
    )


def progress(record: SessionRecord, call_id: str, leg: int, text: str) -> Batch:
    """Shows a progress message of the server."""
    call = outstanding(record, call_id, leg)
    return () if call is None else invocations.progress(record, call, text)


def visited(record: SessionRecord, call_id: str, elicitation_id: str) -> Batch:
    """A 2025-era server reports that the visit to its URL has ended."""
    call = record.private.calls.get(call_id)
    asked = () if call is None else call.asked
    if call is None or not any(a.elicitation_id == elicitation_id for a in asked):
        return ()
    return note(record.public, f"{call.server} reports that what you were asked to open is done.")


def finish(
    record: SessionRecord, call_id: str, leg: int, result: dict[str, Any], stamp: Stamp
) -> Batch:
    """The server sent its result; requests that are still open are withdrawn."""
    call = outstanding(record, call_id, leg)
    if call is None:
        return ()
    done = CallFinished(call_id=call_id, leg=leg, result=result)
    return (
        done,
        *withdrawal(record, call_id, stamp),
        *invocations.finished(record, call, result),
        *turn_end(record, call_id),
    )


def failure(
    record: SessionRecord,
    call_id: str,
    leg: int,
    kind: FailureKind,
    message: str,
    stamp: Stamp,
    data: Json = None,
) -> Batch:
    """Ends the call with an error that the session shows."""
    call = unfinished(record, call_id, leg)
    if call is None:
        return ()
    error = CallError(kind=kind, message=message, data=data)
    reason = masked(call, message)
    return (
        CallFailed(call_id=call_id, leg=leg, error=error),
        *withdrawal(record, call_id, stamp),
        *note(record.public, f"{call.server}/{call.target} failed: {reason}."),
        *invocations.failed(record, call, error),
    )


def abandon(record: SessionRecord, call_id: str, reason: str, stamp: Stamp) -> Batch:
    """The result is no longer wanted."""
    call = record.private.calls.get(call_id)
    if call is None or not call.is_open:
        return ()
    return (
        CallAbandoned(call_id=call_id, reason=reason),
        *withdrawal(record, call_id, stamp),
        *invocations.abandoned(record, call, reason),
    )


def request_id_of(call_id: str, round_number: int, key: str) -> str:
    """Derived, so that asking twice changes nothing; others may not use such an id."""
    short = key if len(key) <= LONGEST_KEY else hashlib.sha256(key.encode()).hexdigest()
    return f"{CALL_PREFIX}{quote(call_id, safe='')}/{round_number}/{short}"


def elicitation_fingerprint(elicitation: Elicitation) -> str:
    """The same question has the same fingerprint, however its schema is ordered."""
    asked = (elicitation.message, elicitation.requested_schema, elicitation.url)
    return hashlib.sha256(msgspec.json.encode(asked, order="deterministic")).hexdigest()


class _Question(NamedTuple):
    """An embedded request as the call keeps it, and as people see it unless it is answered."""

    entry: Asked
    request: InputRequest | None


class _Unaskable(NamedTuple):
    kind: FailureKind
    reason: str


def _question(
    call: Call,
    key: str,
    shown_key: str,
    request: EmbeddedRequest,
    raw: dict[str, Any],
    stamp: Stamp,
) -> _Question | _Unaskable:
    """`raw` is the request as the server made it."""
    request_id = request_id_of(call.id, call.round + 1, shown_key)
    if isinstance(request, RootsRequest) and call.roots is not None:
        entry = Asked(key=key, request_id=request_id, fingerprint="roots", roots=call.roots)
        return _Question(entry, None)
    kind = str(request.__struct_config__.tag)
    reason = f"the server asked for {kind}, which was not offered to it"
    shown: _Question | _Unaskable = _Unaskable(FailureKind.UNSUPPORTED_REQUEST, reason)
    if isinstance(request, ElicitRequest) and call.answers != "client":
        meta = request_meta(call, stamp, round=call.round + 1, key=shown_key)
        shown = _elicited(call, key, request_id, request.params, meta)
    if not _is_for_client(call, kind):
        return shown
    if isinstance(shown, _Question):
        return shown._replace(entry=msgspec.structs.replace(shown.entry, question=raw))
    entry = Asked(
        key=key,
        request_id=request_id,
        fingerprint=raw_fingerprint(masked(call, raw)),
        question=raw,
    )
    return _Question(_with_memory(call, entry), None)


def _is_for_client(call: Call, kind: str) -> bool:
    """Sampling and roots are for the client; elicitation too, if the call says so."""
    if call.client is None:
        return False
    if kind == ElicitRequest.__struct_config__.tag and call.answers != "client":
        return call.answers == "both"
    return CLIENT_CAPABILITIES[kind] in (call.client.capabilities or {})


def raw_fingerprint(raw: Mapping[str, Any]) -> str:
    """Of a request as the server made it, without the id of an elicitation: it is always new."""
    params = raw.get("params") or {}
    same = {k: v for k, v in params.items() if k not in ("elicitationId", "_meta")}
    text = msgspec.json.encode((raw.get("method"), same), order="deterministic")
    return hashlib.sha256(text).hexdigest()


def _elicited(
    call: Call, key: str, request_id: str, elicitation: Elicitation, meta: RequestMeta
) -> _Question | _Unaskable:
    is_url = elicitation.mode == "url"
    shown = msgspec.structs.replace(elicitation, message=masked(call, elicitation.message))
    if is_url and masked(call, elicitation.url) != elicitation.url:
        private = "the address that the server asks people to open holds a private argument"
        return _Unaskable(FailureKind.UNSHOWABLE_FORM, private)
    hidden = masked(call, shown.requested_schema)
    entry = Asked(
        key=key,
        request_id=request_id,
        # Without secrets: recordings hold it, and a short secret could be guessed from it.
        fingerprint=elicitation_fingerprint(
            msgspec.structs.replace(shown, requested_schema=hidden)
        ),
        schema=None if is_url else elicitation.requested_schema or EMPTY_FORM,
        elicitation_id=elicitation.elicitation_id if is_url else None,
    )
    request = request_of(request_id, shown, meta)
    if isinstance(request, Unshowable):
        reason = f"the server asked for what cannot be shown: {request.reason}"
        return _Unaskable(FailureKind.UNSHOWABLE_FORM, reason)
    refusal = check_form(request)
    if refusal is not None:
        return _Unaskable(FailureKind.UNSHOWABLE_FORM, refusal.message.rstrip("."))
    known = entry if is_url else _with_memory(call, entry)
    if known.is_answered:
        return _Question(known, None)
    return _Question(entry, _with_begun(call, entry, redacted_request(call, request)))


def request_meta(call: Call, stamp: Stamp, **place: Any) -> RequestMeta:
    """Of a request of this call, which is open for as long as the call says."""
    meta = RequestMeta(
        call=call.id, server=call.server, tool=call.target, lease=call.lease, **place
    )
    if call.answer_within is None:
        return meta
    expires_at = stamp.at + call.answer_within
    return msgspec.structs.replace(meta, expires_at=expires_at, on_expiry=OnExpiry.CANCEL)


def _with_memory(call: Call, entry: Asked) -> Asked:
    """With the answer of an earlier run; a repeated question in the same run is asked again."""
    for memory in call.remembered:
        same = (memory.key, memory.fingerprint) == (entry.key, entry.fingerprint)
        if same and memory.run < call.restarts:
            return msgspec.structs.replace(entry, response=memory.response, given=memory.given)
    return entry


def _with_begun(call: Call, entry: Asked, request: InputRequest) -> InputRequest:
    for begun in call.begun:
        if (begun.key, begun.fingerprint) == (entry.key, entry.fingerprint):
            kept = still_fitting(request, begun.answers)
            return msgspec.structs.replace(request, answers=kept or None)
    return request


def _carried_note(record: SessionRecord, call: Call, asked: list[Asked]) -> Batch:
    carried = sum(entry.response is not None or entry.given is not None for entry in asked)
    if not carried:
        return ()
    answers = "1 earlier answer was" if carried == 1 else f"{carried} earlier answers were"
    text = f"{answers} sent to {call.server}/{call.target} again."
    return note(record.public, text)


def _elsewhere(
    record: SessionRecord, call: Call, asked: list[Asked], opened: list[InputRequested]
) -> Batch:
    """A note that the client is asked something that the session does not show."""
    is_asked = any(entry.waits_for_client for entry in asked)
    if call.client is None or opened or not is_asked:
        return ()
    return invocations.progress(record, call, f"Waiting for an answer in {call.client.name}")


def unfinished(record: SessionRecord, call_id: str, leg: int) -> Call | None:
    """The call, if this leg is out or about to go out."""
    call = record.private.calls.get(call_id)
    if call is not None and isinstance(call.phase, ToSend) and call.phase.leg == leg:
        return call
    return outstanding(record, call_id, leg)
