"""How far a log has come: results of appends for their writers, new entries for followers.

Backends call this on the event loop's thread when a commit has ended.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TypeVar

from session_server.log.protocol import (
    CLOSED,
    Batch,
    Entry,
    FailedError,
    Log,
    OnAppended,
    RefusedBecause,
)
from session_server.schemas.wire import Seq

PAGE = 1_000
"""Entries that a follower gets at once. There is no queue: a slow follower reads from the log."""

T = TypeVar("T")


def settle(loop: asyncio.AbstractEventLoop, settled: Callable[[T], None], result: T) -> None:
    """Calls a writer with what became of its append; an exception there does not affect others."""
    try:
        settled(result)
    except Exception as error:  # noqa: BLE001  # any error is the callback's own
        context = {"message": "a callback of an append failed", "exception": error}
        loop.call_exception_handler(context)


def refuse_closed(
    loop: asyncio.AbstractEventLoop, batches: Sequence[Batch], settled: OnAppended
) -> None:
    """For what is appended to a closed log: it is told of that later, as of any result."""
    loop.call_soon(settle, loop, settled, [(batch, CLOSED) for batch in batches])


class Progress:
    """The last durable seq; followers wait here for the next."""

    def __init__(self, last_seq: Seq) -> None:
        self.last_seq = last_seq
        self.is_over = False
        self._moved: asyncio.Event | None = None
        """Made by the first who waits: most hosts have no followers."""

    def reach(self, seq: Seq) -> None:
        if seq > self.last_seq:
            self.last_seq = seq
            self._wake()

    def end(self) -> None:
        self.is_over = True
        self._wake()

    async def beyond(self, seq: Seq) -> bool:
        """Waits for a higher seq; `False` when the log was closed."""
        while self.last_seq <= seq and not self.is_over:
            self._moved = self._moved or asyncio.Event()
            await self._moved.wait()
        return not self.is_over

    def _wake(self) -> None:
        if self._moved is not None:
            self._moved.set()
            self._moved = None


async def follow(log: Log, progress: Progress, after: Seq) -> AsyncIterator[Sequence[Entry]]:
    """New entries in order, page by page, until the log is closed."""
    while not progress.is_over:
        # All that was durable before this read was found by it, or has been trimmed.
        reached = progress.last_seq
        try:
            entries = await log.read(after=after, limit=PAGE)
        except FailedError as error:
            if error.because is RefusedBecause.CLOSED:
                return
            raise
        if entries:
            yield entries
            after = entries[-1].seq
        else:
            after = max(after, reached)
            await progress.beyond(after)
