"""How much a server may send: its bytes are counted as they are read, before they are parsed.

Over HTTP a body that is not an event stream is bounded as a whole, an event stream line by line. On
stdout every line is bounded. A longer answer fails its own request and nothing else. Compressed
answers are refused, since a few kilobytes of them can unpack to gigabytes.
"""

import codecs
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import msgspec
from mcp_types import INTERNAL_ERROR

from session_server.mcp_client.sdk import TOO_LARGE_EVENT
from session_server.schemas.limits import RESULT_BYTES

TOO_LARGE = f"the server's answer is larger than {RESULT_BYTES} bytes"
COMPRESSED = (
    "the server compresses its answers although it was asked not to, and this is not accepted"
)
EVENT_BYTES = RESULT_BYTES + 65_536
"""For all lines of an event, its name and id included; of these, one line has the answer."""

LINES = "session_server_lines"
"""The encoding of a server's stdout: UTF-8, in lines of at most `RESULT_BYTES`."""

EDGE_BYTES = 512
_RESPONSE = re.compile(
    rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?'
    rb'(?:"id"\s*:\s*(?P<id>\d{1,18}|"[^"\\]{1,128}")\s*,\s*)?'
    rb'(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"(?:result|error)"\s*:'
)
_LAST_ID = re.compile(
    rb',\s*"id"\s*:\s*(?P<id>\d{1,18}|"[^"\\]{1,128}")\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$'
)


def reason_in(message: str) -> str | None:
    """Whether an error says that an answer was refused for its size or its encoding, and which."""
    if TOO_LARGE_EVENT in message:
        return TOO_LARGE
    return next((reason for reason in (TOO_LARGE, COMPRESSED) if reason in message), None)


class BoundedHttp(httpx2.AsyncHTTPTransport):
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await super().handle_async_request(request)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        kind = response.headers.get("content-type", "").strip().lower()
        encoding = response.headers.get("content-encoding", "").strip().lower()
        bounded = httpx2.Response(
            status_code=response.status_code,
            headers=response.headers,
            stream=_Body(
                response.stream,
                is_events=kind.startswith("text/event-stream"),
                is_compressed=encoding not in ("", "identity"),
            ),
            extensions=response.extensions,
        )
        bounded.encoding = "utf-8"  # as MCP has it; some decoders that a server could name are slow
        return bounded


class _Body(httpx2.AsyncByteStream):
    """Raises what the SDK turns into an error of this request alone."""

    def __init__(
        self, stream: httpx2.AsyncByteStream, *, is_events: bool, is_compressed: bool
    ) -> None:
        self._stream = stream
        self._is_events = is_events
        self._is_compressed = is_compressed
        self._size = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._is_compressed:
            raise self._error(COMPRESSED)
        async for piece in self._stream:
            self._size += len(piece)
            if self._is_events and (end := max(piece.rfind(b"\n"), piece.rfind(b"\r"))) >= 0:
                self._size = len(piece) - end - 1  # of the line that has begun
            if self._size > RESULT_BYTES:
                raise self._error(TOO_LARGE)
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()

    def _error(self, reason: str) -> Exception:
        return httpx2.SSEError(reason) if self._is_events else httpx2.StreamError(reason)


class _LineDecoder(codecs.IncrementalDecoder):
    """Gives out whole lines; one that is too long becomes the error that its request gets."""

    def __init__(self, errors: str = "strict") -> None:
        super().__init__(errors)
        self.reset()

    def reset(self) -> None:
        self._head = bytearray()
        self._tail = b""
        self._size = 0

    def decode(self, input: Any, final: bool = False) -> str:  # noqa: A002, FBT001, FBT002
        del final  # a last line without an end is not a message
        *ended, rest = bytes(input).split(b"\n")
        lines: list[str] = []
        for piece in ended:
            self._append(piece)
            lines.append(f"{self._line()}\n")
            self.reset()
        self._append(rest)
        return "".join(lines)

    def _append(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= RESULT_BYTES:
            self._head += piece
        else:
            self._tail = (self._tail + piece)[-EDGE_BYTES:]
            del self._head[EDGE_BYTES:]

    def _line(self) -> str:
        """Bytes that are not UTF-8 are replaced, so that one bad line stops no others."""
        if self._size <= RESULT_BYTES:
            return self._head.decode("utf-8", "replace")
        found = _RESPONSE.match(self._head)
        if found is not None and found["id"] is None:
            found = _LAST_ID.search(self._tail)
        if found is None:
            return ""  # a notification or a request: nobody waits for it here
        error = {"code": INTERNAL_ERROR, "message": TOO_LARGE}
        answer = {"jsonrpc": "2.0", "id": msgspec.Raw(found["id"]), "error": error}
        return msgspec.json.encode(answer).decode("utf-8", "replace")


def _codec(name: str) -> codecs.CodecInfo | None:
    if name != LINES:
        return None
    plain = codecs.lookup("utf-8")
    return codecs.CodecInfo(plain.encode, plain.decode, incrementaldecoder=_LineDecoder, name=LINES)


codecs.register(_codec)
