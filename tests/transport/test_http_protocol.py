"""Limits on HTTP below the application: on heads, bodies, requests sent ahead, and time."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from session_server.host.clients.open_connections import AUTHENTICATED
from session_server.schemas.limits import (
    BODY_BYTES_AFTER_ANSWER,
    BODY_BYTES_PER_PERIOD,
    BODY_PERIOD_SECONDS,
    BODY_PIECES,
    HEAD_BYTES,
    HEAD_LINES,
    HEAD_SECONDS,
    KEEP_ALIVE_SECONDS,
    PIPELINED_REQUESTS,
    STALLED_BYTES,
    STALLED_SECONDS,
    UNAUTHENTICATED_PER_ADDRESS,
)
from session_server.transport import http_protocol
from session_server.transport.admission import Admission
from session_server.transport.http_protocol import PIECE_BYTES, READ_BYTES, HttpProtocol
from tests.effort import PATIENCE
from tests.waiting import until

GET = b"GET / HTTP/1.1\r\nHost: x\r\n"
CHUNKED = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"

UPGRADE = (
    b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)

App = Callable[[Any, Any, Any], Awaitable[None]]


async def answer(send: Any, body: bytes = b"ok") -> None:
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def hello(_: Any, __: Any, send: Any) -> None:
    await answer(send)


async def echo(_: Any, receive: Any, send: Any) -> None:
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        body, more = body + message["body"], message["more_body"]
    await answer(send, body)


class Peer:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def write(self, data: bytes) -> None:
        self.writer.write(data)

    async def abort(self) -> None:
        self.writer.transport.abort()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()

    async def response(self) -> bytes:
        """One whole answer; its first line is enough to know what it is."""
        async with asyncio.timeout(PATIENCE):
            head = await self.reader.readuntil(b"\r\n\r\n")
            size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            return head + await self.reader.readexactly(size)

    async def rest(self) -> bytes:
        """All that comes until the other side closes."""
        async with asyncio.timeout(PATIENCE):
            try:
                return await self.reader.read(-1)
            except ConnectionError:
                return b""

    async def flood(self, data: bytes, at_most: int = 1 << 27) -> None:
        """Sends until the other side closes; it must do so before very much was sent."""
        sent = 0
        try:
            async with asyncio.timeout(PATIENCE):
                while not self.reader.at_eof():
                    self.writer.write(data)
                    await self.writer.drain()
                    await asyncio.sleep(0)
                    sent += len(data)
                    assert sent < at_most, "it reads on and on"
        except ConnectionError:
            pass


@asynccontextmanager
async def listening(
    app: App = hello,
    admission: Admission | None = None,
    made: list[HttpProtocol] | None = None,
) -> AsyncIterator[Callable[[], Awaitable[Peer]]]:
    config = uvicorn.Config(app, lifespan="off", log_config=None, timeout_keep_alive=30)
    config.load()
    state, given = ServerState(), admission or Admission(1_000)

    def protocol() -> HttpProtocol:
        new = HttpProtocol(given, config=config, server_state=state, app_state={})
        if made is not None:
            made.append(new)
        return new

    server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0)
    address = server.sockets[0].getsockname()
    peers: list[Peer] = []

    async def connect() -> Peer:
        peer = Peer(*await asyncio.open_connection(*address, limit=1 << 24))
        peers.append(peer)
        return peer

    try:
        yield connect
    finally:
        for peer in peers:
            await peer.abort()
        server.close()
        async with asyncio.timeout(PATIENCE):
            while state.connections or state.tasks:  # noqa: ASYNC110 - uvicorn has no event for it
                await asyncio.sleep(0.01)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HEAD_SECONDS", "BODY_PERIOD_SECONDS", "STALLED_SECONDS"):
        monkeypatch.setattr(http_protocol, name, 0.05)


def status_of(response: bytes) -> int:
    return int(response.split(b" ", 2)[1])


# Size


@pytest.mark.parametrize(
    ("opening", "more", "status"),
    [
        (GET, b"a: b\r\n" * 1_000, 431),
        (GET + b"x: ", b"a" * 200_000, 431),
        (b"GET /", b"a" * 200_000, 431),
        (b"", b"\r\n" * 50_000, 431),
        (GET + b"\r\n", (GET + b"\r\n") * 1_000, 400),
        (CHUNKED, b"1\r\na\r\n" * 10_000, 400),
        (CHUNKED + b"1;", b"a" * 200_000, 431),
        (CHUNKED + b"0\r\nx: ", b"a" * 200_000, 431),
        (CHUNKED + b"0\r\n", b"a: b\r\n" * 1_000, 431),
    ],
    ids=[
        "headers",
        "one header",
        "the address",
        "empty lines",
        "requests sent ahead",
        "tiny chunks",
        "a chunk's extension",
        "one trailer",
        "trailers",
    ],
)
async def test_a_request_without_end_is_refused_and_its_connection_closed(
    opening: bytes, more: bytes, status: int
) -> None:
    async with listening(echo) as connect:
        peer = await connect()
        peer.write(opening)
        peer.write(more * 3)  # more than a server reads at once, so its reason may be lost
        response = await peer.rest()
        assert response == b"" or b"HTTP/1.1 %d " % status in response
        endless = await connect()
        endless.write(opening)
        await endless.flood(more)
        other = await connect()
        other.write(GET + b"Content-Length: 2\r\n\r\nhi")
        assert (await other.response()).endswith(b"hi")


async def test_a_head_within_the_bounds_is_taken() -> None:
    async with listening() as connect:
        peer = await connect()
        lines = HEAD_LINES - 1
        value = b"v" * ((HEAD_BYTES - 1_000) // lines - 6)
        peer.write(GET + b"x: %b\r\n" % value * lines + b"\r\n")
        assert status_of(await peer.response()) == 200
        peer.write(GET + b"x: y\r\n" * (lines + 1) + b"\r\n")
        assert status_of(await peer.rest()) == 431
        peer = await connect()
        peer.write(GET + b"x: " + b"y" * HEAD_BYTES)
        response = await peer.rest()
        assert status_of(response) == 431
        assert f"at most {HEAD_BYTES} bytes".encode() in response


async def test_a_large_head_that_comes_whole_is_refused() -> None:
    async with listening() as connect:
        for head in (
            GET + b"x: " + b"y" * HEAD_BYTES,
            b"GET /" + b"a" * HEAD_BYTES + b" HTTP/1.1\r\nHost: x",
            b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: x",
        ):
            peer = await connect()
            peer.write(head + b"\r\n\r\n")
            response = await peer.rest()
            assert status_of(response) == 431
            assert f"at most {HEAD_BYTES} bytes".encode() in response


@pytest.mark.parametrize("target", [b"http://x:99999/", b"http://[::1/", b"http://x"])
async def test_a_target_that_is_no_address_is_refused_with_the_reason(target: bytes) -> None:
    async with listening() as connect:
        peer = await connect()
        named = target.removeprefix(b"http://").rstrip(b"/")
        peer.write(b"GET %b HTTP/1.1\r\nHost: %b\r\n\r\n" % (target, named))
        response = await peer.rest()
        assert status_of(response) == 400
        assert b"not a valid HTTP request" in response


async def test_a_few_requests_sent_ahead_are_answered_in_order() -> None:
    async with listening(echo) as connect:
        peer = await connect()
        for number in range(PIPELINED_REQUESTS):
            peer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n%d" % number)
        for number in range(PIPELINED_REQUESTS):
            assert (await peer.response()).endswith(b"%d" % number)


async def test_a_long_body_in_ordinary_chunks_is_taken() -> None:
    async with listening(echo) as connect:
        peer = await connect()
        chunk = b"x" * PIECE_BYTES
        pieces = 2 * BODY_PIECES
        peer.write(CHUNKED + (b"%x\r\n%b\r\n" % (len(chunk), chunk)) * pieces + b"0\r\n\r\n")
        assert (await peer.response()).endswith(b"\r\n\r\n" + chunk * pieces)


ENDLESS_BODIES = {
    "chunks": (CHUNKED, b"400\r\n" + b"x" * 1_024 + b"\r\n"),
    "length": (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999999\r\n\r\n", b"x" * 1_024),
}


@pytest.mark.parametrize("kind", ENDLESS_BODIES)
async def test_a_body_that_goes_on_after_the_answer_ends_the_connection(kind: str) -> None:
    opening, more = ENDLESS_BODIES[kind]
    protocols: list[HttpProtocol] = []
    async with listening(made=protocols) as connect:
        peer = await connect()
        peer.write(opening)
        assert status_of(await peer.response()) == 200
        await peer.flood(more * 64)
        assert await peer.rest() == b""
        most = BODY_BYTES_AFTER_ANSWER + len(more)
        assert BODY_BYTES_AFTER_ANSWER < protocols[0]._body_bytes <= most + (1 << 18)


async def test_a_body_that_ends_soon_after_the_answer_leaves_the_connection_open() -> None:
    async with listening() as connect:
        peer = await connect()
        size = BODY_BYTES_AFTER_ANSWER
        peer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size)
        assert status_of(await peer.response()) == 200
        peer.write(b"x" * size + GET + b"\r\n")
        assert status_of(await peer.response()) == 200


async def test_much_data_of_one_connection_is_read_in_turns() -> None:
    """Whatever is read at once is followed by a pause, in which others are served."""
    protocols: list[HttpProtocol] = []
    async with listening(echo, made=protocols) as connect:
        peer = await connect()
        peer.write(CHUNKED)
        await until(lambda: bool(protocols) and protocols[0]._running is not None)
        protocol = protocols[0]
        chunk = b"%x\r\n%b\r\n" % (READ_BYTES // 2, b"x" * (READ_BYTES // 2))
        protocol.data_received(chunk)
        assert not protocol.flow.read_paused
        await until(lambda: not protocol.cycle.body)
        small = b"%x\r\n%b\r\n" % (PIECE_BYTES, b"x" * PIECE_BYTES)
        protocol.data_received(small * (READ_BYTES // len(small) + 1))
        assert len(protocol.cycle.body) < READ_BYTES  # so it is not paused for what waits
        assert protocol.flow.read_paused
        await until(lambda: not protocol.flow.read_paused)
        peer.write(b"0\r\n\r\n")
        assert status_of(await peer.response()) == 200


async def test_a_connection_lost_in_the_middle_of_pipelined_answers_ends_the_running_one() -> None:
    begun, tried = asyncio.Event(), asyncio.Event()
    gone = asyncio.Event()
    seen: list[str] = []

    async def large(_: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-length", b"8")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        begun.set()
        await gone.wait()
        seen.append((await receive())["type"])
        await send({"type": "http.response.body", "body": b"rest"})
        tried.set()

    protocols: list[HttpProtocol] = []
    async with listening(large, made=protocols) as connect:
        peer = await connect()
        peer.write((GET + b"\r\n") * PIPELINED_REQUESTS)
        await begun.wait()
        protocols[0].transport.abort()  # as when a write fails; nothing is read meanwhile
        await until(lambda: not protocols[0].connections)
        gone.set()
        async with asyncio.timeout(PATIENCE):
            await tried.wait()
        assert seen == ["http.disconnect"]
        assert not protocols[0].pipeline


async def test_a_refusal_in_the_middle_of_an_answer_only_closes() -> None:
    begun = asyncio.Event()

    async def slow(_: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-length", b"100")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        begun.set()
        while (await receive())["type"] != "http.disconnect":
            pass

    async with listening(slow) as connect:
        peer = await connect()
        peer.write(CHUNKED)
        await begun.wait()
        peer.write(b"not a chunk\r\n")
        assert (await peer.rest()).endswith(b"half")


@pytest.mark.parametrize(
    "random_frames",
    [
        b"\x16\x03\x01\x02\x00 a TLS greeting\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        GET + b"x" * 200_000 + b": y\r\n\r\n",
        b"CONNECT x:443 HTTP/1.1\r\nHost: x:443\r\n\r\n",
        GET + b"Upgrade: foo\r\nConnection: upgrade, close\r\n\r\n",
    ],
    ids=["TLS", "version", "head", "CONNECT", "upgrade"],
)
async def test_many_malformed_requests_write_one_line_to_the_log(
    caplog: pytest.LogCaptureFixture, random_frames: bytes
) -> None:
    async with listening() as connect:
        for _ in range(5):
            peer = await connect()
            peer.write(random_frames)
            await peer.rest()
    assert len(caplog.records) <= 1, caplog.text


async def test_an_upgrade_that_is_not_offered_is_ignored_and_what_follows_is_read() -> None:
    async with listening(echo) as connect:
        peer = await connect()
        upgrade = b"Upgrade: h2c\r\nConnection: Upgrade\r\n"
        peer.write(GET + upgrade + b"\r\n" + GET + b"Content-Length: 2\r\n\r\nhi")
        assert (await peer.response()).endswith(b"\r\n\r\n")
        assert (await peer.response()).endswith(b"hi")
        peer.write(GET + upgrade + b"\r\nG")
        assert (await peer.response()).endswith(b"\r\n\r\n")
        peer.write(GET[1:] + b"Content-Length: 2\r\n\r\nho")
        assert (await peer.response()).endswith(b"ho")


@pytest.mark.parametrize("protocol", [b"h2c", b"websocket"])
@pytest.mark.parametrize("body", [b"Content-Length: 40", b"Transfer-Encoding: chunked"])
async def test_an_upgrade_with_a_body_is_refused(protocol: bytes, body: bytes) -> None:
    """The body would be read as another request, which a proxy in front has not seen."""
    async with listening() as connect:
        peer = await connect()
        upgrade = UPGRADE.replace(b"websocket", protocol)
        peer.write(GET + upgrade + body + b"\r\n\r\n" + GET + b"\r\n")
        response = await peer.rest()
        assert status_of(response) == 400
        assert response.count(b"HTTP/1.1 ") == 1


async def test_an_upgrade_behind_a_request_without_an_answer_is_refused() -> None:
    """The answer would be written into the WebSocket's frames."""
    async with listening(echo) as connect:
        peer = await connect()
        peer.write(GET + b"\r\n" + GET + UPGRADE + b"\r\n")
        response = await peer.rest()
        assert status_of(response) == 400
        assert b"101 Switching" not in response


