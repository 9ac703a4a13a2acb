"""Asking people something and waiting for the answers, over HTTP, across restarts of the host."""

import asyncio
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import quote

import httpx
import msgspec

from session_server.client.door import JSON, HttpDoor, answered
from session_server.client.errors import AskRefused, ClientError
from session_server.reducers.asks import UnaskableError, ask_result, asked_question
from session_server.reducers.session_names import session_name, session_uri
from session_server.schemas.asks import AskedQuestion, AskOutcome, AskResult
from session_server.schemas.codec import Decoder, encode
from session_server.schemas.http import EndedRequest, NewRequest, NewSession, RequestState
from session_server.schemas.limits import TITLE_CHARS, WAIT_SECONDS
from session_server.schemas.questions import Question
from session_server.schemas.wire import Uri

WITHDRAWAL_SECONDS = 5.0
"""How long an asker that stops waiting takes to withdraw its question."""

AskableQuestion: TypeAlias = str | Mapping[str, Any] | AskedQuestion

_decode_state: Decoder[RequestState] = Decoder(RequestState)


class Ask(NamedTuple):
    """What to ask, and where. With a `key` it stays open when nobody waits any more."""

    request: NewRequest
    session: Uri | None
    title: str
    key: str | None


def ahp_questions(questions: Iterable[AskableQuestion]) -> tuple[Question, ...]:
    """Questions as people write them: a text, or the fields that the tool `ask_questions` takes."""
    try:
        return tuple(asked_question(n, _written(q)) for n, q in enumerate(questions, 1))
    except (msgspec.ValidationError, UnaskableError) as error:
        raise AskRefused(str(error), "badForm") from None


def _written(question: AskableQuestion) -> AskedQuestion:
    if isinstance(question, str):
        return AskedQuestion(question=question)
    if isinstance(question, AskedQuestion):
        return question
    return msgspec.convert(dict(question), AskedQuestion)


async def asked(door: HttpDoor, ask: Ask, seconds: float | None) -> AskResult:
    """How it ended. `TimeoutError` after this many seconds, and then the question is withdrawn."""
    async with door.http() as http:
        asking = asyncio.create_task(_asked(http, ask))
        try:
            async with asyncio.timeout(seconds):
                path = await asyncio.shield(asking)
                return await _ended(http, path)
        except TimeoutError:
            ended = None if ask.key else await _withdrawn(http, asking)
            if ended is None or ended.outcome is AskOutcome.WITHDRAWN:
                raise
            return ended  # answered just before it was withdrawn
        except asyncio.CancelledError:
            if ask.key is None:
                await _withdrawn(http, asking)
            raise
        finally:
            asking.cancel()
            await asyncio.wait((asking,))


async def _asked(http: httpx.AsyncClient, ask: Ask) -> str:
    """The path of the request. Repeated after a break, it is still asked once."""
    uri = ask.session or session_uri(uuid.uuid4().hex)
    is_new = await _made(http, uri, ask.title)
    path = f"/v1/sessions/{session_name(uri)}/requests"
    headers = {**JSON, "Idempotency-Key": quote(ask.key or uuid.uuid4().hex)}
    content = encode(ask.request)
    try:
        body = await answered(http, "POST", path, AskRefused, content=content, headers=headers)
    except AskRefused:
        if is_new:
            with suppress(httpx.HTTPError):
                await http.delete(f"/v1/sessions/{session_name(uri)}")
        raise
    return f"{path}/{quote(_decode_state(body).id, safe='')}"


async def _made(http: httpx.AsyncClient, uri: Uri, title: str) -> bool:
    """Makes the session if there is none; whether this has made it."""
    content = encode(NewSession(resource=uri, title=title[:TITLE_CHARS]))
    try:
        await answered(http, "GET", f"/v1/sessions/{session_name(uri)}", AskRefused)
    except AskRefused as missing:
        if missing.code != "sessionNotFound":
            raise
    else:
        return False
    try:
        await answered(http, "POST", "/v1/sessions", AskRefused, content=content, headers=JSON)
    except AskRefused as refused:
        if refused.code != "sessionExists":
            raise
        return False  # made by somebody else, or by this request before the connection broke
    return True


async def _ended(http: httpx.AsyncClient, path: str) -> AskResult:
    while True:
        state = _decode_state(
            await answered(http, "GET", path, AskRefused, params={"wait": WAIT_SECONDS})
        )
        if isinstance(state, EndedRequest):
            return ask_result(state.outcome, state.session)


async def _withdrawn(http: httpx.AsyncClient, asking: "asyncio.Task[str]") -> AskResult | None:
    """Nobody would read an answer. If one has just come, it counts; `None` if nothing is known."""
    with suppress(TimeoutError, httpx.HTTPError, ClientError):
        async with asyncio.timeout(WITHDRAWAL_SECONDS):
            path = await asking
            await http.delete(path)
            return await _ended(http, path)
    return None
