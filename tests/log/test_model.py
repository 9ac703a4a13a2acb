"""Any sequence of requests leaves a log as it leaves a simple model of one."""

import asyncio
import tempfile
from operator import attrgetter
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from session_server.log import AppendResult, Batch, Durable, Entry, Log, StoredSnapshot
from session_server.log.sqlite import store
from tests.log.logs import (
    Backend,
    Memory,
    Nats,
    SqliteNormal,
    asked,
    entries,
    everything,
    following,
)

CHANNELS = [f"ahp-session:/{name}" for name in "abcde"]
NOWHERE = 10**12
LIFETIME = 20
BOUND = 60
QUICK = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""What a log holds does not depend on the disk, and this one needs no time to sync."""

channels = st.sampled_from(CHANNELS)
shares = st.floats(0, 1)
appends = st.tuples(channels, st.integers(0, 3), st.sampled_from([True, True, True, False]))
requests = st.one_of(
    st.tuples(st.just("burst"), st.lists(appends, min_size=1, max_size=12)),
    st.tuples(st.just("burst"), st.lists(appends, min_size=1, max_size=12)),
    st.tuples(st.just("snapshot"), channels, shares),
    st.tuples(st.just("trim"), channels, shares),
    st.tuples(st.just("drop"), channels),
    st.tuples(st.just("reopen")),
    st.tuples(st.just("read"), st.sets(channels), shares, st.integers(0, 9)),
)


class Model:
    """What a log should hold, in the plainest form, beside the log that is compared to it."""

    def __init__(self, backend: Backend, log: Log) -> None:
        self.backend = backend
        self.log = log
        self.entries: list[Entry] = []
        self.lasts: dict[str, int] = {}
        self.snapshots: dict[str, StoredSnapshot] = {}
        self.floors: dict[str, int] = {}
        self.last_seq = log.epoch.first
        self.lasting: dict[int, int] = {}
        self.now = 0

    async def burst(self, wanted: list[tuple[str, int, bool]]) -> None:
        """Batches that are all on their way before the first is settled; some entries last."""
        flying = []
        for channel, size, is_right in wanted:
            expected = self.lasts.get(channel, 0) if is_right else NOWHERE
            self.now += 1
            new = entries(*[b"%d" % n for n in range(size)])
            lasting = tuple(
                replace(entry, lasts_until=self.now + LIFETIME) if n % 2 else entry
                for n, entry in enumerate(new)
            )
            one = Batch(channel, expected, lasting)
            flying.append((one, asked(self.log, one)))
        before = self.last_seq
        for one, outcome in flying:
            self.settle(one, await outcome)
        new = [entry for entry in self.entries if entry.seq > before]
        self.entries.sort(key=attrgetter("seq"))
        assert len({entry.seq for entry in new}) == len(new)

    def settle(self, one: Batch, outcome: AppendResult) -> None:
        is_right = one.expected == self.lasts.get(one.channel, 0)
        assert isinstance(outcome, Durable) == is_right, outcome
        if isinstance(outcome, Durable):
            for seq, entry in zip(outcome.seqs, one.entries, strict=True):
                self.entries.append(Entry(seq, one.channel, entry.id, entry.data))
                self.lasting[seq] = entry.lasts_until
                self.lasts[one.channel] = seq
                self.last_seq = max(self.last_seq, seq)

    def position(self, channel: str, share: float) -> int:
        return round(self.lasts.get(channel, 0) * share)

    async def snapshot(self, channel: str, share: float) -> None:
        data = repr(share).encode()
        made = StoredSnapshot(channel, self.position(channel, share), data, outline=data[:3])
        await self.log.save_snapshot(made)
        if channel not in self.snapshots or self.snapshots[channel].seq <= made.seq:
            self.snapshots[channel] = made

    async def trim(self, channel: str, share: float) -> None:
        up_to = self.position(channel, share)
        await self.log.trim(channel, up_to, self.now)
        covered = self.snapshots[channel].seq if channel in self.snapshots else 0
        floor = self.floors.get(channel, 0)
        gone = [
            entry
            for entry in self.entries
            if entry.channel == channel
            and entry.seq <= min(max(up_to, floor), covered)
            and self.lasting[entry.seq] <= self.now
        ]
        if gone:
            self.floors[channel] = max(floor, gone[-1].seq)
        self.entries = [entry for entry in self.entries if entry not in gone]

    async def drop(self, channel: str) -> None:
        await self.log.drop(channel)
        self.entries = [entry for entry in self.entries if entry.channel != channel]
        for known in (self.lasts, self.snapshots, self.floors):
            known.pop(channel, None)

    async def reopen(self) -> None:
        self.log = await self.backend.reopened(self.log)

    async def read(self, wanted: set[str], share: float, limit: int) -> None:
        first = self.log.epoch.first
        after = first + round((self.last_seq - first) * share)
        found = await self.log.read(after=after, limit=limit, channels=wanted)
        fitting = [e for e in self.entries if e.channel in wanted and e.seq > after]
        assert found == fitting[:limit]

    async def compare(self) -> None:
        assert await everything(self.log, piece=5) == self.entries
        assert await following(self.log, 0, len(self.entries)) == self.entries
        covered = {channel: snapshot.seq for channel, snapshot in self.snapshots.items()}
        uncovered = [e for e in self.entries if e.seq > covered.get(e.channel, 0)]
        assert await self.log.read_uncovered(after=0, limit=len(self.entries)) == uncovered
        assert await self.log.read_uncovered(after=0, limit=2) == uncovered[:2]
        assert sorted(await self.log.snapshots()) == sorted(self.snapshots.values())
        outlines = [stored._replace(data=b"") for stored in self.snapshots.values()]
        assert sorted(await self.log.outlines()) == sorted(outlines)
        assert await self.log.floors() == self.floors
        assert self.log.last_seq == self.last_seq
        ids = {entry.id: entry.seq for entry in self.entries}
        assert await self.log.find([*ids, "never"]) == ids


async def lived(backend: Backend, life: list[tuple[Any, ...]]) -> None:
    model = Model(backend, await backend.open())
    try:
        for name, *arguments in life:
            await getattr(model, name)(*arguments)
        await model.compare()
        await model.reopen()
        await model.compare()
    finally:
        await model.log.close()


@pytest.mark.proves("design.log.contract", "design.log.all-or-nothing", "design.log.read")
@pytest.mark.parametrize(
    ("kind", "unplaced"),
    [
        (Memory, 0),
        (SqliteNormal, 5),
        (SqliteNormal, 999),
        pytest.param(Nats, 0, marks=pytest.mark.slow),
    ],
)
@given(life=st.lists(requests, max_size=30))
def test_a_log_is_what_its_requests_make_of_it(
    kind: type[Backend], unplaced: int, life: list[Any]
) -> None:
    with (
        tempfile.TemporaryDirectory(dir=QUICK) as folder,
        patch.object(store, "UNPLACED", unplaced),
    ):
        asyncio.run(asyncio.wait_for(lived(kind(Path(folder)), life), BOUND))
