"""Questions whose time is up, that their asker withdraws, or that their asker has left."""

from collections.abc import Iterator

import msgspec

from session_server.reducers.batches import Batch, batch_of, completion
from session_server.reducers.forms.defaults import is_proposal, proposed_answers
from session_server.reducers.state.input_requests import open_request
from session_server.schemas.ahp.actions import InputCompleted, InputRequested, IsReadChanged
from session_server.schemas.ahp.questions import Answer, InputRequest, OnExpiry, ResponseKind
from session_server.schemas.ahp.session import SessionState, Status
from session_server.schemas.principals import HOST, Provenance, Stamp
from session_server.schemas.record import RecordAction, SessionRecord
from session_server.schemas.wire import Millis


def deadline_of(record: SessionRecord, request: InputRequest) -> Millis | None:
    """When it ends by itself, if it does.

    Someone who began to answer stops the use of defaults for good, but no hard deadline.
    """
    meta = request.meta
    if meta is None or meta.on_expiry is OnExpiry.WAIT:
        return None
    if meta.on_expiry is OnExpiry.DEFAULTS and _is_begun(record, request):
        return None
    return meta.expires_at


def _is_begun(record: SessionRecord, request: InputRequest) -> bool:
    """Answers may have come with the request: those given before it was asked again."""
    has_answers = not all(map(is_proposal, (request.answers or {}).values()))
    return has_answers or request.id in record.private.begun


def expired(record: SessionRecord, request_id: str, at: int) -> Batch:
    """Ends a request whose deadline has passed; nothing if it is closed, early, or waits on.

    With `defaults` it is accepted as it was proposed, unless somebody has begun to answer or a
    required question proposes nothing. Otherwise it is cancelled: an absence is not a no.
    """
    request = open_request(record.public, request_id)
    deadline = None if request is None else deadline_of(record, request)
    if request is None or deadline is None or at < deadline:
        return ()
    if request.meta is not None and request.meta.on_expiry is OnExpiry.DEFAULTS:
        answers = proposed_answers(request)
        if answers is not None:
            return _completed(record, request, ResponseKind.ACCEPT, Provenance.DEFAULT, at, answers)
    return _completed(record, request, ResponseKind.CANCEL, Provenance.TIMEOUT, at)


def withdrawn(state: SessionState, request_id: str, stamp: Stamp) -> Batch:
    """Ends a request because whoever asked no longer wants to know."""
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
    """Says on the requests of this asker since when it is gone; without a time, that it is back.

    Nothing else about them changes: answers and drafts stay, and a session that was read stays so.
    """
    batch: list[RecordAction] = []
    for name, request in leased(record):
        meta = request.meta
        if (
            name == asker
            and meta is not None
            and (meta.asker_gone_since is None) != (since is None)
        ):
            meta = msgspec.structs.replace(meta, asker_gone_since=since)
            # Without a map of answers, reducers keep those that there are.
            again = msgspec.structs.replace(request, meta=meta, answers=None)
            batch.append(InputRequested(request=again))
    if batch and record.public.summary.status & Status.IS_READ:
        batch.append(IsReadChanged(is_read=True))
    return tuple(batch)


def _completed(
    record: SessionRecord,
    request: InputRequest,
    response: ResponseKind,
    via: Provenance,
    at: int,
    answers: dict[str, Answer] | None = None,
) -> Batch:
    action = InputCompleted(request_id=request.id, response=response, answers=answers)
    return batch_of(record, action, Stamp(at=at, by=HOST, via=via))
