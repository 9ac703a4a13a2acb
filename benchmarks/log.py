"""What the log takes: one batch alone, and many channels that each wait for their last batch.

Next to it, what syncing one page takes on the same disk: no append with full sync is quicker.
PostgreSQL runs in a temporary cluster on the same machine, as delivered but for its port; `nodes`
are connections with logs of their own that write at once.
"""

import asyncio
import os
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import NamedTuple, TypeAlias
from uuid import uuid4

from benchmarks.load import scratch
from benchmarks.results import Results
from session_server.log import AppendResult, Batch, Durable, NewEntry, Sync
from session_server.log.postgres import PostgresLog
from session_server.log.sqlite import SqliteLog
from tests.postgres import Cluster, programs

LOG = "log"
"""The table that is filled."""
CHANNELS = 64
SECONDS = 2.0
ALONE = 300
ROUNDS = 3
DATA = b"x" * 200
NODES = (1, 2, 3)

AnyLog: TypeAlias = SqliteLog | PostgresLog
Opening: TypeAlias = Callable[[], Awaitable[AnyLog]]


class Measured(NamedTuple):
    """Seconds of an append alone, and of many."""

    alone: list[float]
    per_second: float
    per_commit: float


def ordered() -> Iterator[str]:
    """Ids as a host should make them: each follows the last, so that an index grows at its end."""
    return (f"{number:016x}{os.getpid():08x}" for number in count(1))


def sync_alone(folder: Path) -> list[float]:
    """Seconds that the disk needs for a page that is already there."""
    times: list[float] = []
    with (folder / "probe").open("wb", buffering=0) as file:
        for _ in range(ALONE):
            file.seek(0)
            started = perf_counter()
            file.write(bytes(4096))
            os.fdatasync(file.fileno())
            times.append(perf_counter() - started)
    return times


async def append_alone(log: AnyLog, channel: str, ids: Iterator[str]) -> list[float]:
    times: list[float] = []
    last, loop = 0, asyncio.get_running_loop()
    for _ in range(ALONE):
        outcome: asyncio.Future[Sequence[tuple[Batch, AppendResult]]] = loop.create_future()
        started = perf_counter()
        batch = Batch(channel, last, (NewEntry(next(ids), DATA),))
        log.append((batch,), outcome.set_result)
        ((_, durable),) = await outcome
        times.append(perf_counter() - started)
        assert isinstance(durable, Durable)
        (last,) = durable.seqs
    return times


class Crowd:
    """Channels that append the next entry as soon as the last one is durable."""

    def __init__(self, log: AnyLog, ids: Iterator[str]) -> None:
        self.log = log
        self.ids = ids
        self.appended = 0
        self.busy = CHANNELS
        self.over = asyncio.Event()
        self.until = perf_counter() + SECONDS

    def start(self, channel: str) -> None:
        def settled(results: Sequence[tuple[Batch, AppendResult]]) -> None:
            ((_, outcome),) = results
            assert isinstance(outcome, Durable), outcome
            self.appended += 1
            go_on(outcome.seqs[-1])

        def go_on(last: int) -> None:
            if perf_counter() < self.until:
                batch = Batch(channel, last, (NewEntry(next(self.ids), DATA),))
                self.log.append((batch,), settled)
                return
            self.busy -= 1
            if not self.busy:
                self.over.set()

        go_on(0)


async def measured(opening: Opening, ids: Iterator[str], nodes: int = 1) -> Measured:
    logs = [await opening() for _ in range(nodes)]
    crowds = [Crowd(log, ids) for log in logs]
    commits, started = sum(log.commits for log in logs), perf_counter()
    for crowd in crowds:
        for _ in range(CHANNELS):
            crowd.start(f"ahp-session:/{uuid4()}")
    for crowd in crowds:
        await crowd.over.wait()
    seconds = perf_counter() - started
    appended = sum(crowd.appended for crowd in crowds)
    commits = sum(log.commits for log in logs) - commits
    alone = await append_alone(logs[0], "alone", ids)
    for log in logs:
        await log.close()
    return Measured(alone, appended / seconds, appended / commits)


def keep(results: Results, row: str, found: Measured, synced: list[float]) -> None:
    results.add(LOG, row, "a sync of one page alone, µs", median(synced) * 1e6)
    results.add(LOG, row, "an entry alone, µs", median(found.alone) * 1e6)
    results.add(LOG, row, "p99", quantiles(found.alone, n=100)[98] * 1e6)
    results.add(LOG, row, f"entries a second, {CHANNELS} channels per node", found.per_second)
    results.add(LOG, row, "entries per commit", found.per_commit)


def on_sqlite(results: Results) -> None:
    for sync in Sync:
        with scratch() as folder:
            synced = sync_alone(folder)
            opening = partial(SqliteLog.open, folder / "log.db", sync=sync)
            found = asyncio.run(measured(opening, ordered()))
        keep(results, f"SQLite, sync {sync}", found, synced)


def on_postgres(results: Results, cluster: Cluster) -> None:
    for nodes in NODES:
        with tempfile.TemporaryDirectory() as name:
            synced = sync_alone(Path(name))
        url = cluster.url(f"b{uuid4().hex}")
        opening = partial(PostgresLog.open, url, is_exclusive=nodes == 1)
        found = asyncio.run(measured(opening, ordered(), nodes))
        keep(results, f"PostgreSQL, nodes: {nodes}", found, synced)


def run(results: Results) -> None:
    cluster = None if programs() is None else Cluster(disk=None, shared_buffers="128MB")
    for _ in range(ROUNDS):
        on_sqlite(results)
        if cluster is not None:
            on_postgres(results, cluster)
    if cluster is not None:
        cluster.remove()
