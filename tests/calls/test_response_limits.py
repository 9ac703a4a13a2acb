"""Servers that send too much: it is stopped while it arrives, and only its own call fails."""

import codecs
import contextlib
import gzip
import json
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, ClassVar

import pytest

from session_server.calls.replies import NOT_MCP
from session_server.mcp_client.config import ServerConfig
from session_server.mcp_client.connections.response_limits import COMPRESSED, LINES, TOO_LARGE
from session_server.schemas.limits import RESULT_BYTES
from session_server.schemas.record import FailureKind
from tests.calls.running_host import http, running_host
from tests.mcp.servers import odd
from tests.servers import web_server

pytestmark = pytest.mark.slow

ODD = Path(odd.__file__)
PIECE = b"x" * 1_048_576
PIECES = 256
"""A quarter of a gigabyte, of which the host must not take more than a small part."""


class Flooding(BaseHTTPRequestHandler):
    """A 2026-era server over HTTP whose tools answer with more than anyone wants."""

    protocol_version = "HTTP/1.1"
    taken: ClassVar[dict[str, int]] = {}
    encodings: ClassVar[set[str | None]] = set()

    def do_POST(self) -> None:
        self.encodings.add(self.headers.get("accept-encoding"))
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        params = message.get("params") or {}
        tool = params.get("name") if message["method"] == "tools/call" else None
        whole = {"jsonrpc": "2.0", "id": message.get("id")}
        if self.path == "/endless":
            tool = "many-lines"
        match tool:
            case "json":
                self._flood(tool, "application/json", json.dumps(whole)[:-1].encode() + b', "x": "')
            case "events":
                self._flood(tool, "text/event-stream", b"event: message\ndata: ")
            case "many-lines":
                self._flood(tool, "text/event-stream", b"event: message\n", b"data: ", b"\n")
            case "unreadable":
                self._send("application/json", b'{"secret of the server":')
            case "bomb":
                self._whole("application/json", {"Content-Encoding": "gzip"})
            case "bomb-events":
                self._whole("text/event-stream", {"Content-Encoding": "gzip"})
            case _ if message["method"] == "tools/list" and self.path == "/pages":
                self.taken["pages"] = number = self.taken.get("pages", 0) + 1
                described = {"description": PIECE.decode(), "inputSchema": {"type": "object"}}
                page = {"tools": [{"name": f"t{number}", **described}], "nextCursor": "more"}
                listing = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}
                body = whole | {"result": listing | page}
                self._send("application/json", json.dumps(body).encode())
            case _:
                reply = odd.answer(message["method"], params, message.get("id"))
                self._send("application/json", json.dumps(whole | reply).encode())

    def do_GET(self) -> None:
        self.send_error(405)

    def _whole(self, kind: str, headers: dict[str, str]) -> None:
        self._send(kind, gzip.compress(b" " * 64 * len(PIECE), 1), headers)

    def _send(self, kind: str, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(200)
        lengths = {"Content-Type": kind, "Content-Length": str(len(body))}
        for name, value in (lengths | (headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            self.wfile.write(body)

    def _flood(
        self, tool: str, kind: str, first: bytes, before: bytes = b"", after: bytes = b""
    ) -> None:
        """Until nobody takes any more of it."""
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.taken[tool] = 0
        with contextlib.suppress(ConnectionError):
            self.wfile.write(first)
            for _ in range(PIECES):
                self.wfile.write(before + PIECE + after)
                self.taken[tool] += len(PIECE)


@contextlib.contextmanager
def flooding() -> Iterator[str]:
    with web_server(Flooding) as port:
        yield f"http://127.0.0.1:{port}/mcp"


@pytest.mark.parametrize("tool", ["json", "events", "many-lines"])
async def test_an_endless_answer_over_http_is_read_no_further_than_the_limit(tool: str) -> None:
    with flooding() as url:
        async with running_host(http(url)) as at:
            view = await at.result(await at.call(tool))
            assert (view.error.kind, view.error.message) == (FailureKind.INVALID_RESULT, TOO_LARGE)
            assert await at.text(await at.call("untyped")) == "plain"
    assert Flooding.taken[tool] < PIECES * len(PIECE)


async def test_a_server_that_greets_with_an_endless_event_is_reported_as_too_large() -> None:
    with flooding() as url:
        async with running_host(http(url.replace("/mcp", "/endless"))) as at:
            assert TOO_LARGE in await at.error(await at.call("untyped"))
    assert Flooding.taken["many-lines"] < PIECES * len(PIECE)


@pytest.mark.parametrize("tool", ["bomb", "bomb-events"])
async def test_compressed_answers_are_not_asked_for_and_not_unpacked(tool: str) -> None:
    Flooding.encodings.clear()
    with flooding() as url:
        async with running_host(http(url, headers={"accept-encoding": "gzip"})) as at:
            view = await at.result(await at.call(tool))
            assert (view.error.kind, view.error.message) == (FailureKind.INVALID_RESULT, COMPRESSED)
            assert await at.text(await at.call("untyped")) == "plain"
    assert Flooding.encodings == {"identity"}


async def test_a_listing_without_an_end_is_left_when_it_is_too_large() -> None:
    with flooding() as url:
        async with running_host(http(url.replace("/mcp", "/pages"))) as at:
            assert await at.text(await at.call("untyped")) == "plain"
            assert len(at.calls.servers["zoo"].main.tools) == RESULT_BYTES // len(PIECE) - 1
    assert Flooding.taken["pages"] == RESULT_BYTES // len(PIECE)


async def test_an_answer_that_cannot_be_read_is_not_quoted() -> None:
    with flooding() as url:
        async with running_host(http(url)) as at:
            assert await at.error(await at.call("unreadable")) == NOT_MCP


async def test_a_long_line_on_stdout_fails_its_call_and_no_other() -> None:
    async with running_host(ServerConfig(command=sys.executable, args=(str(ODD),))) as at:
        for tool in ("huge", "huge-ts"):
            view = await at.result(await at.call(tool))
            assert view.error.kind is FailureKind.INVALID_RESULT
            assert view.error.message == TOO_LARGE
        assert await at.text(await at.call("garbled")) == "plain"
        assert at.listed() == {"zoo": "ready"}


def decoded(*pieces: bytes) -> str:
    decoder = codecs.getincrementaldecoder(LINES)()
    return "".join(decoder.decode(piece) for piece in pieces)


def long(first: bytes, last: bytes) -> Iterator[bytes]:
    yield first
    for _ in range(RESULT_BYTES // len(PIECE)):
        yield PIECE
    yield last + b"\n"


@pytest.mark.parametrize(
    ("first", "last", "request_id"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":{"x":"', b'"}}', 7),
        (b'{ "id" : "a-7", "jsonrpc": "2.0", "error": {"x":"', b'"}}', "a-7"),
        (b'{"result":{"x":"', b'"},"jsonrpc":"2.0","id":7}', 7),
        (b'{"jsonrpc":"2.0","result":{"x":"', b'"},"id":7,"jsonrpc":"2.0"}\r', 7),
    ],
)
def test_a_long_line_becomes_the_error_of_its_request(
    first: bytes, last: bytes, request_id: Any
) -> None:
    answer = json.loads(decoded(*long(first, last)))
    assert (answer["id"], answer["error"]["message"]) == (request_id, TOO_LARGE)


@pytest.mark.parametrize(
    ("first", "last"),
    [
        (b'{"jsonrpc":"2.0","method":"notifications/message","params":{"x":"', b'"}}'),
        (b'{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"x":"', b'"}}'),
        (b'{"result":{"x":"', b'","id":7}}'),
        (b"", b',"id":7}'),
    ],
)
def test_a_long_line_that_answers_nothing_is_left_out(first: bytes, last: bytes) -> None:
    assert decoded(*long(first, last), b"next\n") == "\nnext\n"


def test_lines_come_whole_whatever_the_pieces() -> None:
    assert decoded(b"one\ntw", b"o\n\nthr", b"ee") == "one\ntwo\n\n"
    assert decoded("ü".encode()[:1], "ü".encode()[1:] + b"\n\xff\n") == "ü\n\ufffd\n"
    assert decoded(PIECE * 8, b"\n") == "x" * RESULT_BYTES + "\n"
