"""Logs that are slow, full, forgetful or dead, around one that is not."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Collection, Sequence
from random import Random

from session_server.log import (
    AppendResult,
    Batch,
    Durable,
    Entry,
    Log,
    Refused,
    RefusedBecause,
    StoredSnapshot,
    Unknown,
)
from session_server.log.protocol import CLOSED
from session_server.schemas.wire import Millis, Seq, Uri
from tests.ahp.client import SESSION
from tests.log.one_by_one import OneByOne, OneByOneLog, SettledOne, append_one

FULL = Refused(RefusedBecause.FULL, "the disk is full")
NO_WORD = Unknown("no acknowledgement")


class SlowLog(OneByOne):
    """Holds batches back until they are released; a crash loses those that still wait.

    What else is asked of it takes effect after what was appended before, as with any log.

    `history` keeps every entry that ever became durable, beyond any trimming and any crash.
    `trouble` is how often a batch is refused, or its fate is unknown.
    """

    kinds: tuple[str, ...] = ("full", "lost and unknown", "stored but unknown")

    def __init__(
        self, inner: Log, dice: Random, history: dict[Seq, Entry], trouble: float = 0.0
    ) -> None:
        self.inner = inner
        self.history = history
        self.trouble = trouble
        self.is_slow = True
        self.is_dead = False
        self.troubles = 0
        self.held: deque[tuple[Batch, SettledOne]] = deque()
        self._dice = dice
        self._under_way: set[Uri] = set()
        self._is_closed = False
        self._loop = asyncio.get_running_loop()

    @property
    def epoch(self) -> str:
        return self.inner.epoch

    @property
    def last_seq(self) -> Seq:
        return self.inner.last_seq

    def append_one(self, batch: Batch, settled: SettledOne) -> None:
        if self._is_closed:
            self._loop.call_soon(self._settle, settled, CLOSED)
            return
        is_new = batch.expected == 0  # and then its name may be an older one's
        assert is_new or batch.channel not in self._under_way, "a channel has one batch in flight"
        self._under_way.add(batch.channel)
        self.held.append((batch, self._arriving(batch, settled)))
        if not self.is_slow:
            self.release(len(self.held))

    def _arriving(self, batch: Batch, settled: SettledOne) -> SettledOne:
        def arrived(outcome: AppendResult) -> None:
            self._under_way.discard(batch.channel)
            settled(outcome)

        return arrived

    def release(self, number: int) -> None:
        for _ in range(min(number, len(self.held))):
            self._store(*self.held.popleft())

    def _store(self, batch: Batch, settled: SettledOne) -> None:
        if self._dice.random() >= self.trouble:
            append_one(self.inner, batch, lambda outcome: self._stored(batch, settled, outcome))
            return
        self.troubles += 1
        match self._dice.choice(self.kinds):
            case "full":
                self._loop.call_soon(self._settle, settled, FULL)
            case "lost and unknown":
                self._loop.call_soon(self._settle, settled, NO_WORD)
            case _:
                append_one(
                    self.inner,
                    batch,
                    lambda outcome: self._stored(batch, settled, outcome, NO_WORD),
                )

    def _stored(
        self,
        batch: Batch,
        settled: SettledOne,
        outcome: AppendResult,
        told: AppendResult | None = None,
    ) -> None:
        if isinstance(outcome, Durable):
            for seq, entry in zip(outcome.seqs, batch.entries, strict=True):
                self.history[seq] = Entry(seq, batch.channel, entry.id, entry.data)
        self._settle(settled, told or outcome)

    def _settle(self, settled: SettledOne, outcome: AppendResult) -> None:
        if not self.is_dead:
            settled(outcome)

    def crash(self) -> None:
        """Nothing that waits is written, and nobody is told any more."""
        self.is_dead = self._is_closed = True
        self.held.clear()

    async def flush(self) -> None:
        """Returns when everything that was appended before is settled."""
        self.release(len(self.held))
        await self.inner.find(())

    async def close(self) -> None:
        """The inner log stays open: whoever opened it looks into it afterwards."""
        if not self.is_dead:
            self._is_closed = True
            await self.flush()

    async def read(
        self, *, after: Seq, limit: int, channels: Collection[Uri] | None = None
    ) -> Sequence[Entry]:
        return await self.inner.read(after=after, limit=limit, channels=channels)

    async def read_uncovered(self, *, after: Seq, limit: int) -> Sequence[Entry]:
        return await self.inner.read_uncovered(after=after, limit=limit)

    async def find(self, ids: Collection[str]) -> dict[str, Seq]:
        return await self.inner.find(ids)

    def follow(self, after: Seq) -> AsyncIterator[Sequence[Entry]]:
        return self.inner.follow(after)

    async def save_snapshot(self, snapshot: StoredSnapshot) -> None:
        if not self.is_dead:
            self.release(len(self.held))
            await self.inner.save_snapshot(snapshot)

    async def snapshots(self, channels: Collection[Uri] | None = None) -> Sequence[StoredSnapshot]:
        if channels is not None:  # so that much can happen while a session is read
            for _ in range(self._dice.randrange(6)):
                await asyncio.sleep(0)
        return await self.inner.snapshots(channels)

    async def outlines(self) -> Sequence[StoredSnapshot]:
        return await self.inner.outlines()

    async def trim(self, channel: Uri, up_to: Seq, now: Millis = 0) -> None:
        if not self.is_dead:
            self.release(len(self.held))
            await self.inner.trim(channel, up_to, now)

    async def floors(self) -> dict[Uri, Seq]:
        return await self.inner.floors()

    async def drop(self, channel: Uri) -> Seq:
        if not self.is_dead:
            self.release(len(self.held))
            return await self.inner.drop(channel)
        return 0


class HastyLog(SlowLog):
    """A defect on purpose: says `Durable` before it is."""

    def append_one(self, batch: Batch, settled: SettledOne) -> None:
        waiting = sum(len(held.entries) for held, _ in self.held)
        first = self.inner.last_seq + waiting + 1
        promised = Durable(tuple(range(first, first + len(batch.entries))))
        self._under_way.clear()
        super().append_one(batch, lambda _: None)
        self._loop.call_soon(self._settle, settled, promised)


class TroubledLog(OneByOneLog):
    """A memory log whose next batches meet trouble: each item decides over one batch."""

    def __init__(self) -> None:
        super().__init__()
        self.trouble: list[str] = []
        self.held: list[tuple[Batch, SettledOne]] = []

    def append_one(self, batch: Batch, settled: SettledOne) -> None:
        if batch.channel != SESSION or not self.trouble:
            super().append_one(batch, settled)
            return
        match self.trouble.pop(0):
            case "hold":
                self.held.append((batch, settled))
            case "full":
                self._loop.call_soon(settled, FULL)
            case "stored but unknown":
                super().append_one(batch, lambda _: settled(NO_WORD))
            case "lost and unknown":
                self._loop.call_soon(settled, NO_WORD)
            case other:
                raise AssertionError(other)

    def release(self) -> None:
        for batch, settled in self.held:
            super().append_one(batch, settled)
        self.held.clear()
