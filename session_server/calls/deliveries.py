"""Answers on their way: what is done once one was handed over, and not before.

Handed over is what a connection that was open to the last took whole. What became of it behind that
connection, no server can know.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Generator, MutableMapping
from functools import partial
from types import TracebackType
from typing import Any, Self

from starlette.types import Message, Receive, Send

_DELIVERY = "session_server.delivery"
TURNS = 3
"""Of the event loop: it hears of a connection that has just ended, and tells us."""

RETURN_SECONDS = 5.0
"""How long a client that was handed a state counts as there: it comes back by itself, at once."""

Work = Callable[[], Awaitable[None]]


class Attendance:
    """Which calls and questions somebody is there for, by id.

    There is a request whose connection is open, an answer that is on its way, and for a while a
    client that was handed a state. Two requests that are both there are never the same one; a
    request joins what nobody is there for any more.
    """

    def __init__(self) -> None:
        self._there: dict[str, set[Delivery]] = {}
        self._expected: dict[str, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def __contains__(self, name: object) -> bool:
        return name in self._there or name in self._expected

    async def noticed(self) -> None:
        """Returns when connections that have just ended are known to be over."""
        for _ in range(2 * TURNS):
            await asyncio.sleep(0)

    def enter(self, name: str, delivery: "Delivery") -> None:
        self._forget(name)
        self._there.setdefault(name, set()).add(delivery)

    def leave(self, name: str, delivery: "Delivery") -> None:
        there = self._there.get(name, set())
        there.discard(delivery)
        if not there:
            self._there.pop(name, None)

    async def expect(self, name: str, seconds: float = RETURN_SECONDS) -> None:
        """Its client was handed a state with which it comes back."""
        if len(self._there.get(name, ())) > 1:
            return  # it is back already
        self._forget(name)
        loop = asyncio.get_running_loop()
        self._expected[name] = loop.call_later(seconds, self._forget, name)

    def _forget(self, name: str) -> None:
        timer = self._expected.pop(name, None)
        if timer is not None:
            timer.cancel()

    def conclude(self, name: str, delivery: "Delivery", work: Work) -> None:
        """Whoever took the answer stays there until this is done, whatever ends its request."""

        async def done() -> None:
            try:
                await work()
            finally:
                self.leave(name, delivery)

        task = asyncio.get_running_loop().create_task(done())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class Delivery:
    """One HTTP response. If its client leaves before the end, nothing has arrived.

    Servers take what is sent to a client that has left and say nothing, so it has to be asked for.
    """

    def __init__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        scope[_DELIVERY] = self
        self._receive = receive
        self._send = send
        self._attended: tuple[Attendance, str] | None = None
        self._work: Work | None = None
        self._waiting = contextlib.ExitStack()
        self._has_left = False
        self._was_there = False
        self._is_over = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over = True
        self._conclude()

    def attend(self, attendance: Attendance, name: str) -> None:
        """Its client is there for this, and for nothing else, as long as it can be answered."""
        self.leave()
        if not self._is_over and not self._has_left:
            self._attended = (attendance, name)
            attendance.enter(name, self)

    def leave(self) -> None:
        if self._attended is not None:
            attendance, name = self._attended
            attendance.leave(name, self)
        self._attended = self._work = None
        self._waiting.close()

    @contextlib.contextmanager
    def while_there(self, waiting: contextlib.AbstractContextManager[None]) -> Generator[None]:
        """Enters this for the block, or for as long as its client is there, if that is less."""
        with self._waiting as stack:
            if self._attended is not None:
                stack.enter_context(waiting)
            yield

    @contextlib.contextmanager
    def attending(self) -> Generator[None]:
        """Who cancels its request, or gets an error, is no longer there.

        Unless the error is what the call came to: then it is on its way, as a result would be.
        """
        try:
            yield
        except Exception:
            if self._work is None:
                self.leave()
            raise
        except BaseException:
            self.leave()
            raise

    def carry(self, work: Work) -> None:
        """What is done once the answer with what it attends has arrived; else it is still owed."""
        if self._attended is not None:
            self._work = work

    def expect_back(self, seconds: float = RETURN_SECONDS) -> None:
        """The answer is a state, with which its client comes back."""
        if self._attended is not None:
            attendance, name = self._attended
            self.carry(partial(attendance.expect, name, seconds))

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self._has_left = True
            if self._work is None:
                self.leave()
        return message

    async def send(self, message: Message) -> None:
        body = message.get("body", b"")
        if self._work is None or not body:
            await self._send(message)
        else:
            self._was_there = False  # a piece that is broken off has not arrived
            self._was_there = await self._took(message, body)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self._conclude()

    def _conclude(self) -> None:
        """Who had the last piece has all of it, however the answer ends after that."""
        if self._attended is not None and self._work is not None and self._was_there:
            attendance, name = self._attended
            attendance.conclude(name, self, self._work)
            self._attended = self._work = None
        else:
            self.leave()

    async def _took(self, piece: Message, body: bytes) -> bool:
        """Sends a piece; whether the client was there until only its end was left.

        Who has the whole answer may leave at once, so the last byte of it is what is held back.
        """
        more = {"type": "http.response.body", "more_body": True}
        await self._send({**more, "body": body[:-1]})
        # Nothing more to say, but a server says it only when what was said before has gone out.
        await self._send({**more, "body": b""})
        is_there = not await self._is_gone()
        await self._send({**piece, "body": body[-1:]})
        return is_there

    async def _is_gone(self) -> bool:
        for _ in range(TURNS):
            await asyncio.sleep(0)
        listening = asyncio.ensure_future(self.receive())
        try:
            for _ in range(TURNS):
                await asyncio.sleep(0)
        finally:
            listening.cancel()
        return self._has_left


def delivery_in(scope: MutableMapping[str, Any]) -> Delivery:
    found: Delivery = scope[_DELIVERY]
    return found
