"""An answer is handed over when its client took it whole, and is owed until then."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import uvicorn
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from session_server.calls.deliveries import Attendance, Delivery

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
        self.attendance = Attendance()
        self.handed_over = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with Delivery(scope, receive, send) as delivery:
            delivery.attend(self.attendance, "it")
            delivery.carry(self.count)
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


async def settled(attendance: Attendance) -> None:
    """Returns when nobody is there any more."""
    while "it" in attendance:  # noqa: ASYNC110  # it ends with the connection
        await asyncio.sleep(0.01)


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
            await settled(app.attendance)
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
                delivery.attend(self.attendance, "it")
                delivery.carry(self.count)
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
            await settled(app.attendance)
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
            await settled(app.attendance)
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
                delivery.attend(app.attendance, "it")
                delivery.carry(app.count)
                for body in (b"a sign of life", b"the result\n"):
                    await delivery.send({**PIECE, "body": body})

        answering = asyncio.ensure_future(answer())
        await begun.wait()
        answering.cancel()
        await asyncio.wait([answering])
        await settled(app.attendance)
        assert app.handed_over == 0

    asyncio.run(asyncio.wait_for(story(), SECONDS))


def test_whoever_takes_a_result_is_there_until_it_has_arrived() -> None:
    async def story() -> None:
        app = Answers(LARGE)
        async with listening(app) as port:
            reader, writer = await asking(port)
            app.go.set()
            await app.asked.wait()
            assert "it" in app.attendance
            await reader.read()
            await settled(app.attendance)
            gone(writer)
        assert app.handed_over == 1

    asyncio.run(asyncio.wait_for(story(), SECONDS))


def test_a_client_that_leaves_is_no_longer_there() -> None:
    async def story() -> None:
        app = Waits(0)
        async with listening(app) as port:
            _, writer = await asking(port)
            await app.asked.wait()
            assert "it" in app.attendance
            gone(writer)
            await settled(app.attendance)
            app.go.set()
            await app.over.wait()
        assert app.handed_over == 0

    class Waits(Answers):
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            async with Delivery(scope, receive, send) as delivery:
                delivery.attend(self.attendance, "it")
                self.asked.set()
                while (await delivery.receive())["type"] != "http.disconnect":
                    pass
                await self.go.wait()
                delivery.carry(self.count)  # too late
            self.over.set()

    asyncio.run(asyncio.wait_for(story(), SECONDS))


async def never(*_: object) -> Message:
    await asyncio.Event().wait()
    raise AssertionError


async def nowhere(message: Message) -> None:
    del message


def test_a_client_that_was_handed_a_state_counts_as_there_for_a_while() -> None:
    async def story() -> None:
        attendance = Attendance()
        for _ in range(2):
            async with Delivery({}, never, nowhere) as delivery:
                delivery.attend(attendance, "it")
                delivery.expect_back()
                await delivery.send({"type": "http.response.body", "body": b"a state"})
            await attendance.noticed()
            assert "it" in attendance
        await attendance.expect("it", 0.01)
        await settled(attendance)

    asyncio.run(asyncio.wait_for(story(), SECONDS))


def test_a_client_that_is_back_before_its_state_has_arrived_is_not_expected_twice() -> None:
    async def story() -> None:
        attendance = Attendance()
        async with Delivery({}, never, nowhere) as second:
            async with Delivery({}, never, nowhere) as first:
                first.attend(attendance, "it")
                first.expect_back()
                second.attend(attendance, "it")
                await first.send({"type": "http.response.body", "body": b"a state"})
            await attendance.noticed()
        assert "it" not in attendance

    asyncio.run(asyncio.wait_for(story(), SECONDS))


def test_whoever_cancels_its_request_is_no_longer_there() -> None:
    async def story() -> None:
        attendance = Attendance()
        async with Delivery({}, never, nowhere) as delivery:
            delivery.attend(attendance, "it")
            with pytest.raises(asyncio.CancelledError), delivery.attending():
                raise asyncio.CancelledError
            assert "it" not in attendance

    asyncio.run(story())


def test_an_answer_that_has_ended_carries_nothing() -> None:
    async def story() -> None:
        attendance = Attendance()
        async with Delivery({}, never, nowhere) as delivery:
            pass
        delivery.attend(attendance, "it")
        delivery.expect_back()
        assert "it" not in attendance

    asyncio.run(story())