async def test_a_target_that_names_another_host_than_the_host_header_is_refused() -> None:
    async with listening() as connect:
        for target, host in (
            (b"http://evil.example/", b"localhost"),
            (b"http://evil.example", b"localhost"),
            (b"HTTP://localhost:1/", b"localhost"),
            (b"http://evil@localhost/", b"localhost"),
            (b"http://localhost/", b"evil.example"),
        ):
            peer = await connect()
            peer.write(b"GET %b HTTP/1.1\r\nHost: %b\r\n\r\n" % (target, host))
            response = await peer.rest()
            assert status_of(response) == 400
            assert b"names another host" in response
        peer = await connect()
        for target in (b"http://LOCALHOST:80/?x=http://y", b"/?x=http://y", b"/http://y"):
            peer.write(b"GET %b HTTP/1.1\r\nHost: localhost:80\r\n\r\n" % target)
            assert status_of(await peer.response()) == 200


EXPECTING = b"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"


async def test_an_answer_in_place_of_100_continue_ends_the_connection() -> None:
    """Nobody can know whether what comes next is the body or another request."""
    async with listening() as connect:
        peer = await connect()
        peer.write(EXPECTING)
        response = await peer.rest()
        assert status_of(response) == 200
        assert b"connection: close\r\n" in response


