"""Input requests over HTTP: ask, list, wait for the outcome, withdraw, answer, complete."""

from contextlib import nullcontext
from enum import StrEnum
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from session_server.host.async_api import perform, write
from session_server.host.channels.channel import Channel
from session_server.host.host import Host
from session_server.http.bodies import JsonBody, QuestionId, RequestId, SessionUri, json_response
from session_server.http.dependencies import Caller, TheHost, TheLongPoll, TheWaiting
from session_server.http.idempotency import REPLAYED, TheIdempotencyKey, new_name
from session_server.http.openapi import described, link
from session_server.http.problems import ProblemError
from session_server.reducers.batches import Batch, judged_batch
from session_server.reducers.deadlines import withdrawn
from session_server.reducers.forms.formats import is_web_address
from session_server.reducers.forms.mcp_forms import questions_of
from session_server.reducers.forms.plain_values import value_of
from session_server.reducers.forms.review import plain_answers, review_of, reviewed
from session_server.reducers.rules.input_rules import (
    NOT_A_WEB_ADDRESS,
    check_withdrawal,
    is_asker,
    left_request,
    outcome_of,
    provenance_of,
    question_of,
)
from session_server.reducers.rules.roles import as_asker
from session_server.reducers.state.input_requests import open_request
from session_server.reducers.texts import session_name
from session_server.schemas.ahp.actions import InputAnswerChanged, InputCompleted, InputRequested
from session_server.schemas.ahp.questions import (
    Answer,
    BooleanQuestion,
    CompletionMeta,
    Draft,
    InputRequest,
    OnExpiry,
    Question,
    RequestMeta,
    ResponseKind,
    Submitted,
    TextQuestion,
    TextValue,
)
from session_server.schemas.errors import Refusal, RefusalCode, RefusedError, not_permitted
from session_server.schemas.http import (
    Completion,
    EndedRequest,
    NewRequest,
    OpenRequest,
    RequestList,
    RequestState,
)
from session_server.schemas.mcp import Unshowable
from session_server.schemas.principals import Principal, Provenance, Stamp
from session_server.schemas.record import Outcome, SessionRecord
from session_server.schemas.wire import Uri


def asked(wanted: NewRequest, request_id: str, now: int) -> InputRequest:
    if wanted.url is not None and not is_web_address(wanted.url):
        raise _bad_form(NOT_A_WEB_ADDRESS, "$.url")
    questions = _questions(wanted)
    if not (questions or wanted.url or wanted.message):
        raise _bad_form("Ask something: a message, questions, a requestedSchema or a url.")
    return InputRequest(
        id=request_id,
        message=wanted.message,
        url=wanted.url,
        questions=questions or None,
        meta=_meta(wanted, now),
    )


def _questions(wanted: NewRequest) -> tuple[Question, ...]:
    if wanted.requested_schema is None:
        return wanted.questions or ()
    if wanted.questions is not None:
        raise _bad_form("Send `questions` or a `requestedSchema`, not both.", "$.questions")
    questions = questions_of(wanted.requested_schema)
    if isinstance(questions, Unshowable):
        message = f"This form cannot be asked: {questions.reason}."
        raise _bad_form(message, "$.requestedSchema")
    return questions


def _meta(wanted: NewRequest, now: int) -> RequestMeta:
    """The deadline and the lease."""
    at = wanted.expires_at
    if wanted.expires_in is not None:
        if at is not None:
            raise _bad_form("Send `expiresAt` or `expiresIn`, not both.", "$.expiresIn")
        at = now + round(wanted.expires_in * 1000)
    if at is None:
        if wanted.on_expiry is not None:
            message = "`onExpiry` needs a deadline: `expiresAt` or `expiresIn`."
            raise _bad_form(message, "$.onExpiry")
        return RequestMeta(lease=wanted.lease)
    on_expiry = wanted.on_expiry or OnExpiry.CANCEL
    return RequestMeta(expires_at=at, on_expiry=on_expiry, lease=wanted.lease)


def _bad_form(message: str, path: str = "$") -> ProblemError:
    return ProblemError(422, RefusalCode.BAD_FORM, message, path=path)


async def visible_channel(host: Host, who: Principal, uri: Uri) -> Channel[SessionRecord]:
    """The session's channel, in memory, for a principal that may see the session."""
    known = host.channel(who, uri)
    channel = None if known is None or known is host.root else await host.loaded.loaded(uri)
    if channel is None:
        raise host.missing(who, uri)
    return channel


async def visible_record(host: Host, who: Principal, uri: Uri) -> SessionRecord:
    record = (await visible_channel(host, who, uri)).committed
    assert record is not None  # a channel that is in memory has one
    return record


def request_state(record: SessionRecord, request_id: str) -> RequestState:
    request = open_request(record.public, request_id)
    state = ended_state(record, request_id) if request is None else _open_state(record, request)
    if state is None:
        message = "There is no such request, or it ended too long ago to be remembered."
        code = RefusalCode.NO_REQUEST
        raise RefusedError(Refusal(code=code, message=message, request_id=request_id))
    return state


async def _current(host: Host, who: Principal, uri: Uri, request_id: str) -> Response:
    return json_response(request_state(await visible_record(host, who, uri), request_id))


def ended_state(record: SessionRecord, request_id: str) -> EndedRequest | None:
    outcome = outcome_of(record, request_id)
    return None if outcome is None else _ended(record, outcome)


