"""Input requests as HTTP shows them: open ones from the public state, ended ones by outcome."""

from collections.abc import Iterator

from session_server.host.channel import Channel
from session_server.host.host import Host
from session_server.host.performing import RefusedError
from session_server.reducers.input_rules import outcome_of
from session_server.reducers.requests import open_request
from session_server.reducers.review import plain_answers, review_of, reviewed
from session_server.schemas.calls import Outcome
from session_server.schemas.http import EndedRequest, OpenRequest, RequestState
from session_server.schemas.principals import Principal
from session_server.schemas.questions import InputRequest, ResponseKind
from session_server.schemas.record import SessionRecord
from session_server.schemas.refusals import Refusal, RefusalCode
from session_server.schemas.wire import Uri


def visible_channel(host: Host, who: Principal, uri: Uri) -> Channel[SessionRecord]:
    """The session's channel, for somebody who may see the session."""
    channel = host.channel(who, uri)
    if channel is None or channel is host.root:
        raise host.missing(who, uri)
    return channel


def visible_record(host: Host, who: Principal, uri: Uri) -> SessionRecord:
    record = visible_channel(host, who, uri).committed
    assert record is not None  # a channel that can be seen has one
    return record


def request_state(record: SessionRecord, request_id: str) -> RequestState:
    request = open_request(record.public, request_id)
    if request is not None:
        return _open(record, request)
    return ended_state(record, request_id) or _unknown(request_id)


def ended_state(record: SessionRecord, request_id: str) -> EndedRequest | None:
    outcome = outcome_of(record, request_id)
    return None if outcome is None else _ended(record, outcome)


def open_states(record: SessionRecord) -> Iterator[RequestState]:
    for request in record.public.input_requests or ():
        yield _open(record, request)


def ended_states(record: SessionRecord) -> Iterator[RequestState]:
    """The latest first."""
    for outcome in reversed(record.private.outcomes):
        yield _ended(record, outcome)


def _open(record: SessionRecord, request: InputRequest) -> OpenRequest:
    return OpenRequest(
        id=request.id,
        session=record.public.summary.resource,
        request=request,
        review=review_of(request),
        reviewed=reviewed(request),
    )


def _ended(record: SessionRecord, outcome: Outcome) -> EndedRequest:
    is_accepted = outcome.response is ResponseKind.ACCEPT
    return EndedRequest(
        id=outcome.request.id,
        session=record.public.summary.resource,
        outcome=outcome,
        content=plain_answers(outcome) if is_accepted else None,
    )


def _unknown(request_id: str) -> RequestState:
    words = "There is no such request, or it ended too long ago to be remembered."
    raise RefusedError(Refusal(code=RefusalCode.NO_REQUEST, message=words, request_id=request_id))
