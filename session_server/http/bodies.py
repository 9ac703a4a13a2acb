"""Parts of requests and answers: JSON bodies, and ids in paths."""

import re
from collections.abc import AsyncIterator
from typing import Annotated, Any, Generic, TypeVar
from urllib.parse import unquote

import msgspec
from fastapi import Depends, Path
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from session_server.http.problems import ProblemError
from session_server.reducers.texts import session_uri
from session_server.schemas.codec import Decoder, encode
from session_server.schemas.limits import FRAME_BYTES, JSON_DEPTH
from session_server.schemas.wire import Uri

_KEPT = re.compile(rb"(%2[Ff5])")


class SentPaths:
    """Middleware: a percent-encoded slash does not split a path."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw = scope.get("raw_path")
        if scope["type"] == "http" and raw is not None and _KEPT.search(raw):
            scope = {**scope, "path": partly_decoded(raw)}
        await self._app(scope, receive, send)


def partly_decoded(raw: bytes) -> str:
    parts = _KEPT.split(raw)
    return "".join(
        part.decode() if index % 2 else unquote(part.decode("latin-1"))
        for index, part in enumerate(parts)
    )


def _path_id(name: str, text: str, example: str) -> Any:
    """An id in a path; the examples are of the demo session."""
    path = Path(alias=name, description=text, openapi_examples={example: {"value": example}})

    async def decoded(value: Annotated[str, path]) -> str:
        return unquote(value)

    return Depends(decoded)


SESSION_HELP = "The path of an `ahp-session:/` URI, or a whole URI, percent-encoded."


async def _session(name: Annotated[str, _path_id("id", SESSION_HELP, "demo")]) -> Uri:
    return session_uri(name)


SessionUri = Annotated[Uri, Depends(_session)]
RequestId = Annotated[str, _path_id("rid", "The id of an input request.", "first:trip")]
QuestionId = Annotated[str, _path_id("qid", "The id of a question in it.", "name")]

T = TypeVar("T")

JSON = "application/json"


class JsonBody(Generic[T]):
    """A dependency that decodes the request's body; no body counts as an empty object.

    Bounded like a WebSocket frame. Other media types are refused: any web page could send a form or
    plain text without a preflight request.
    """

    def __init__(self, shape: Any) -> None:
        self._decode: Decoder[T] = Decoder(shape, JSON_DEPTH)

    async def __call__(self, request: Request) -> T:
        raw = b"".join([chunk async for chunk in chunks_of(request, FRAME_BYTES)])
        if raw and media_type(request) != JSON:
            message = "Send JSON, with the header Content-Type: application/json (curl: --json)."
            raise ProblemError(415, "unsupportedMediaType", message)
        return self._decode(raw or b"{}")


async def chunks_of(request: Request, limit: int) -> AsyncIterator[bytes]:
    """The body, bounded. With `Expect: 100-continue`, one that is too big is refused at once.

    Other clients are sending already, and would not see an answer on a connection that is closed.
    """
    announced = request.headers.get("content-length", "")
    if "expect" in request.headers and announced.isdecimal():
        _check_size(int(announced), limit)
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        _check_size(size, limit)
        yield chunk


def _check_size(size: int, limit: int) -> None:
    if size > limit:
        message = f"A body may have at most {limit} bytes here."
        raise ProblemError(413, "tooBig", message, {"Connection": "close"})


def media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def json_response(
    value: msgspec.Struct | bytes, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    body = value if isinstance(value, bytes) else encode(value)
    return Response(body, status, headers, media_type=JSON)
