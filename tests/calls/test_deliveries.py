"""An answer is handed over when its client took it whole, and is owed until then."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import uvicorn
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from session_server.calls.deliveries import Delivery, Handover, Handovers

LARGE = 16 * 1_048_576
"""More than the kernel takes for a client that does not read."""

SECONDS = 20
PIECE = {"type": "http.response.body", "more_body": True}


class Answers:
    """An application that answers with this many bytes, once it is told to."""

    def __init__(self, size: int) -> None:
        self.body = bytes(size)
        self.asked = asyncio.Event()
        self.go = asyncio.Event()
        self.over = asyncio.Event()
        self.handovers = Handovers()
        self.handed_over = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with Delivery(scope, receive, send) as delivery:
            delivery.carry(Handover(self.handovers, "it", self.count))
            self.asked.set()
            await self.go.wait()
            await Response(self.body)(scope, delivery.receive, delivery.send)
        self.over.set()

    async def count(self) -> None:
        self.handed_over += 1


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


def gone(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


@pytest.mark.parametrize("size", [10, LARGE])
def test_what_was_read_to_the_end_is_handed_over(size: int) -> None:
    async def story() -> None:
        app = Answers(size)
        async with listening(app) as port:
            reader, writer = await asking(port)
            app.go.set()
            answer = await reader.read()
            await app.over.wait()
            gone(writer)
        assert len(answer) > size
        assert app.handed_over == 1

    asyncio.run(asyncio.wait_for(story(), SECONDS))


@pytest.mark.parametrize("size", [1, 10, LARGE])
def test_who_has_the_whole_answer_may_leave_at_once(size: int) -> None:
    """As curl does: nothing is left to say on this connection."""

    async def story() -> None:
        app = Answers(size)
        async with listening(app) as port:
            reader, writer = await asking(port)
            app.go.set()
            await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(size)
            gone(writer)
            await app.over.wait()
            await app.handovers.settled("it", SECONDS)
        assert app.handed_over == 1

    asyncio.run(asyncio.wait_for(story(), SECONDS))


def test_who_has_the_event_of_a_stream_may_leave_before_the_stream_ends() -> None:
    """As clients of MCP do: the result is an event, and the end of the stream says nothing more."""

    class Streams(Answers):
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            async def events() -> AsyncGenerator[bytes]:
                yield b"data: it\r\n\r\n"
                await self.go.wait()

            async with Delivery(scope, receive, send) as delivery:
                delivery.carry(Handover(self.handovers, "it", self.count))
                await StreamingResponse(events())(scope, delivery.receive, delivery.send)
            self.over.set()

    async def story() -> None:
        app = Streams(0)
        async with listening(app) as port:
            reader, writer = await asking(port)
            await reader.readuntil(b"1\r\n\n\r\n")  # the chunk with the event's last byte
            gone(writer)
            app.go.set()
            await app.over.wait()
            await app.handovers.settled("it", SECONDS)
        assert app.handed_over == 1

    asyncio.run(asyncio.wait_for(story(), SECONDS))


@pytest.mark.parametrize("size", [10, LARGE])
def test_a_client_that_leaves_just_before_the_answer_is_still_owed_it(size: int) -> None:
    """The server hears of both in the same moment."""

    async def story() -> None:
        app = Answers(size)
        async with listening(app) as port:
            _, writer = await asking(port)
            await app.asked.wait()
            gone(writer)
            app.go.set()
            await app.handovers.settled("it", SECONDS)
        assert app.handed_over == 0

    asyncio.run(asyncio.wait_for(story(), SECONDS))


def test_a_client_that_leaves_in_the_middle_of_the_answer_is_still_owed_it() -> None:
    async def story() -> None:
        app = Answers(LARGE)
        async with listening(app) as port:
            reader, writer = await asking(port)
            app.go.set()
            await reader.readexactly(LARGE // 8)
            assert not app.over.is_set()
            gone(writer)
            await app.over.wait()
        assert app.handed_over == 0

    asyncio.run(asyncio.wait_for(story(), SECONDS))


def test_a_piece_that_is_broken_off_is_owed_whatever_arrived_before_it() -> None:
    """Signs of life come on the same stream as the result, and may come just before it."""

    async def story() -> None:
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
            async with Delivery({}, receive, send) as delivery:
                delivery.carry(Handover(app.handovers, "it", app.count))
                for body in (b"a sign of life", b"the result\n"):
                    await delivery.send({**PIECE, "body": body})

        answering = asyncio.ensure_future(answer())
        await begun.wait()
        answering.cancel()
        await asyncio.wait([answering])
        await app.handovers.settled("it", SECONDS)
        assert app.handed_over == 0

    asyncio.run(asyncio.wait_for(story(), SECONDS))


def test_whoever_asks_while_a_result_is_on_its_way_waits_to_see_whether_it_arrives() -> None:
    async def story() -> None:
        app = Answers(LARGE)
        async with listening(app) as port:
            reader, writer = await asking(port)
            app.go.set()
            await app.asked.wait()
            began = asyncio.get_running_loop().time()
            await app.handovers.settled("it", 0.05)  # it does not wait for ever
            assert asyncio.get_running_loop().time() - began >= 0.05
            assert "it" in app.handovers
            settled = asyncio.ensure_future(app.handovers.settled("it", SECONDS))
            await reader.read()
            await settled
            gone(writer)
        assert app.handed_over == 1
        assert "it" not in app.handovers

    asyncio.run(asyncio.wait_for(story(), SECONDS))


def test_an_answer_that_has_ended_carries_nothing() -> None:
    async def story() -> None:
        handovers = Handovers()

        async def never(*_: object) -> None:
            raise AssertionError

        async with Delivery({}, never, never) as delivery:  # type: ignore[arg-type]
            pass
        delivery.carry(Handover(handovers, "it", never))
        assert "it" not in handovers

    asyncio.run(story())
