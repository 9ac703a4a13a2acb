"""What ends without an answer: requests that have expired, were withdrawn or whose asker is gone,
and the role and tool calls of an active client that has disconnected.
"""

from collections.abc import Iterator

import msgspec

from session_server.reducers.batches import Batch, batch_of, completion
from session_server.reducers.forms.defaults import is_proposal, proposed_answers
from session_server.reducers.state.chat import chat_of
from session_server.reducers.state.input_requests import open_request
from session_server.reducers.state.status import is_left
from session_server.schemas.ahp.actions import (
    ActiveClientChanged,
    InputCompleted,
    InputRequested,
    IsReadChanged,
    ToolCallComplete,
)
from session_server.schemas.ahp.questions import InputRequest, OnExpiry, RequestMeta, ResponseKind
from session_server.schemas.ahp.session import SessionState, Status
from session_server.schemas.ahp.tool_calls import ClientContributor, Running, ToolError, ToolResult
from session_server.schemas.ahp.turns import ToolCallPart
from session_server.schemas.principals import HOST, Provenance, Stamp
from session_server.schemas.record import ClientLeft, RecordAction, SessionRecord
from session_server.schemas.wire import Millis

GONE = "The client that ran this tool is gone."


def deadline_of(record: SessionRecord, request: InputRequest) -> Millis | None:
    """When the request expires, if it does.

    Once someone has begun to answer, defaults are never used; a hard deadline still holds.
    """
    meta = request.meta
    if meta is None or meta.on_expiry is OnExpiry.WAIT:
        return None
    if meta.on_expiry is OnExpiry.DEFAULTS and _is_begun(record, request):
        return None
    return meta.expires_at


def _is_begun(record: SessionRecord, request: InputRequest) -> bool:
    """Also by answers that were made before the request was asked again."""
    has_answers = not all(map(is_proposal, (request.answers or {}).values()))
    return has_answers or request.id in record.private.begun


def expired(record: SessionRecord, request_id: str, at: int) -> Batch:
    """Ends a request whose deadline has passed; empty if it is closed or has time left.

    With `defaults` it is accepted with its defaults, unless a person has begun to answer or a
    required question proposes nothing. Otherwise it is cancelled, never declined.
    """
    request = open_request(record.public, request_id)
    deadline = None if request is None else deadline_of(record, request)
    if request is None or deadline is None or at < deadline:
        return ()
    by_default = request.meta is not None and request.meta.on_expiry is OnExpiry.DEFAULTS
    answers = proposed_answers(request) if by_default else None
    response, via = (
        (ResponseKind.CANCEL, Provenance.TIMEOUT)
        if answers is None
        else (ResponseKind.ACCEPT, Provenance.DEFAULT)
    )
    action = InputCompleted(request_id=request.id, response=response, answers=answers)
    return batch_of(record, action, Stamp(at=at, by=HOST, via=via))


def withdrawn(state: SessionState, request_id: str, stamp: Stamp) -> Batch:
    """Ends a request because its asker withdrew it."""
    if open_request(state, request_id) is None:
        return ()
    action = InputCompleted(request_id=request_id, response=ResponseKind.CANCEL)
    return completion(state, action, msgspec.structs.replace(stamp, via=Provenance.WITHDRAWN))


def leased(record: SessionRecord) -> Iterator[tuple[str, InputRequest]]:
    """Requests whose askers promised to wait, each with what names the asker: a call or itself."""
    if not record.private.is_recording:
        for request in record.public.input_requests or ():
            meta = request.meta
            if meta is not None and meta.lease is not None:
                yield meta.call or request.id, request


def marked_as_left(record: SessionRecord, asker: str, since: Millis | None) -> Batch:
    """Marks the requests of this asker with the time since when it is gone; `None`: it is back.

    Nothing else about them changes: answers and drafts stay, and a session that was read stays so.
    """
    batch: list[RecordAction] = []
    for name, request in leased(record):
        if name == asker and is_left(request) != (since is not None):
            meta = msgspec.structs.replace(request.meta or RequestMeta(), asker_gone_since=since)
            # Without a map of answers, reducers keep those that there are.
            again = msgspec.structs.replace(request, meta=meta, answers=None)
            batch.append(InputRequested(request=again))
    if batch and record.public.summary.status & Status.IS_READ:
        batch.append(IsReadChanged(is_read=True))
    return tuple(batch)


def released(record: SessionRecord, client_id: str) -> Batch:
    """Fails the client's running tool calls and removes it from the active clients."""
    if client_id not in active_client_ids(record) or record.private.is_recording:
        return ()
    active = record.public.active_client
    is_shown = active is not None and active.client_id == client_id
    left = ActiveClientChanged(active_client=None) if is_shown else ClientLeft(client_id=client_id)
    return (*_lost_tool_calls(record, client_id), left)


def active_client_ids(record: SessionRecord) -> set[str]:
    """The ids of all active clients; 0.3.0 shows one of them."""
    return {client.client_id for client in chat_of(record).clients}


def _lost_tool_calls(record: SessionRecord, client_id: str) -> tuple[ToolCallComplete, ...]:
    turn = record.public.active_turn
    if turn is None:
        return ()
    result = ToolResult(success=False, past_tense_message=GONE, error=ToolError(message=GONE))
    return tuple(
        ToolCallComplete(turn_id=turn.id, tool_call_id=part.tool_call.tool_call_id, result=result)
        for part in turn.response_parts
        if isinstance(part, ToolCallPart)
        and isinstance(part.tool_call, Running)
        and part.tool_call.contributor == ClientContributor(client_id=client_id)
    )
