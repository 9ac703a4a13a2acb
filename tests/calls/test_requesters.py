"""A result is fetched when it was written whole to a connection that was still open."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import uvicorn
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from session_server.calls.requesters import DepartureCheck, Requester, Requesters
from session_server.watched_response import WatchedResponse

LARGE = 16 * 1_048_576
"""More than the kernel takes for a client that does not read."""

PIECE = {"type": "http.response.body", "more_body": True}


class Answers:
    """An application that answers with this many bytes, once it is told to."""

    def __init__(self, size: int) -> None:
        self.body = bytes(size)
        self.asked = asyncio.Event()
        self.left = asyncio.Event()
        self.go = asyncio.Event()
        self.over = asyncio.Event()
        self.requesters = Requesters()
        self.fetched = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        requester = Leaving(self.left)
        async with WatchedResponse(requester, receive, send) as response:
            response.listen()
            requester.join(self.requesters, "it")
            await self.answer(requester, response, scope)
        self.over.set()

    async def answer(self, requester: Requester, response: WatchedResponse, scope: Scope) -> None:
        requester.when_fetched(self.count)
        self.asked.set()
        await self.go.wait()
        await Response(self.body)(scope, response.receive, response.send)

    async def count(self) -> None:
        self.fetched += 1


class Leaving(Requester):
    """Tells when its client has disconnected."""

    def __init__(self, left: asyncio.Event) -> None:
        super().__init__()
        self._left = left

    def disconnected(self) -> None:
        super().disconnected()
        self._left.set()


@asynccontextmanager
async def listening(app: Answers) -> AsyncGenerator[int]:
    config = uvicorn.Config(app, "127.0.0.1", 0, log_level="critical", lifespan="off")
    server = uvicorn.Server(config)
    config.load()
    server.lifespan = config.lifespan_class(config)
    await server.startup()
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        await server.shutdown()


async def asking(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    await writer.drain()
    return reader, writer


async def settled(requesters: Requesters) -> None:
    """Returns when no client is connected for it any more."""
    while "it" in requesters:  # noqa: ASYNC110  # it ends with the connection
        await asyncio.sleep(0.01)


def gone(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


@pytest.mark.parametrize("size", [10, LARGE])
async def test_a_response_that_was_read_to_the_end_is_fetched(size: int) -> None:
    app = Answers(size)
    async with listening(app) as port:
        reader, writer = await asking(port)
        app.go.set()
        answer = await reader.read()
        await app.over.wait()
        gone(writer)
    assert len(answer) > size
    assert app.fetched == 1


@pytest.mark.parametrize("size", [1, 10, LARGE])
async def test_a_client_that_has_the_whole_response_may_disconnect_at_once(size: int) -> None:
    """As curl does: nothing is left to say on this connection."""
    app = Answers(size)
    async with listening(app) as port:
        reader, writer = await asking(port)
        app.go.set()
        await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(size)
        gone(writer)
        await app.over.wait()
        await settled(app.requesters)
    assert app.fetched == 1


async def test_a_client_that_has_the_event_may_disconnect_before_the_stream_ends() -> None:
    """As clients of MCP do: the result is an event, and the end of the stream says nothing more."""

    class Streams(Answers):
        async def answer(
            self, requester: Requester, response: WatchedResponse, scope: Scope
        ) -> None:
            async def events() -> AsyncGenerator[bytes]:
                yield b"data: it\r\n\r\n"
                await self.go.wait()

            requester.when_fetched(self.count)
            await StreamingResponse(events())(scope, response.receive, response.send)

    app = Streams(0)
    async with listening(app) as port:
        reader, writer = await asking(port)
        await reader.readuntil(b"data: it\r\n\r\n\r\n")  # the chunk with the event
        gone(writer)
        app.go.set()
        await app.over.wait()
        await settled(app.requesters)
    assert app.fetched == 1


@pytest.mark.parametrize("size", [10, LARGE])
async def test_a_client_that_disconnected_before_the_response_has_not_fetched_it(size: int) -> None:
    app = Answers(size)
    async with listening(app) as port:
        _, writer = await asking(port)
        await app.asked.wait()
        gone(writer)
        await app.left.wait()
        app.go.set()
        await settled(app.requesters)
    assert app.fetched == 0


async def test_a_client_that_disconnects_in_the_middle_of_the_response_has_not_fetched_it() -> None:
    app = Answers(LARGE)
    async with listening(app) as port:
        reader, writer = await asking(port)
        app.go.set()
        await reader.readexactly(LARGE // 8)
        assert not app.over.is_set()
        gone(writer)
        await app.over.wait()
    assert app.fetched == 0


async def test_a_piece_that_is_broken_off_was_not_fetched_whatever_came_before_it() -> None:
    """Signs of life come on the same stream as the result, and may come just before it."""
    app = Answers(0)
    begun = asyncio.Event()

    async def receive() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        if message["body"].startswith(b"the result"):
            begun.set()
            await asyncio.Event().wait()

    async def answer() -> None:
        requester = Requester()
        async with WatchedResponse(requester, receive, send) as response:
            requester.join(app.requesters, "it")
            requester.when_fetched(app.count)
            for body in (b"a sign of life", b"the result\n"):
                await response.send({**PIECE, "body": body})

    answering = asyncio.ensure_future(answer())
    await begun.wait()
    answering.cancel()
    await asyncio.wait([answering])
    await settled(app.requesters)
    assert app.fetched == 0


async def test_a_client_that_disconnects_while_it_waits_no_longer_counts() -> None:
    class Waits(Answers):
        async def answer(
            self, requester: Requester, response: WatchedResponse, scope: Scope
        ) -> None:
            del scope
            self.asked.set()
            assert (await response.receive())["type"] == "http.disconnect"
            await self.go.wait()
            requester.when_fetched(self.count)  # too late

    app = Waits(0)
    async with listening(app) as port:
        _, writer = await asking(port)
        await app.asked.wait()
        assert "it" in app.requesters
        gone(writer)
        await settled(app.requesters)
        app.go.set()
        await app.over.wait()
    assert app.fetched == 0


async def test_a_request_body_reaches_the_application_before_disconnects_are_listened_for() -> None:
    pieces: list[Message] = [
        {"type": "http.request", "body": b"a", "more_body": True},
        {"type": "http.request", "body": b"b", "more_body": False},
        {"type": "http.disconnect"},
    ]

    async def receive() -> Message:
        return pieces.pop(0)

    left = asyncio.Event()
    async with WatchedResponse(Leaving(left), receive, nowhere) as response:
        bodies = [(await response.receive())["body"] for _ in range(2)]
        assert (bodies, left.is_set()) == ([b"a", b"b"], False)
        await left.wait()
        assert (await response.receive())["type"] == "http.disconnect"


async def never(*_: object) -> Message:
    await asyncio.Event().wait()
    raise AssertionError


async def nowhere(message: Message) -> None:
    del message


async def test_a_client_that_was_given_a_state_counts_as_connected_for_a_while() -> None:
    requesters = Requesters()
    for seconds in (60, 0.01):
        requester = Requester()
        async with WatchedResponse(requester, never, nowhere) as response:
            requester.join(requesters, "it")
            requester.expect_back(seconds)
            await response.send({"type": "http.response.body", "body": b"a state"})
        assert "it" in requesters
    await settled(requesters)


async def test_a_client_that_is_back_before_its_state_was_written_is_not_expected_twice() -> None:
    requesters = Requesters()
    first, second = Requester(), Requester()
    first.join(requesters, "it")
    first.expect_back()
    second.join(requesters, "it")
    first.ended(is_written=True)
    await asyncio.sleep(0)  # what follows a fetched response is a task of its own
    second.ended(is_written=False)
    assert "it" not in requesters


async def test_a_client_that_cancels_its_request_no_longer_counts() -> None:
    requesters, requester = Requesters(), Requester()
    requester.join(requesters, "it")
    with pytest.raises(asyncio.CancelledError), requester.connected():
        raise asyncio.CancelledError
    assert "it" not in requesters


async def test_a_request_whose_response_has_ended_waits_for_nothing_more() -> None:
    requesters, requester = Requesters(), Requester()
    requester.ended(is_written=True)
    requester.join(requesters, "it")
    requester.expect_back()
    assert "it" not in requesters


async def test_a_client_that_has_fetched_its_result_is_not_waited_for() -> None:
    """The same request again, while it is still being noted that the result was fetched."""
    requesters, requester, noted = Requesters(), Requester(), asyncio.Event()

    async def note() -> None:
        await noted.wait()

    requester.join(requesters, "it")
    assert DepartureCheck(requesters).request_wait("it")
    requester.when_fetched(note)
    requester.ended(is_written=True)
    assert "it" in requesters
    departure = DepartureCheck(requesters)
    assert not departure.request_wait("it")
    assert not await departure.wait_if_requested()
    noted.set()
    await settled(requesters)


async def test_a_client_that_may_have_left_is_waited_for_once() -> None:
    requesters = Requesters()
    Requester().join(requesters, "it")
    departure = DepartureCheck(requesters)
    assert not await departure.wait_if_requested()
    assert departure.request_wait("it")
    assert await departure.wait_if_requested()
    assert not departure.request_wait("it")
