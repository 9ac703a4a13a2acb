"""Channels that append to a log while its server is harmed, and a check of what is stored then."""

import asyncio
from collections import Counter

from session_server.log import Batch, Durable, Log, Refused, RefusedBecause, Unknown
from session_server.log.protocol import FailedError
from tests.log.logs import BOUND, batch, everything, settled
from tests.waiting import PAUSE, until

PARTS = 3
"""Entries in a batch of `Load`."""


async def found(log: Log, wanted: Batch) -> dict[str, int]:
    """As the host does it: asked until it can be told."""
    async with asyncio.timeout(BOUND * 4):
        while True:
            try:
                return await log.find([entry.id for entry in wanted.entries])
            except FailedError:
                await asyncio.sleep(PAUSE)


async def writable(log: Log) -> None:
    """Until something can be written and read again; each may have a connection of its own."""
    await found(log, batch("probe", 0, b"x"))
    async with asyncio.timeout(BOUND * 4):
        while True:
            try:
                await log.read(after=0, limit=1)
            except FailedError:
                await asyncio.sleep(PAUSE)
            else:
                return


class Load:
    """Channels that append, as the host does: what is unknown is found out, then it goes on."""

    def __init__(self, log: Log, channels: int = 12) -> None:
        self.log = log
        self.durable: dict[str, int] = {}
        self.attempted: set[str] = set()
        self.kinds: Counter[str] = Counter()
        self.is_over = False
        self._tasks = [asyncio.create_task(self._write(f"c{n}")) for n in range(channels)]

    async def _write(self, channel: str) -> None:
        last = number = 0
        while not self.is_over:
            wanted = batch(channel, last, *[b"%s %d" % (channel.encode(), number)] * PARTS)
            ids = [entry.id for entry in wanted.entries]
            self.attempted.update(ids)
            outcome = await settled(self.log, wanted)
            self.kinds[type(outcome).__name__] += 1
            if isinstance(outcome, Unknown):
                places = await found(self.log, wanted)
                assert len(places) in (0, PARTS), "a batch was stored by halves"
                self.kinds["stored after all" if places else "not stored"] += 1
                outcome = Durable(tuple(places[id_] for id_ in ids)) if places else outcome
            if isinstance(outcome, Durable):
                self.durable |= zip(ids, outcome.seqs, strict=True)
                last = outcome.seqs[-1]
                number += 1
            elif isinstance(outcome, Refused):
                assert outcome.because is not RefusedBecause.CONFLICT, outcome
                await asyncio.sleep(PAUSE)

    async def written(self, more: int) -> None:
        """Until so many entries more are durable."""
        target = len(self.durable) + more
        await until(lambda: len(self.durable) >= target or any(t.done() for t in self._tasks))

    async def ended(self) -> None:
        self.is_over = True
        await asyncio.wait_for(asyncio.gather(*self._tasks), BOUND * 8)

    async def check(self, log: Log) -> None:
        """What is stored is exactly what was reported, once, whole and in its place."""
        entries = await everything(log)
        assert max(Counter(entry.id for entry in entries).values()) == 1
        assert {entry.id: entry.seq for entry in entries} == self.durable
        for channel in {entry.channel for entry in entries}:
            datas = [entry.data for entry in entries if entry.channel == channel]
            numbers = [int(data.split()[1]) for data in datas]
            assert numbers == [n for n in range(len(datas) // PARTS) for _ in range(PARTS)]
