"""Asking people and calling tools over HTTP: AHP has no commands for these."""

import asyncio
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from ssl import SSLContext
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import quote, urlsplit, urlunsplit

import httpx2
import msgspec

from session_server.client.errors import AskRefused, CallFailed, CallRefused, ClientError, Refused
from session_server.reducers.forms.ask_forms import UnaskableError, ask_result, asked_question
from session_server.reducers.texts import session_name, session_uri
from session_server.schemas.ahp.questions import Question
from session_server.schemas.codec import Decoder, encode
from session_server.schemas.http import (
    CallState,
    CallView,
    EndedRequest,
    NewCall,
    NewRequest,
    NewSession,
    RequestState,
)
from session_server.schemas.limits import TITLE_CHARS, WAIT_SECONDS
from session_server.schemas.mcp import AskedQuestion, AskOutcome, AskResult
from session_server.schemas.wire import Uri

ANSWER_SECONDS = 15.0
PAUSE_SECONDS = 1.0
TOO_BUSY = (429, 503)
JSON = {"Content-Type": "application/json"}


HttpApi: TypeAlias = Callable[[], httpx2.AsyncClient]


def http_api(socket_url: str, headers: dict[str, str], ssl: SSLContext | None) -> HttpApi:
    """The HTTP API of the host whose AHP endpoint is at this address."""
    parts = urlsplit(socket_url)
    scheme = {"ws": "http", "wss": "https"}[parts.scheme]
    path = parts.path.removesuffix("/ahp")
    return partial(
        httpx2.AsyncClient,
        base_url=urlunsplit((scheme, parts.netloc, path, "", "")),
        headers=headers,
        verify=True if ssl is None else ssl,
        timeout=WAIT_SECONDS + ANSWER_SECONDS,
    )


class _Problem(msgspec.Struct):
    code: str = "unknown"
    detail: str = ""


async def answered(
    http: httpx2.AsyncClient, method: str, path: str, refused: type[Refused], **options: Any
) -> bytes:
    """The body of the answer. It is asked again while the host is away or too busy, so what is
    asked for must be safe to repeat. Raises `refused` if the host refuses.
    """
    while True:
        try:
            response = await http.request(method, path, **options)
        except httpx2.TransportError:
            await asyncio.sleep(PAUSE_SECONDS)
            continue
        if response.is_success:
            return response.content
        if response.status_code not in TOO_BUSY:
            try:
                problem = msgspec.json.decode(response.content, type=_Problem)
            except msgspec.MsgspecError:
                problem = _Problem()
            reason = problem.detail or f"The host answered {response.status_code}."
            raise refused(reason, problem.code)
        await asyncio.sleep(PAUSE_SECONDS)


async def _posted(
    http: httpx2.AsyncClient, path: str, body: Any, refused: type[Refused], key: str | None = None
) -> bytes:
    headers = JSON if key is None else {**JSON, "Idempotency-Key": key}
    return await answered(http, "POST", path, refused, content=encode(body), headers=headers)


decode_call: Decoder[CallView] = Decoder(CallView)


async def called(
    api: HttpApi, uri: Uri, wanted: NewCall, seconds: float | None = None
) -> dict[str, Any]:
    """The result of the call, once it has ended; `TimeoutError` if that takes too long."""
    async with asyncio.timeout(seconds), api() as http:
        path = f"/v1/sessions/{session_name(uri)}/calls"
        view = decode_call(await _posted(http, path, wanted, CallRefused, uuid.uuid4().hex))
        while view.is_open:
            path = f"/v1/calls/{quote(view.id, safe='')}"
            wait = {"wait": WAIT_SECONDS}
            view = decode_call(await answered(http, "GET", path, CallRefused, params=wait))
    if view.result is not None:
        return view.result
    if view.state is CallState.ABANDONED or view.error is None:
        reason = view.reason or "no reason was given."
        raise CallFailed(f"The call was abandoned: {reason}", "abandoned")
    raise CallFailed(view.error.message, view.error.kind, view.error.data)


WITHDRAWAL_SECONDS = 5.0
"""How long withdrawing a question may take when its asker stops waiting."""

AskableQuestion: TypeAlias = str | Mapping[str, Any] | AskedQuestion

_decode_state: Decoder[RequestState] = Decoder(RequestState)


class Ask(NamedTuple):
    """What to ask, and where. With a `key` it stays open when its asker stops waiting."""

    request: NewRequest
    session: Uri | None
    title: str
    key: str | None


def ahp_questions(questions: Iterable[AskableQuestion]) -> tuple[Question, ...]:
    """Questions as people write them: a text, or the fields of the tool `ask_questions`."""
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


async def asked(api: HttpApi, ask: Ask, seconds: float | None) -> AskResult:
    """How it ended. `TimeoutError` after this many seconds, and then the question is withdrawn."""
    async with api() as http:
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


async def _asked(http: httpx2.AsyncClient, ask: Ask) -> str:
    """The path of the request. Repeated after a break, it is still asked once."""
    uri = ask.session or session_uri(uuid.uuid4().hex)
    is_new = await _made(http, uri, ask.title)
    path = f"/v1/sessions/{session_name(uri)}/requests"
    key = quote(ask.key or uuid.uuid4().hex)
    try:
        body = await _posted(http, path, ask.request, AskRefused, key)
    except AskRefused:
        if is_new:
            with suppress(httpx2.HTTPError):
                await http.delete(f"/v1/sessions/{session_name(uri)}")
        raise
    return f"{path}/{quote(_decode_state(body).id, safe='')}"


async def _made(http: httpx2.AsyncClient, uri: Uri, title: str) -> bool:
    """Makes the session if there is none; whether this has made it."""
    try:
        await answered(http, "GET", f"/v1/sessions/{session_name(uri)}", AskRefused)
    except AskRefused as missing:
        if missing.code != "sessionNotFound":
            raise
    else:
        return False
    wanted = NewSession(resource=uri, title=title[:TITLE_CHARS])
    try:
        await _posted(http, "/v1/sessions", wanted, AskRefused)
    except AskRefused as refused:
        if refused.code != "sessionExists":
            raise
        return False  # made by someone else, or by this request before the connection broke
    return True


async def _ended(http: httpx2.AsyncClient, path: str) -> AskResult:
    while True:
        state = _decode_state(
            await answered(http, "GET", path, AskRefused, params={"wait": WAIT_SECONDS})
        )
        if isinstance(state, EndedRequest):
            return ask_result(state.outcome, state.session)


async def _withdrawn(http: httpx2.AsyncClient, asking: "asyncio.Task[str]") -> AskResult | None:
    """Withdraws the question. If it was just answered, the outcome; `None` if it is not known."""
    with suppress(TimeoutError, httpx2.HTTPError, ClientError):
        async with asyncio.timeout(WITHDRAWAL_SECONDS):
            path = await asking
            await http.delete(path)
            return await _ended(http, path)
    return None
