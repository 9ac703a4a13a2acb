"""When the disk is full, read-only or failing: no half-written batches, and honest outcomes."""

import asyncio
import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from session_server.log import (
    Batch,
    Durable,
    Log,
    NewEntry,
    Refused,
    RefusedBecause,
    StoredSnapshot,
    Unknown,
)
from session_server.log.protocol import FailedError, NotWritableError
from session_server.log.sqlite import SqliteLog
from session_server.log.sqlite.database import Database
from session_server.log.sqlite.store import Store
from tests.log.logs import (
    Sqlite,
    asked,
    batch,
    everything,
    held,
    refused,
    settled,
    stored,
)
from tests.small_disk import fill, small_disk

ROOT = Path(__file__).resolve().parents[2]
BOUND = 60
A, B = "ahp-session:/a", "ahp-session:/b"
LARGE = b"x" * 2_000_000
DISK_BYTES = 40 * 2**20


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path, DISK_BYTES) as place:
        yield place


def tell_sqlite(log: SqliteLog, *statements: str) -> Any:
    """Has the writer's own connection told something, by its own thread."""

    def told(store: Store) -> None:
        for statement in statements:
            store._connection.execute(statement).fetchall()

    return log._ask_writer(told)


async def stands_up_to_being_full(log: Log, make_space) -> None:
    """Full: refused whole, then and until there is space; other batches are as good as ever."""
    (last,) = await stored(log, A, 0, b"before")
    for _ in range(2):
        assert await refused(log, batch(A, last, b"small", LARGE)) == RefusedBecause.FULL
        assert [e.data for e in await everything(log)] == [b"before"]
    await make_space()
    (_, last) = await stored(log, A, last, b"small", LARGE)
    await stored(log, A, last, b"after")
    assert len(await everything(log)) == 4


async def test_a_full_database_refuses_whole_batches_until_it_has_space(tmp_path: Path) -> None:
    async with Sqlite(tmp_path).opened() as log:
        await tell_sqlite(log, "PRAGMA max_page_count = 30")

        async def make_space() -> None:
            await tell_sqlite(log, "PRAGMA max_page_count = 1000000")

        await stands_up_to_being_full(log, make_space)


async def test_a_full_disk_refuses_whole_batches_until_it_has_space(disk: Path) -> None:
    async with Sqlite(disk).opened() as log:
        ballast = fill(disk, leaving=200_000)

        async def make_space() -> None:
            ballast.unlink()

        await stands_up_to_being_full(log, make_space)


async def test_a_full_disk_takes_no_new_log(disk: Path) -> None:
    fill(disk, leaving=0)
    with pytest.raises(NotWritableError, match=r"[Nn]o space"):
        await Sqlite(disk).open()


async def test_a_log_on_a_full_disk_is_not_opened_and_says_what_to_do(disk: Path) -> None:
    async with Sqlite(disk).opened() as log:
        await stored(log, A, 0, b"before")
    ballast = fill(disk, leaving=0)
    with pytest.raises(NotWritableError, match="There is no space left for the log: make some"):
        await Sqlite(disk).open()
    ballast.unlink()
    async with Sqlite(disk).opened() as log:
        assert [e.data for e in await everything(log)] == [b"before"]


async def test_what_fits_is_not_refused_for_what_does_not(tmp_path: Path) -> None:
    async with Sqlite(tmp_path).opened() as log:
        await tell_sqlite(log, "PRAGMA max_page_count = 30")
        async with held(log):
            outcomes = [
                asked(log, batch(f"c{n}", 0, LARGE if n == 2 else b"small")) for n in range(5)
            ]
        kinds = [type(outcome) for outcome in await asyncio.gather(*outcomes)]
        assert kinds == [Durable, Durable, Refused, Durable, Durable]


async def test_other_requests_fail_with_a_reason_on_a_full_disk(tmp_path: Path) -> None:
    async with Sqlite(tmp_path).opened() as log:
        (last,) = await stored(log, A, 0, b"x")
        await tell_sqlite(log, "PRAGMA max_page_count = 1")
        with pytest.raises(FailedError, match="no space") as failure:
            await log.save_snapshot(StoredSnapshot(A, last, LARGE))
        assert failure.value.because == RefusedBecause.FULL
        assert failure.value.can_retry


async def test_a_log_that_became_read_only_says_so(tmp_path: Path) -> None:
    async with Sqlite(tmp_path).opened() as log:
        (last,) = await stored(log, A, 0, b"x")
        await tell_sqlite(log, "PRAGMA query_only = 1")
        assert await refused(log, batch(A, last, b"y")) == RefusedBecause.READ_ONLY
        assert [e.data for e in await everything(log)] == [b"x"]
        # The next attempt is made with a connection of its own, to which nobody has said that.
        await stored(log, A, last, b"y")


# An outcome that is not known


