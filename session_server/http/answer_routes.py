"""Answering over HTTP: draft, submit, skip or clear one answer, and complete the request."""

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from session_server.host.awaiting import perform, write
from session_server.host.host import Host
from session_server.http.bodies import JsonBody, QuestionId, RequestId, SessionUri, json_response
from session_server.http.dependencies import Caller, TheHost
from session_server.http.openapi import described
from session_server.http.request_routes import request_state, visible_record
from session_server.reducers.batches import Batch, judged_batch
from session_server.reducers.forms.plain_values import value_of
from session_server.reducers.rules.input_rules import provenance_of, question_of
from session_server.reducers.state.input_requests import open_request
from session_server.schemas.ahp.actions import InputAnswerChanged, InputCompleted
from session_server.schemas.ahp.questions import (
    Answer,
    CompletionMeta,
    Draft,
    InputRequest,
    Submitted,
    TextValue,
)
from session_server.schemas.errors import Refusal
from session_server.schemas.http import Completion, RequestState
from session_server.schemas.principals import Principal, Stamp
from session_server.schemas.record import SessionRecord
from session_server.schemas.wire import Uri

router = APIRouter(prefix="/v1/sessions/{id}/requests/{rid}", tags=["answers"])


DRAFT = Draft(value=TextValue(value="Summer in"))
COMPLETION = Completion(content={"name": "Summer", "city": "kyoto"})


@router.put("/answers/{qid}", **described(200, RequestState, 404, 409, body=Answer, example=DRAFT))
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


@router.delete("/answers/{qid}", **described(200, RequestState, 404, 409))
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
    return json_response(request_state(await visible_record(host, who, uri), rid))


@router.post(
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
    return json_response(request_state(await visible_record(host, who, uri), rid))


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