async def test_a_body_that_was_asked_for_with_100_continue_leaves_the_connection_open() -> None:
    async with listening(echo) as connect:
        peer = await connect()
        for _ in range(2):
            peer.write(EXPECTING)
            async with asyncio.timeout(PATIENCE):
                assert (await peer.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
            peer.write(b"hi")
            response = await peer.response()
            assert response.endswith(b"hi")
            assert b"connection: close" not in response


# Time


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(
    ("requests_before", "opening"),
    [(0, b""), (0, b"G"), (0, GET), (0, b"\r\n"), (1, b"G"), (1, b"\r\n")],
)
async def test_a_head_that_does_not_come_in_time_ends_the_connection(
    requests_before: int, opening: bytes
) -> None:
    async with listening() as connect:
        peer = await connect()
        for _ in range(requests_before):
            peer.write(GET + b"\r\n")
            assert status_of(await peer.response()) == 200
        peer.write(opening)
        response = await peer.rest()
        assert response == b"" if not opening else status_of(response) == 408


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("app", [echo, hello], ids=["awaited", "answered before"])
async def test_a_body_that_does_not_come_in_time_ends_the_connection(app: App) -> None:
    async with listening(app) as connect:
        peer = await connect()
        peer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nabc")
        response = await peer.rest()
        assert response.count(b"HTTP/1.1") == 1
        assert status_of(response) == (408 if app is echo else 200)


async def test_a_body_that_comes_steadily_is_waited_for() -> None:
    protocols: list[HttpProtocol] = []
    async with listening(echo, made=protocols) as connect:
        peer = await connect()
        size = 2 * BODY_BYTES_PER_PERIOD
        peer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size)
        peer.write(b"x" * BODY_BYTES_PER_PERIOD)
        await until(lambda: protocols and protocols[0]._body_bytes >= BODY_BYTES_PER_PERIOD)
        protocols[0]._bytes_at_period = 0
        protocols[0]._check()
        peer.write(b"x" * (BODY_BYTES_PER_PERIOD - 1))
        await until(lambda: protocols[0]._body_bytes >= size - 1)
        protocols[0]._check()
        assert status_of(await peer.rest()) == 408


