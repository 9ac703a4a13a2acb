"""Ways to wait for changes: an iterator with a bounded memory, and a condition."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from session_server.client.errors import ClientError, Closed
from session_server.client.mirror import Cause, Change, Mirror

S = TypeVar("S")
T = TypeVar("T")

CHANGES_KEPT = 256


class Changes(Generic[S]):
    """The changes of a channel from now on, one by one.

    It keeps up to `limit` changes that were not read yet. One more, and they all become a single
    one of cause `SEVERAL`, from the oldest state to the newest: a slow reader skips what happened
    in between, but never misses where it led. It ends when the session is left, raises when the
    session or the connection is gone for good, and stops listening when it is let go of.
    """

    def __init__(self, mirror: Mirror[S], limit: int = CHANGES_KEPT) -> None:
        self._limit = limit
        self._unread: deque[Change[S]] = deque()
        self._error = mirror.error
        self._wake = asyncio.Event()
        mirror.observe(self)

    def changed(self, change: Change[S]) -> None:
        if len(self._unread) >= self._limit:
            oldest = self._unread[0]
            self._unread.clear()
            change = Change(Cause.SEVERAL, oldest.before, change.after)
        self._unread.append(change)
        self._wake.set()

    def ended(self, error: ClientError) -> None:
        self._error = error
        self._wake.set()

    def __aiter__(self) -> "Changes[S]":
        return self

    async def __anext__(self) -> Change[S]:
        while not self._unread:
            if isinstance(self._error, Closed):
                raise StopAsyncIteration
            if self._error is not None:
                raise self._error
            self._wake.clear()
            await self._wake.wait()
        return self._unread.popleft()


class Condition(Generic[S, T]):
    """Waits until the confirmed state gives what is looked for, however briefly it does."""

    def __init__(self, mirror: Mirror[S], look: Callable[[S], T | None]) -> None:
        self._mirror = mirror
        self._look = look
        self._found: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def changed(self, change: Change[S]) -> None:  # noqa: ARG002
        self._check()

    def _check(self) -> None:
        if self._found.done():
            return
        try:
            found = self._look(self._mirror.confirmed)
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to who waits
            self._found.set_exception(error)
            return
        if found is not None:
            self._found.set_result(found)

    def ended(self, error: ClientError) -> None:
        if not self._found.done():
            self._found.set_exception(error)

    async def met(self, timeout: float | None) -> T:  # noqa: ASYNC109 - as asyncio.wait_for has it
        self._check()
        if self._mirror.error is not None:
            self.ended(self._mirror.error)
        self._mirror.observe(self)
        async with asyncio.timeout(timeout):
            return await self._found
