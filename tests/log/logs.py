"""The logs under test, and short ways of using them."""

import asyncio
import hashlib
import sqlite3
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from session_server.log import AppendResult, Batch, Durable, Entry, Log, NewEntry, Refused, Sync
from session_server.log.memory import MemoryLog
from session_server.log.sqlite import SqliteLog
from tests.log.one_by_one import append_one

if TYPE_CHECKING:
    from session_server.log.nats import NatsLog
    from session_server.log.postgres import PostgresLog

BOUND = 60
_ids = count(1)


class Backend:
    """A place for a log. `survives` says whether it is still there after closing it."""

    survives: bool

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def open(self) -> Log:
        raise NotImplementedError

    async def reopened(self, log: Log) -> Log:
        """The same log, closed and opened again where it survives that."""
        if not self.survives:
            return log
        await log.close()
        return await self.open()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Log]:
        log = await self.open()
        try:
            yield log
        finally:
            await log.close()


class Memory(Backend):
    survives = False

    async def open(self) -> MemoryLog:
        return MemoryLog()


def wal_of(database: Path) -> Path:
    return database.with_name(f"{database.name}-wal")


def end_of_wal(wal: Path) -> int:
    """Where what was written to it ends; zeros may follow."""
    return len(wal.read_bytes().rstrip(b"\0"))


class Sqlite(Backend):
    survives = True
    sync = Sync.FULL
    accepts_loss = False

    @property
    def path(self) -> Path:
        return self.folder / "log.db"

    @property
    def wal(self) -> Path:
        return wal_of(self.path)

    async def open(self) -> SqliteLog:
        return await SqliteLog.open(self.path, sync=self.sync, accept_data_loss=self.accepts_loss)


class SqliteNormal(Sqlite):
    sync = Sync.NORMAL


class Postgres(Backend):
    """Its driver is loaded when it is used: most who import this module need none of it."""

    survives = True
    sync = Sync.FULL
    is_exclusive = True

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        pytest.importorskip("psycopg", reason="the extra session-server[postgres] is missing")

    @property
    def url(self) -> str:
        """A schema for each folder."""
        from tests.postgres import shared_cluster  # noqa: PLC0415

        name = hashlib.sha256(str(self.folder).encode()).hexdigest()[:16]
        return shared_cluster().url(f"t_{name}")

    async def open(self) -> "PostgresLog":
        from session_server.log.postgres import PostgresLog  # noqa: PLC0415

        return await PostgresLog.open(self.url, sync=self.sync, is_exclusive=self.is_exclusive)


class PostgresShared(Postgres):
    """As several nodes have it open."""

    is_exclusive = False


class Nats(Backend):
    survives = True
    is_exclusive = True

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        pytest.importorskip("nats", reason="the extra session-server[nats] is missing")

    @property
    def url(self) -> str:
        """A stream for each folder."""
        from tests.nats import shared_server  # noqa: PLC0415

        name = hashlib.sha256(str(self.folder).encode()).hexdigest()[:16]
        return shared_server().url(f"t_{name}")

    async def open(self) -> "NatsLog":
        from session_server.log.nats import NatsLog  # noqa: PLC0415

        return await NatsLog.open(self.url, is_exclusive=self.is_exclusive)


class NatsShared(Nats):
    """As several nodes have it open."""

    is_exclusive = False


QUICK: Sequence[type[Backend]] = (Memory, Sqlite)
SLOW: Sequence[type[Backend]] = (SqliteNormal, Postgres, PostgresShared, Nats, NatsShared)
"""Those that need a server, and the same code with another setting."""


def entries(*datas: bytes) -> tuple[NewEntry, ...]:
    """Entries with ids of their own, in the form that the host gives them."""
    return tuple(NewEntry(f"{next(_ids):016x}", data) for data in datas)


def batch(channel: str, expected: int, *datas: bytes) -> Batch:
    return Batch(channel, expected, entries(*datas))


def asked(log: Log, wanted: Batch) -> asyncio.Future[AppendResult]:
    """An append that is on its way."""
    outcome: asyncio.Future[AppendResult] = asyncio.get_running_loop().create_future()
    append_one(log, wanted, outcome.set_result)
    return outcome


async def settled(log: Log, wanted: Batch) -> AppendResult:
    return await asyncio.wait_for(asked(log, wanted), BOUND)


async def stored(log: Log, channel: str, expected: int, *datas: bytes) -> tuple[int, ...]:
    """Seqs of what became durable, as it should."""
    outcome = await settled(log, batch(channel, expected, *datas))
    assert isinstance(outcome, Durable), outcome
    return outcome.seqs


async def refused(log: Log, wanted: Batch) -> str:
    """Why a batch was refused, as it should."""
    outcome = await settled(log, wanted)
    assert isinstance(outcome, Refused), outcome
    return outcome.because


async def everything(log: Log, *, piece: int = 1_000, **options) -> list[Entry]:
    """All entries, read in pieces."""
    found: list[Entry] = []
    after = 0
    while entries_ := await log.read(after=after, limit=piece, **options):
        assert len(entries_) <= piece
        found += entries_
        after = entries_[-1].seq
    return found


async def following(log: Log, after: int, count_: int) -> list[Entry]:
    """The next so many entries that a follower gets."""
    found: list[Entry] = []
    stream = log.follow(after)
    async with asyncio.timeout(BOUND):
        while len(found) < count_:
            found += await anext(stream)
    await stream.aclose()
    return found


@asynccontextmanager
async def held(log: SqliteLog) -> AsyncIterator[None]:
    """The writer waits meanwhile, so that all that is asked for goes into its next commit."""
    waits, go_on = threading.Event(), threading.Event()

    def wait(_: object) -> None:
        waits.set()
        assert go_on.wait(BOUND)

    holding = asyncio.ensure_future(log._ask_writer(wait))
    await asyncio.to_thread(waits.wait, BOUND)
    try:
        yield
    finally:
        go_on.set()
        await holding


def change(path: Path, *statements: str) -> None:
    """What another program, or a disk, does to the file of a log."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def damage_entry(path: Path, seq: int) -> None:
    """One byte of its data is another; its length, and all that SQLite checks, are as before."""
    change(path, f"UPDATE entries SET data = {FLIPPED} WHERE seq = {seq}")


def damage_snapshot(path: Path, channel: str) -> None:
    where = f"channel = (SELECT number FROM channels WHERE uri = '{channel}')"
    change(path, f"UPDATE snapshots SET data = {FLIPPED} WHERE {where}")


FLIPPED = "CAST(substr(data, 1, length(data) - 1) || x'7e' AS BLOB)"
