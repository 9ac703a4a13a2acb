"""JSON in and out: the Structs are the bodies, decoded and encoded as everywhere else."""

from collections.abc import AsyncIterator
from typing import Any, Generic, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from session_server.schemas.codec import Decoder, encode
from session_server.schemas.limits import FRAME_BYTES, JSON_DEPTH
from session_server.web.problems import ProblemError

T = TypeVar("T")

JSON = "application/json"


class JsonBody(Generic[T]):
    """A dependency that reads the request's body as one shape; no body is an empty object.

    Bounded like a WebSocket frame. Other media types are refused: a form or plain text could be
    sent by any web page without the browser asking first.
    """

    def __init__(self, shape: Any) -> None:
        self.shape = shape
        self._decode: Decoder[T] = Decoder(shape, JSON_DEPTH)

    async def __call__(self, request: Request) -> T:
        raw = await read_bounded(request)
        if raw and media_type(request) != JSON:
            words = "Send JSON, with the header Content-Type: application/json (curl: --json)."
            raise ProblemError(415, "unsupportedMediaType", words)
        return self._decode(raw or b"{}")


async def read_bounded(request: Request) -> bytes:
    return b"".join([chunk async for chunk in chunks_of(request, FRAME_BYTES)])


async def chunks_of(request: Request, limit: int) -> AsyncIterator[bytes]:
    """The body. A client that asks before it sends one that is too big is refused at once.

    Others are sending already, and would lose the answer with a connection that is closed.
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
