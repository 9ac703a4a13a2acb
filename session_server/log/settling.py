"""Telling writers what became of their batches, and followers that there is more to read.

All of it happens on the event loop's thread; the backends call it when a commit is over.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import TypeAlias

from session_server.log.protocol import AppendResult, Entry, FailedError, Log, RefusedBecause
from session_server.schemas.wire import Seq

PIECE = 1_000
"""Entries that a follower gets at once. No queue: what it is slow to read, the log keeps."""

Settled: TypeAlias = Callable[[AppendResult], None]


def settle(
    loop: asyncio.AbstractEventLoop, settlements: Iterable[tuple[Settled, AppendResult]]
) -> None:
    """Tells each writer; one that fails to listen keeps no other from being told."""
    for settled, outcome in settlements:
        try:
            settled(outcome)
        except Exception as error:  # noqa: BLE001  # whatever it is, it is the listener's
            context = {"message": "a listener of the log failed", "exception": error}
            loop.call_exception_handler(context)


class Progress:
    """How far the log has come, and who waits for it to come further."""

    def __init__(self, last_seq: Seq) -> None:
        self.last_seq = last_seq
        self.is_over = False
        self._moved = asyncio.Event()

    def reach(self, seq: Seq) -> None:
        if seq > self.last_seq:
            self.last_seq = seq
            self._wake()

    def end(self) -> None:
        self.is_over = True
        self._wake()

    async def beyond(self, seq: Seq) -> bool:
        """Waits for a higher seq; `False` when none will come any more."""
        while self.last_seq <= seq and not self.is_over:
            await self._moved.wait()
        return not self.is_over

    def _wake(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()


async def follow(log: Log, progress: Progress, after: Seq) -> AsyncIterator[Sequence[Entry]]:
    """Reads on and on; ends with the log."""
    while not progress.is_over:
        # Of what was durable before the read, nothing can turn up later: it was found or forgotten.
        reached = progress.last_seq
        try:
            entries = await log.read(after=after, limit=PIECE)
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
