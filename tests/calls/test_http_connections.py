"""Connections to HTTP servers that are kept, and event streams on them, whatever a server does."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx2
import pytest
from mcp import MCPError

from session_server.mcp_client.connections.http_connections import (
    HEAD_BYTES,
    HELD_BYTES,
    REST_BYTES,
    HttpConnections,
)
from session_server.mcp_client.connections.http_link import EventParser
from session_server.schemas.limits import RESULT_BYTES
from tests.waiting import until

SECONDS = 60
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n"
LAST_CHUNK = b"0\r\n\r\n"

Answering = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Peer:
    """A server that answers each request on a connection by this, and counts connections."""

    def __init__(self, answer: Answering) -> None:
        self.connections = 0
        self.requests: list[bytes] = []
        self.ended = asyncio.Event()
        self._answer = answer

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                self.requests.append(head + await reader.readexactly(length))
                await self._answer(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.ended.set()
            writer.close()


def writing(*pieces: bytes) -> Answering:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()

    return answer


@asynccontextmanager
async def serving(answer: Answering) -> AsyncGenerator[tuple[Peer, HttpConnections]]:
    peer = Peer(answer)
    server = await asyncio.start_server(peer.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    connections = HttpConnections(f"http://127.0.0.1:{port}/mcp?x=1", {"x-own": "yes"})
    try:
        async with asyncio.timeout(SECONDS):
            yield peer, connections
    finally:
        connections.close()
        server.close()


async def body(connections: HttpConnections, sent: bytes = b"{}") -> tuple[int, bytes]:
    pieces: list[bytes] = []
    async with connections.posting(sent, {"x-this": "one"}) as answer:
        while (piece := await answer.piece()) is not None:
            pieces.append(piece)
        return answer.status, b"".join(pieces)


async def test_requests_one_after_the_other_share_a_connection() -> None:
    async with serving(writing(ANSWER)) as (peer, connections):
        for _ in range(3):
            assert await body(connections, b"[1]") == (200, b"ok")
        assert peer.connections == 1
        head, _, sent = peer.requests[-1].partition(b"\r\n\r\n")
        assert head.startswith(b"POST /mcp?x=1 HTTP/1.1\r\n")
        assert {b"x-own: yes", b"x-this: one"} <= set(head.split(b"\r\n"))
        assert sent == b"[1]"


async def test_requests_at_the_same_time_have_a_connection_each() -> None:
    async with serving(writing(ANSWER)) as (peer, connections):
        assert await asyncio.gather(*(body(connections) for _ in range(5))) == [(200, b"ok")] * 5
        assert peer.connections == 5


@pytest.mark.parametrize(
    "answer",
    [
        writing(ANSWER.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")),
        writing(ANSWER + ANSWER),
        writing(CHUNKED + LAST_CHUNK + b"more"),
    ],
)
async def test_a_connection_that_cannot_be_used_again_is_not(answer: Answering) -> None:
    async with serving(answer) as (peer, connections):
        for _ in range(2):
            assert await body(connections) == (200, b"ok")
        assert peer.connections == 2


async def test_a_connection_that_its_server_closed_is_not_used_again() -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(ANSWER)
        writer.close()
        await writer.wait_closed()

    async with serving(answer) as (peer, connections):
        assert await body(connections) == (200, b"ok")
        await until(lambda: not any(one.is_open for one in connections.idle))
        assert await body(connections) == (200, b"ok")
        assert peer.connections == 2


async def test_interim_answers_are_skipped_and_a_body_may_end_with_its_connection() -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n")
        writer.write(b"HTTP/1.1 404 Not Found\r\n\r\nal")
        await writer.drain()
        writer.write(b"l of it")
        writer.close()

    async with serving(answer) as (_, connections):
        assert await body(connections) == (404, b"all of it")


@pytest.mark.parametrize(
    "pieces",
    [
        (b"",),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok",),
        (CHUNKED,),
        (b"SSH-2.0-OpenSSH\r\n",),
        (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * HEAD_BYTES,),
    ],
)
async def test_an_answer_that_is_not_whole_is_an_error(pieces: tuple[bytes, ...]) -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.writelines(pieces)
        writer.close()

    async with serving(answer) as (_, connections):
        with pytest.raises((httpx2.ReadError, httpx2.RemoteProtocolError)):
            await body(connections)


async def test_what_cannot_be_connected_to_was_not_sent() -> None:
    async with serving(writing(ANSWER)) as (_, connections):
        pass
    with pytest.raises(httpx2.ConnectError):
        await body(connections)


async def test_a_header_cannot_bring_another_one() -> None:
    async with serving(writing(ANSWER)) as (peer, connections):
        with pytest.raises(httpx2.LocalProtocolError):
            async with connections.posting(b"{}", {"x-this": "one\r\nx-other: two"}):
                pass
        assert peer.requests == []


async def test_a_request_that_is_cancelled_loses_its_connection() -> None:
    async with serving(writing(CHUNKED)) as (peer, connections):
        task = asyncio.ensure_future(body(connections))
        await until(lambda: peer.requests)
        task.cancel()
        await peer.ended.wait()


async def test_the_end_of_an_answer_that_was_taken_may_come_later() -> None:
    go = asyncio.Event()

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(CHUNKED)
        await go.wait()
        writer.write(LAST_CHUNK)

    async with serving(answer) as (peer, connections):
        async with connections.posting(b"{}", {}) as taken:
            assert await taken.piece() == b"ok"
        go.set()
        await until(lambda: connections.idle)
        assert await body(connections) == (200, b"ok")
        assert peer.connections == 1


async def test_an_answer_that_was_taken_and_does_not_end_is_left() -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(CHUNKED)
        while True:
            writer.write(b"%x\r\n%s\r\n" % (REST_BYTES, bytes(REST_BYTES)))
            await writer.drain()

    async with serving(answer) as (peer, connections):
        async with connections.posting(b"{}", {}) as taken:
            assert await taken.piece() == b"ok"
        await peer.ended.wait()


async def test_of_an_answer_that_nobody_takes_only_so_much_is_read() -> None:
    written = 0

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        piece = bytes(65_536)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (1024 * len(piece)))
        for _number in range(1024):
            writer.write(piece)
            await writer.drain()
            written += len(piece)

    async with serving(answer) as (_, connections), connections.posting(b"{}", {}) as taken:
        await until(lambda: taken.is_paused)
        size = 0
        while (piece := await taken.piece()) is not None:
            size += len(piece)
        assert size == 1024 * 65_536 > HELD_BYTES


STREAM = (
    b": hello\n\ndata: one\r\n\r\nevent: message\rdata:two\rdata: lines\r\r"
    b"event: other\ndata: left out\n\nid: 1\ndata:\n\nretry: 5\ndata: \xc3\xbc\n\ndata: not ended"
)


@pytest.mark.parametrize("size", range(1, len(STREAM) + 1))
def test_events_are_the_same_whatever_the_pieces(size: int) -> None:
    parser = EventParser()
    pieces = [STREAM[at : at + size] for at in range(0, len(STREAM), size)]
    assert [event for piece in pieces for event in parser.fed(piece)] == ["one", "two\nlines", "ü"]


@pytest.mark.parametrize("piece", [b"x" * 65_536, b"data: " + b"x" * 65_536 + b"\n"])
def test_an_event_without_an_end_is_left_when_it_is_too_large(piece: bytes) -> None:
    parser = EventParser()

    def feed() -> None:
        for _ in range(2 * RESULT_BYTES // len(piece)):
            parser.fed(piece)

    with pytest.raises(MCPError):
        feed()