def _open_state(record: SessionRecord, request: InputRequest) -> OpenRequest:
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
    key: TheIdempotencyKey,
    wanted: Annotated[NewRequest, Depends(JsonBody(NewRequest))],
) -> Response:
    """Ask people something. The questions show in every client of the session at once.

    A question that you asked with a `lease` and left is resumed, and not asked twice.
    """
    request = asked(wanted, new_name(key, wanted), host.now())
    record = await visible_record(host, who, uri)
    left = None if key is not None else left_request(who, record, request)
    replayed = left is not None or (key is not None and key.found(wanted, _known_ids(record)))
    request = left or request
    asker, action = as_asker(who), InputRequested(request=request)

    def plan(record: SessionRecord, stamp: Stamp) -> Batch | Refusal:
        if request.id in _known_ids(record):
            return ()  # the same key at the same time
        return judged_batch(asker, record, action, stamp)

    if not replayed:
        await write(host, uri, plan, by=who.author)
    with host.askers.waiting(uri, request.id):  # an asker that repeats its question is back
        state = request_state(await visible_record(host, who, uri), request.id)
    where = {"Location": f"/v1/sessions/{session_name(uri)}/requests/{request.id}"}
    return json_response(state, 201, where | (REPLAYED if replayed else {}))


def _known_ids(record: SessionRecord) -> set[str]:
    asked_now = {request.id for request in record.public.input_requests or ()}
    return asked_now | {outcome.request.id for outcome in record.private.outcomes}


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

    def look(record: SessionRecord) -> tuple[RequestState, ...] | None:
        if state is Listed.OPEN:
            return tuple(_open_state(record, r) for r in record.public.input_requests or ()) or None
        latest_first = reversed(record.private.outcomes)
        return tuple(_ended(record, outcome) for outcome in latest_first) or None

    await visible_record(host, who, uri)
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
    """The request as it is; with `wait`, as soon as it has ended, or when the time is up."""
    record = await visible_record(host, who, uri)
    state = request_state(record, rid)
    request = open_request(record.public, rid)
    is_own = request is not None and is_asker(who, request) and poll.seconds > 0
    with host.askers.waiting(uri, rid) if is_own else nullcontext():
        ended = await poll.until(
            waiting.until(uri, lambda record: ended_state(record, rid), poll.seconds)
        )
    return json_response(ended or request_state(await visible_record(host, who, uri), state.id))


@router.delete("/{rid}", **described(200, RequestState, 404, 409))
async def withdraw(uri: SessionUri, rid: RequestId, host: TheHost, who: Caller) -> Response:
    """Withdraw the question, as its asker or an owner. Doing it again changes nothing."""
    if not who.may_create:
        raise not_permitted("Only its asker and owners can withdraw a question. You can decline.")
    before = ended_state(await visible_record(host, who, uri), rid)
    if before is None or before.outcome.via is not Provenance.WITHDRAWN:

        def plan(record: SessionRecord, stamp: Stamp) -> Batch | Refusal:
            return check_withdrawal(who, record, rid) or withdrawn(record.public, rid, stamp)

        await write(host, uri, plan, by=who.author)
    return await _current(host, who, uri, rid)


answer_router = APIRouter(prefix="/v1/sessions/{id}/requests/{rid}", tags=["answers"])

DRAFT = Draft(value=TextValue(value="Summer in"))
COMPLETION = Completion(content={"name": "Summer", "city": "kyoto"})


@answer_router.put(
    "/answers/{qid}", **described(200, RequestState, 404, 409, body=Answer, example=DRAFT)
)
async def put_answer(
    uri: SessionUri,
    rid: RequestId,
    qid: QuestionId,
    host: TheHost,
    who: Caller,
    answer: Annotated[Answer, Depends(JsonBody[Answer](Answer))],
) -> Response:
    """Draft, submit or skip the answer to one question; everyone sees it at once."""
    return await _changed(host, who, uri, rid, qid, answer)


@answer_router.delete("/answers/{qid}", **described(200, RequestState, 404, 409))
async def clear_answer(
    uri: SessionUri, rid: RequestId, qid: QuestionId, host: TheHost, who: Caller
) -> Response:
    """Clear an answer, or discard a draft: the answer that it covers then counts again."""
    return await _changed(host, who, uri, rid, qid, None)


async def _changed(
    host: Host, who: Principal, uri: Uri, rid: str, qid: str, answer: Answer | None
) -> Response:
    action = InputAnswerChanged(request_id=rid, question_id=qid, answer=answer)
    await perform(host, who, uri, action)
    return await _current(host, who, uri, rid)


@answer_router.post(
    "/complete",
    **described(200, RequestState, 404, 409, body=Completion, example=COMPLETION),
)
async def complete(
    uri: SessionUri,
    rid: RequestId,
    host: TheHost,
    who: Caller,
    wanted: Annotated[Completion, Depends(JsonBody(Completion))],
) -> Response:
    """Accept with answers, decline or cancel. Only the first completion counts.

    With `reviewed` as the request showed it, accepting is refused if anything else would be sent.
    """
    await visible_record(host, who, uri)
    bare = InputCompleted(request_id=rid, response=wanted.response)

    def plan(record: SessionRecord, stamp: Stamp) -> Batch | Refusal:
        request = open_request(record.public, rid)
        action = InputCompleted(
            request_id=rid,
            response=wanted.response,
            answers=_answers(request, wanted),
            meta=CompletionMeta(reviewed=wanted.reviewed),
        )
        return judged_batch(who, record, action, stamp)

    await write(host, uri, plan, by=who.author, via=provenance_of(who, bare))
    return await _current(host, who, uri, rid)


def _answers(request: InputRequest | None, wanted: Completion) -> dict[str, Answer] | None:
    """Plain values become answers of their question's kind; the rules judge whether they fit."""
    if wanted.content is None or request is None:
        return wanted.answers
    answers = dict(wanted.answers or {})
    for question_id, plain in wanted.content.items():
        question = question_of(request, question_id)
        value = None if question is None else value_of(question, plain)
        answers[question_id] = Submitted(value=value)
    return answers
