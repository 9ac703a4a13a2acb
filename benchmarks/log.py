"""What the log takes: one batch alone, and many channels that each wait for their last batch.

`python -m benchmarks.log`. `disk` is what syncing one page takes in the working folder: no append
with full sync can be quicker than that.
"""

import asyncio
import os
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import NamedTuple
from uuid import uuid4

from rich.console import Console
from rich.table import Table

from session_server.log import Batch, Durable, NewEntry, Outcome, Sync
from session_server.log.sqlite import SqliteLog

CHANNELS = 64
SECONDS = 2.0
ALONE = 300
ROUNDS = 3
DATA = b"x" * 200


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


async def append_alone(log: SqliteLog, channel: str, ids: Iterator[str]) -> list[float]:
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

    def __init__(self, log: SqliteLog, ids: Iterator[str]) -> None:
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


async def measured(folder: Path, sync: Sync, ids: Iterator[str]) -> Measured:
    log = await SqliteLog.open(folder / "log.db", sync=sync)
    first = await append_alone(log, "first", ids)
    crowd = Crowd(log, ids)
    commits, started = log.commits, perf_counter()
    for _ in range(CHANNELS):
        crowd.start(f"ahp-session:/{uuid4()}")
    await crowd.over.wait()
    seconds = perf_counter() - started
    commits = log.commits - commits
    later = await append_alone(log, "later", ids)
    await log.close()
    return Measured(first, later, crowd.appended / seconds, crowd.appended / commits)


def microseconds(times: list[float]) -> tuple[str, str]:
    return f"{median(times) * 1e6:.0f}", f"{quantiles(times, n=100)[98] * 1e6:.0f}"


def main() -> None:
    table = Table(title=f"The log over SQLite: {CHANNELS} channels, {len(DATA)} bytes an entry")
    for column in ("sync", "ids", "alone (µs)", "later", "p99", "entries/s", "per commit", "disk"):
        table.add_column(column, justify="right")
    kinds = [(sync, make) for sync in Sync for make in (ordered, scattered)]
    for _ in range(ROUNDS):
        for sync, make in kinds:
            with tempfile.TemporaryDirectory(dir=".") as name:
                folder = Path(name)
                synced = sync_alone(folder)
                found = asyncio.run(measured(folder, sync, make()))
            rate = f"{found.per_second:,.0f}"
            first, (later, slowest) = microseconds(found.first)[0], microseconds(found.later)
            cells = (first, later, slowest, rate, f"{found.per_commit:.1f}")
            table.add_row(sync, make.__name__, *cells, microseconds(synced)[0])
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