def test_a_disk_that_fails_during_a_commit_leaves_no_doubt_unsettled(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.log.failing_disk", str(tmp_path / "log.db")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=BOUND, check=False)
    assert done.returncode == 0, done.stderr.decode()
    said = json.loads(done.stdout)
    stored_ids = said.pop("stored")
    found = said.pop("found")
    assert list(found) == ["before", "before+"]
    assert said == {
        "before": ["Durable", None],
        "fails": ["Unknown", None],
        "too soon": ["Refused", "conflict"],
        "elsewhere": ["Durable", None],
        "after": ["Durable", None],
        "large after all": ["Durable", None],
    }
    assert [id_ for _, id_ in stored_ids] == [
        f"{name}{part}"
        for name in ("before", "elsewhere", "after", "large after all")
        for part in ("", "+")
    ]
    assert [seq for seq, _ in stored_ids] == sorted({seq for seq, _ in stored_ids})


@pytest.mark.slow
async def test_a_commit_that_the_disk_cut_short_is_found_out_about(disk: Path) -> None:
    """With space for the WAL but not for its index, SQLite fails after it has written all."""
    large = b"x" * 17_000_000
    kinds = set()
    for leaving in range(17_100_000, 17_200_000, 8_192):
        (disk / str(leaving)).mkdir()
        async with Sqlite(disk / str(leaving)).opened() as log:
            (last,) = await stored(log, A, 0, b"before")
            ballast = fill(disk, leaving)
            wanted = Batch(A, last, (NewEntry("large", large), NewEntry("small", b"")))
            outcome = await settled(log, wanted)
            kinds.add(type(outcome))
            ballast.unlink()
            found = await log.find(["large", "small"])
            assert found.keys() in (set(), {"large", "small"})
            assert isinstance(outcome, Unknown) or isinstance(outcome, Durable) == bool(found)
            last = max(found.values(), default=last)
            assert await stored(log, A, last, b"after")
            assert len(await everything(log)) == 2 + len(found)
        for file in (disk / str(leaving)).iterdir():
            file.unlink()
    assert Unknown in kinds


class LosesTheAnswer:
    """A connection on which a commit of entries happens, and then fails as if it had not.

    A stand-in: no real file system can be made to fail at just this moment.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._has_entries = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def executemany(self, statement: str, rows: Any) -> Any:
        self._has_entries = True
        return self._connection.executemany(statement, rows)

    def execute(self, statement: str, *arguments: Any) -> Any:
        result = self._connection.execute(statement, *arguments)
        if statement == "COMMIT" and self._has_entries:
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
            error.sqlite_errorname = "SQLITE_IOERR_FSYNC"
            raise error
        return result


async def test_a_commit_whose_answer_was_lost_is_found(tmp_path: Path) -> None:
    async with Sqlite(tmp_path).opened() as log:
        (last,) = await stored(log, A, 0, b"before")
        store = log._writer._store
        store._connection = LosesTheAnswer(store._connection)
        here, there, never = batch(A, last, b"1", b"2"), batch(B, 0, b"3"), batch(A, last, b"x")
        async with held(log):
            flying = [asked(log, one) for one in (here, there, never, Batch("empty", 0, ()))]
            dropping = asyncio.ensure_future(log.drop("elsewhere"))
            await asyncio.sleep(0)
        outcomes = await asyncio.gather(*flying)
        assert {type(outcome) for outcome in outcomes} == {Unknown}
        with pytest.raises(FailedError, match="disk has failed"):
            await dropping
        assert "SQLITE_IOERR_FSYNC" in outcomes[0].reason

        await stored(log, "empty", 0, b"filled")
        # Nothing slips past what is not known, wherever it thinks that the channel ends.
        for expected in (last, last + 2):
            assert await refused(log, batch(A, expected, b"too soon")) == RefusedBecause.CONFLICT
        found = await log.find([here.entries[0].id])
        assert found == {here.entries[0].id: last + 1}
        assert await refused(log, batch(A, last + 2, b"too soon")) == RefusedBecause.CONFLICT
        assert await log.find([never.entries[0].id]) == {}
        await stored(log, A, last + 2, b"after")
        assert await refused(log, batch(B, last + 3, b"too soon")) == RefusedBecause.CONFLICT
        found = await log.find([entry.id for entry in there.entries])
        await stored(log, B, found[there.entries[0].id], b"after")
        assert [e.data for e in await everything(log)] == [
            b"before", b"1", b"2", b"3", b"filled", b"after", b"after"
        ]  # fmt: skip


async def test_as_long_as_the_disk_fails_nothing_is_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Sqlite(tmp_path).opened() as log:
        (last,) = await stored(log, A, 0, b"before")
        store = log._writer._store
        store._connection = LosesTheAnswer(store._connection)

        def fail(*_: object) -> None:
            raise OSError(5, "Input/output error")

        with monkeypatch.context() as patch:
            patch.setattr(Database, "_recover", fail)
            wanted = batch(A, last, b"1")
            assert isinstance(await settled(log, wanted), Unknown)
            for question in (log.find([wanted.entries[0].id]), log.read(after=0, limit=1)):
                with pytest.raises(FailedError) as failure:
                    await question
                assert failure.value.because == RefusedBecause.BROKEN
                assert failure.value.can_retry
            outcome = await settled(log, batch(B, 0, b"x"))
            assert isinstance(outcome, Refused)
            assert outcome.because == RefusedBecause.BROKEN
            assert "Input/output error (OSError)" in outcome.reason
        assert await log.find([wanted.entries[0].id]) == {wanted.entries[0].id: last + 1}
        await stored(log, B, 0, b"x")
