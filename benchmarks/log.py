"""What the log takes: one batch alone, and many channels that each wait for their last batch.

`python -m benchmarks.log`. `disk` is what syncing one page takes in the working folder: no append
with full sync can be quicker than that. PostgreSQL runs in a temporary cluster on the same machine,
as delivered but for its port; `nodes` are connections with logs of their own that write at once.
"""

import asyncio
import os
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import NamedTuple, TypeAlias
from uuid import uuid4

from rich.console import Console
from rich.table import Table

from session_server.log import Batch, Durable, NewEntry, Outcome, Sync
from session_server.log.postgres import PostgresLog
from session_server.log.sqlite import SqliteLog
from tests.postgres import Cluster, programs

CHANNELS = 64
SECONDS = 2.0
ALONE = 300
ROUNDS = 3
DATA = b"x" * 200
NODES = (1, 2, 3)

AnyLog: TypeAlias = SqliteLog | PostgresLog
Opening: TypeAlias = Callable[[], Awaitable[AnyLog]]


class Measured(NamedTuple):
    """Seconds of an append alone, while the WAL still grows and once its blocks are reused."""

    first: list[float]
    later: list[float]
    per_second: float
    per_commit: float


def ordered() -> Iterator[str]:
    """Ids as a host should make them: each follows the last, so that an index grows at its end."""
    return (f"{number:016x}{os.getpid():08x}" for number in count(1))


def scattered() -> Iterator[str]:
    return (uuid4().hex for _ in count())


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
        outcome: asyncio.Future[Outcome] = loop.create_future()
        started = perf_counter()
        log.append(Batch(channel, last, (NewEntry(next(ids), DATA),)), outcome.set_result)
        durable = await outcome
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
        def settled(outcome: Outcome) -> None:
            assert isinstance(outcome, Durable), outcome
            self.appended += 1
            go_on(outcome.seqs[-1])

        def go_on(last: int) -> None:
            if perf_counter() < self.until:
                batch = Batch(channel, last, (NewEntry(next(self.ids), DATA),))
                self.log.append(batch, settled)
                return
            self.busy -= 1
            if not self.busy:
                self.over.set()

        go_on(0)


async def measured(opening: Opening, ids: Iterator[str], nodes: int = 1) -> Measured:
    logs = [await opening() for _ in range(nodes)]
    first = await append_alone(logs[0], "first", ids)
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
    later = await append_alone(logs[0], "later", ids)
    for log in logs:
        await log.close()
    return Measured(first, later, appended / seconds, appended / commits)


def microseconds(times: list[float]) -> tuple[str, str]:
    return f"{median(times) * 1e6:.0f}", f"{quantiles(times, n=100)[98] * 1e6:.0f}"


def row(found: Measured, synced: list[float]) -> tuple[str, ...]:
    first, (later, slowest) = microseconds(found.first)[0], microseconds(found.later)
    cells = (first, later, slowest, f"{found.per_second:,.0f}", f"{found.per_commit:.1f}")
    return (*cells, microseconds(synced)[0])


def sqlite_rows(table: Table) -> None:
    for sync in Sync:
        for make in (ordered, scattered):
            with tempfile.TemporaryDirectory(dir=".") as name:
                folder = Path(name)
                synced = sync_alone(folder)
                opening = partial(SqliteLog.open, folder / "log.db", sync=sync)
                found = asyncio.run(measured(opening, make()))
            table.add_row("sqlite", "1", sync, make.__name__, *row(found, synced))


def postgres_rows(table: Table, cluster: Cluster) -> None:
    for nodes in NODES:
        with tempfile.TemporaryDirectory() as name:
            synced = sync_alone(Path(name))
        url = cluster.url(f"b{uuid4().hex}")
        opening = partial(PostgresLog.open, url, is_exclusive=nodes == 1)
        found = asyncio.run(measured(opening, ordered(), nodes))
        table.add_row("postgresql", str(nodes), Sync.FULL, "ordered", *row(found, synced))


def main() -> None:
    table = Table(title=f"The log: {CHANNELS} channels per node, {len(DATA)} bytes an entry")
    columns = ("store", "nodes", "sync", "ids", "alone (µs)", "later", "p99", "entries/s")
    for column in (*columns, "per commit", "disk"):
        table.add_column(column, justify="right")
    cluster = None if programs() is None else Cluster(disk=None, shared_buffers="128MB")
    for _ in range(ROUNDS):
        sqlite_rows(table)
        if cluster is not None:
            postgres_rows(table, cluster)
    if cluster is not None:
        cluster.remove()
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