@pytest.mark.parametrize("deadline", ["timeout_keep_alive_handler", "_check_soon"])
async def test_a_request_that_came_before_a_deadline_is_read_although_the_process_had_stopped(
    deadline: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_protocol, "UNREAD_SECONDS", PATIENCE)
    protocols: list[HttpProtocol] = []
    async with listening(made=protocols) as connect:
        peer = await connect()
        for _ in range(2):
            await until(lambda: protocols)
            peer.write(GET + b"\r\n")
            getattr(protocols[0], deadline)()
            assert status_of(await peer.response()) == 200


@pytest.mark.usefixtures("impatient")
async def test_a_reader_that_stops_reading_is_cut_off() -> None:
    ended = asyncio.Event()

    async def endless(_: Any, receive: Any, send: Any) -> None:
        await receive()
        gone = asyncio.ensure_future(receive())
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while not gone.done():
            piece = {"type": "http.response.body", "body": b"x" * 65_536, "more_body": True}
            await send(piece)
            await asyncio.sleep(0)
        ended.set()

    async with listening(endless) as connect:
        peer = await connect()
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
        peer.write(GET + b"\r\n")
        async with asyncio.timeout(PATIENCE):
            await ended.wait()


async def test_a_reader_that_takes_a_long_answer_slowly_is_waited_for() -> None:
    protocols: list[HttpProtocol] = []
    size = 64 << 20  # far more than the buffers of both sockets

    async def long(_: Any, receive: Any, send: Any) -> None:
        await receive()
        await answer(send, b"x" * size)

    async with listening(long, made=protocols) as connect:
        peer = await connect()
        peer.write(GET + b"\r\n")
        await until(lambda: protocols and protocols[0].flow.write_paused)
        before = protocols[0].transport.get_write_buffer_size()

        async def read() -> int:
            await peer.reader.read(1 << 20)
            return before - protocols[0].transport.get_write_buffer_size()

        async with asyncio.timeout(PATIENCE):
            while await read() < STALLED_BYTES:
                pass
        protocols[0]._check_reader(before)
        assert not protocols[0].transport.is_closing()
        protocols[0]._check_reader(protocols[0].transport.get_write_buffer_size())
        assert protocols[0].transport.is_closing()


