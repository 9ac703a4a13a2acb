"""Input requests over HTTP: ask, wait for the outcome, take back. Answers have a module beside."""

from contextlib import nullcontext
from enum import StrEnum
from typing import Annotated

import msgspec
from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from session_server.host.errors import not_permitted
from session_server.host.host import Host
from session_server.host.performing import write
from session_server.reducers.batches import Batch, batch_of
from session_server.reducers.deadlines import withdrawn
from session_server.reducers.input_rules import check_withdrawal, is_asker, left_request
from session_server.reducers.requests import open_request
from session_server.reducers.rules import judge
from session_server.reducers.session_names import session_name
from session_server.schemas.actions import InputRequested
from session_server.schemas.http import NewRequest, RequestList, RequestState
from session_server.schemas.principals import Principal, Provenance, Role, Stamp
from session_server.schemas.questions import (
    BooleanQuestion,
    InputRequest,
    TextQuestion,
)
from session_server.schemas.record import SessionRecord
from session_server.schemas.refusals import Refusal
from session_server.schemas.wire import Uri
from session_server.web.asking import asked
from session_server.web.bodies import JsonBody, json_response
from session_server.web.caller import Caller, TheHost, TheWaiting
from session_server.web.open_streams import TheLongPoll
from session_server.web.openapi import described, link
from session_server.web.paths import RequestId, SessionUri
from session_server.web.request_states import (
    ended_state,
    ended_states,
    open_states,
    request_state,
    visible_record,
)
from session_server.web.retries import REPLAYED, TheKey, new_name

router = APIRouter(prefix="/v1/sessions/{id}/requests", tags=["requests"])


class Listed(StrEnum):
    OPEN = "open"
    ENDED = "ended"


OF_THIS = {"id": "$request.path.id", "rid": "$response.body#/id"}
LINKS = {name: link(name, **OF_THIS) for name in ("read_request", "complete", "withdraw")}


EXAMPLE = NewRequest(
    message="Deploy to production?",
    questions=(
        BooleanQuestion(id="deploy", message="Deploy now?", required=True),
        TextQuestion(id="note", message="Anything to say?"),
    ),
    expires_in=3600,
)


@router.post(
    "", **described(201, RequestState, 404, 409, body=NewRequest, example=EXAMPLE, links=LINKS)
)
async def ask(
    uri: SessionUri,
    host: TheHost,
    who: Caller,
    key: TheKey,
    wanted: Annotated[NewRequest, Depends(JsonBody(NewRequest))],
) -> Response:
    """Ask people something. The questions show in every client of the session at once.

    The same question that you asked with a `lease` and left is taken up, and not asked twice.
    """
    request = asked(wanted, new_name(key, wanted), host.now())
    record = visible_record(host, who, uri)
    left = None if key is not None else left_request(who, record, request)
    replayed = left is not None or (key is not None and key.found(wanted, _known_ids(record)))
    request = left or request
    if not replayed:
        await _open(host, who, uri, request)
    with host.askers.waiting(uri, request.id):  # whoever asks again is back
        state = request_state(visible_record(host, who, uri), request.id)
    where = {"Location": f"/v1/sessions/{session_name(uri)}/requests/{request.id}"}
    return json_response(state, 201, where | (REPLAYED if replayed else {}))


async def _open(host: Host, who: Principal, uri: Uri, request: InputRequest) -> None:
    asker, action = as_asker(who), InputRequested(request=request)

    def plan(record: SessionRecord, stamp: Stamp) -> Batch | Refusal:
        if request.id in _known_ids(record):
            return ()  # the same key at the same time
        return judge(asker, record, action) or batch_of(record, action, stamp)

    await write(host, uri, plan, by=who.author)


def _known_ids(record: SessionRecord) -> set[str]:
    asked_now = {request.id for request in record.public.input_requests or ()}
    return asked_now | {outcome.request.id for outcome in record.private.outcomes}


def as_asker(who: Principal) -> Principal:
    """Whoever owns a session may ask in it, as its agent does."""
    return msgspec.structs.replace(who, role=Role.AGENT) if who.role is Role.OWNER else who


@router.get("", **described(200, RequestList, 404))
async def list_requests(
    uri: SessionUri,
    host: TheHost,
    waiting: TheWaiting,
    who: Caller,
    poll: TheLongPoll,
    state: Annotated[Listed, Query(description="Which ones.")] = Listed.OPEN,
) -> Response:
    """The requests that are open, or those that have ended; `wait` for at least one."""
    states = open_states if state is Listed.OPEN else ended_states

    def look(record: SessionRecord) -> tuple[RequestState, ...] | None:
        return tuple(states(record)) or None

    visible_record(host, who, uri)
    items = await poll.until(waiting.until(uri, look, poll.seconds))
    return json_response(RequestList(items=items or ()))


@router.get("/{rid}", **described(200, RequestState, 404))
async def read_request(
    uri: SessionUri,
    rid: RequestId,
    host: TheHost,
    waiting: TheWaiting,
    who: Caller,
    poll: TheLongPoll,
) -> Response:
    """The request as it is; with `wait`, as soon as it has ended, or when the time is over."""
    record = visible_record(host, who, uri)
    state = request_state(record, rid)
    request = open_request(record.public, rid)
    is_own = request is not None and is_asker(who, request) and poll.seconds > 0
    with host.askers.waiting(uri, rid) if is_own else nullcontext():
        ended = await poll.until(
            waiting.until(uri, lambda record: ended_state(record, rid), poll.seconds)
        )
    return json_response(ended or request_state(visible_record(host, who, uri), state.id))


@router.delete("/{rid}", **described(200, RequestState, 404, 409))
async def withdraw(uri: SessionUri, rid: RequestId, host: TheHost, who: Caller) -> Response:
    """Withdraw the question; who asked it and owners may. Doing it again changes nothing."""
    if who.role not in (Role.OWNER, Role.AGENT):
        raise not_permitted("Only who asked it and owners withdraw a question; you may decline it.")
    before = ended_state(visible_record(host, who, uri), rid)
    if before is None or before.outcome.via is not Provenance.WITHDRAWN:

        def plan(record: SessionRecord, stamp: Stamp) -> Batch | Refusal:
            return check_withdrawal(who, record, rid) or withdrawn(record.public, rid, stamp)

        await write(host, uri, plan, by=who.author)
    return json_response(request_state(visible_record(host, who, uri), rid))
