"""What happens to a question whose time is up, and to one that its asker takes back."""

import msgspec

from ..schemas.actions import InputCompleted
from ..schemas.principals import HOST, Provenance, Stamp
from ..schemas.questions import Answer, InputRequest, OnExpiry, ResponseKind
from ..schemas.record import SessionRecord
from ..schemas.session import SessionState
from ..schemas.wire import Millis
from .batches import Batch, batch_of, completion
from .proposals import is_proposal, proposed_answers
from .requests import open_request


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