def test_the_deadlines_leave_people_time() -> None:
    assert HEAD_SECONDS >= 5
    assert KEEP_ALIVE_SECONDS >= 5
    assert STALLED_SECONDS > BODY_PERIOD_SECONDS >= 10
    assert BODY_BYTES_PER_PERIOD / BODY_PERIOD_SECONDS < 1_000
    assert STALLED_BYTES / STALLED_SECONDS < 1_000


# Who keeps its connection


async def test_a_connection_counts_as_in_use_while_an_authenticated_request_is_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    may_answer = asyncio.Event()
    begun = asyncio.Event()

    async def known(scope: Any, _: Any, send: Any) -> None:
        if scope["path"] == "/known":
            scope["extensions"][AUTHENTICATED]()
            begun.set()
            await may_answer.wait()
        await answer(send)

    monkeypatch.setattr("session_server.transport.admission.network_of", lambda address: address)
    async with listening(known, Admission(1_000)) as connect:
        peer = await connect()
        peer.write(b"GET /known HTTP/1.1\r\nHost: x\r\n\r\n")
        await begun.wait()
        for _ in range(2):
            strangers = [await connect() for _ in range(UNAUTHENTICATED_PER_ADDRESS + 1)]
            for stranger in strangers:
                stranger.write(b"G")
            assert await strangers[0].rest() == b""
        may_answer.set()
        assert status_of(await peer.response()) == 200
        for _ in range(2 * UNAUTHENTICATED_PER_ADDRESS):
            await connect()
        assert await peer.rest() == b""
