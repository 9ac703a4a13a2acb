"""Answers on their way: what is done once one was handed over, and not before.

Handed over is what a connection that was open to the last took whole. What became of it behind that
connection, no server can know.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from types import TracebackType
from typing import Any, NamedTuple, Self

from starlette.types import Message, Receive, Send

_DELIVERY = "session_server.delivery"
TURNS = 3
"""Of the event loop: it hears of a connection that has just ended, and tells us."""

SETTLING_SECONDS = 5.0
"""How long a request waits to learn whether the result before it has arrived."""

Work = Callable[[], Awaitable[None]]


class Handovers:
    """The results that are on their way just now, by whatever names them.

    Whoever has one may ask for the next before it is written down that the first has arrived.
    """

    def __init__(self) -> None:
        self._open: Counter[str] = Counter()
        self._moved = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def __contains__(self, name: str) -> bool:
        return self._open[name] > 0

    def begin(self, name: str) -> None:
        self._open[name] += 1

    def end(self, name: str) -> None:
        self._open[name] -= 1
        self._open += Counter()  # forgets those that are zero
        self._moved.set()

    def arrived(self, name: str, work: Work) -> None:
        """It ends when this is done, whatever becomes of the answer's own task."""

        async def done() -> None:
            try:
                await work()
            finally:
                self.end(name)

        task = asyncio.get_running_loop().create_task(done())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settled(self, name: str, seconds: float = SETTLING_SECONDS) -> None:
        """Returns when it has arrived, or was lost; or when its client takes too long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while name in self:
                    self._moved.clear()
                    await self._moved.wait()


class Handover(NamedTuple):
    """One result in one answer, and what is done once it has arrived."""

    handovers: Handovers
    name: str
    work: Work


class Delivery:
    """One HTTP response. If its client leaves before the end, nothing has arrived.

    Servers take what is sent to a client that has left and say nothing, so it has to be asked for.
    """

    def __init__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        scope[_DELIVERY] = self
        self._receive = receive
        self._send = send
        self._carried: list[Handover] = []
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

    def carry(self, handover: Handover) -> None:
        """With this answer; one that has already ended carries nothing."""
        if not self._is_over:
            handover.handovers.begin(handover.name)
            self._carried.append(handover)

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self._has_left = True
        return message

    async def send(self, message: Message) -> None:
        body = message.get("body", b"")
        if not self._carried or not body:
            await self._send(message)
        else:
            self._was_there = False  # a piece that is broken off has not arrived
            self._was_there = await self._took(message, body)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self._conclude()

    def _conclude(self) -> None:
        """Who had the last piece has all of it, however the answer ends after that."""
        carried, self._carried = self._carried, []
        for handovers, name, work in carried:
            if self._was_there:
                handovers.arrived(name, work)
            else:
                handovers.end(name)

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
