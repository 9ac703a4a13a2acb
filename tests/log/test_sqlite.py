"""What is SQLite's own: commits that are shared, the file and its form, and who may have it."""

import asyncio
import errno
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from session_server.log import AppendResult, Batch, Durable, NewEntry
from session_server.log.protocol import (
    DamagedError,
    FailedError,
    InUseError,
    NotWritableError,
    OpenError,
    Sync,
    TooNewError,
)
from session_server.log.sqlite import SqliteLog, database, schema, writer
from session_server.log.sqlite.claim import SUFFIX
from tests.log.logs import (
    Sqlite,
    asked,
    batch,
    change,
    end_of_wal,
    everything,
    held,
    settled,
    stored,
)
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]
BOUND = 60
A, B, C = "ahp-session:/a", "ahp-session:/b", "ahp-session:/c"


@pytest.fixture
def backend(tmp_path: Path) -> Sqlite:
    return Sqlite(tmp_path)


# Commits


@pytest.mark.proves("design.append.shared-commit")
async def test_what_was_asked_during_a_commit_shares_the_next(backend: Sqlite) -> None:
    async with backend.opened() as log:
        async with held(log):
            outcomes = [asked(log, batch(f"c{n}", 0, b"x")) for n in range(200)]
            before = log.commits
        await asyncio.gather(*outcomes)
        assert log.commits - before == 2  # that of the one who held it, and one for all the others
        assert len(await everything(log)) == 200


async def test_a_file_whose_opening_was_cancelled_can_be_opened_again(backend: Sqlite) -> None:
    opening = asyncio.create_task(backend.open())
    await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    async with backend.opened() as log:
        assert await everything(log) == []


async def test_the_wal_gets_its_usual_size_while_nobody_waits(
    backend: Sqlite, tmp_path: Path
) -> None:
    """So that commits write over blocks, which is synced faster; a crash loses nothing by it."""
    copied = Sqlite(tmp_path / "copied")
    copied.folder.mkdir()
    async with backend.opened() as log:
        await stored(log, A, 0, b"1", b"2")
        await until(lambda: backend.wal.stat().st_size >= database.WAL_BYTES)
        await stored(log, B, 0, b"3")
        for file in (backend.path, backend.wal):  # as a crash leaves them
            shutil.copy(file, copied.folder)
    assert end_of_wal(copied.wal) < database.WAL_BYTES / 10
    async with copied.opened() as log:
        assert [entry.data for entry in await everything(log)] == [b"1", b"2", b"3"]


@pytest.mark.parametrize("sync", Sync)
def test_a_wal_that_need_not_or_cannot_grow_stays_as_it_is(
    backend: Sqlite, monkeypatch: pytest.MonkeyPatch, sync: Sync
) -> None:
    def full(_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    opened = database.Database(backend.path, sync)
    try:
        size = backend.wal.stat().st_size
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            assert not opened.grow_wal()
        assert not opened.grow_wal()
        assert backend.wal.stat().st_size == size
    finally:
        opened.close()


def test_a_wal_takes_no_part_of_a_piece_that_does_not_fit_on_the_disk(backend: Sqlite) -> None:
    opened = database.Database(backend.path, Sync.FULL)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        size = backend.wal.stat().st_size
        half = size + len(database.WAL_PIECE) // 2
        resource.setrlimit(resource.RLIMIT_FSIZE, (half, hard))
        assert not opened.grow_wal()
        assert backend.wal.stat().st_size == size
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        opened.close()


async def test_all_that_an_outcome_leads_to_shares_the_next_commit(backend: Sqlite) -> None:
    async with backend.opened() as log:
        loop = asyncio.get_running_loop()
        results: list[AppendResult] = []

        def note(pairs: Sequence[tuple[Batch, AppendResult]]) -> None:
            results.extend(result for _, result in pairs)

        def follow(_: object) -> None:
            log.append((batch(B, 0, b"at once"),), note)
            time.sleep(0.05)  # enough for the thread to begin, if it might
            # A client sends a turn later.
            loop.call_soon(lambda: log.append((batch(C, 0, b"a turn later"),), note))

        before = log.commits
        log.append((batch(A, 0, b"the first"),), follow)
        await until(lambda: len(results) == 2)
        assert log.commits - before == 2


@pytest.mark.parametrize("is_one_append", [False, True])
async def test_a_commit_is_bounded(
    backend: Sqlite, monkeypatch: pytest.MonkeyPatch, *, is_one_append: bool
) -> None:
    monkeypatch.setattr(writer, "ENTRIES_PER_COMMIT", 10)
    async with backend.opened() as log:
        batches = [batch(f"c{n}", 0, b"x", b"y") for n in range(50)]
        results: list[AppendResult] = []
        async with held(log):
            for appended in [batches] if is_one_append else [[one] for one in batches]:
                log.append(appended, lambda pairs: results.extend(result for _, result in pairs))
            before = log.commits
        await until(lambda: len(results) == 50)
        assert {type(result) for result in results} == {Durable}
        assert log.commits - before == 1 + 10


async def test_a_reader_holds_no_writer_up(backend: Sqlite) -> None:
    reads, go_on = threading.Event(), threading.Event()

    def question(connection: sqlite3.Connection) -> int:
        connection.execute("BEGIN")
        (before,) = connection.execute("SELECT count(*) FROM entries").fetchone()
        reads.set()
        assert go_on.wait(BOUND)
        (after,) = connection.execute("SELECT count(*) FROM entries").fetchone()
        connection.execute("COMMIT")
        assert before == after
        return after

    async with backend.opened() as log:
        (last,) = await stored(log, A, 0, b"x")
        reading = asyncio.ensure_future(log._ask_reader(question))
        await asyncio.to_thread(reads.wait, BOUND)
        for _ in range(10):
            (last,) = await stored(log, A, last, b"y" * 1_000)
        go_on.set()
        assert await reading == 1
        assert len(await everything(log)) == 11


async def test_what_sqlite_cannot_store_is_refused_alone(backend: Sqlite) -> None:
    async with backend.opened() as log:
        async with held(log):
            wrong = asked(log, Batch(A, 0, (NewEntry("\ud800", b""),)))
            right = asked(log, batch(B, 0, b"x"))
        assert (await wrong).because == "broken"
        assert isinstance(await right, Durable)


async def test_another_program_that_locks_the_database_is_named(
    backend: Sqlite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "LOCKED_SECONDS", 0.01)
    async with backend.opened() as log:
        with closing(sqlite3.connect(backend.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            outcome = await settled(log, batch(A, 0, b"x"))
            assert "Another program" in outcome.reason
            other.execute("ROLLBACK")
        await stored(log, A, 0, b"x")
    with closing(sqlite3.connect(backend.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(OpenError, match="Another program"):
            await backend.open()


def test_a_loop_that_ends_before_its_log_leaves_nothing_behind(backend: Sqlite) -> None:
    async def leave() -> SqliteLog:
        log = await backend.open()
        await stored(log, A, 0, b"x")
        return log

    log = asyncio.run(leave())
    log._writer.ask((batch(B, 0, b"y"),), lambda _: None)
    log._writer._thread.join(BOUND)
    assert not log._writer._thread.is_alive()
    log._reader.shutdown()

    async def look() -> int:
        async with backend.opened() as log:
            return len(await everything(log))

    assert asyncio.run(look()) == 2


# Whose file it is


async def test_a_second_process_is_refused(backend: Sqlite) -> None:
    script = (
        "import asyncio, sys\n"
        "from session_server.log.protocol import InUseError\n"
        "from session_server.log.opening import open_log\n"
        "try: asyncio.run(open_log('sqlite:///' + sys.argv[1]))\n"
        "except InUseError as error: sys.exit(error.reason)"
    )
    command = [sys.executable, "-c", script, str(backend.path)]
    async with backend.opened() as log:
        done = await asyncio.to_thread(
            subprocess.run, command, cwd=ROOT, capture_output=True, text=True, timeout=BOUND
        )
        assert done.returncode == 1
        assert f"{backend.path} is in use by process {os.getpid()}" in done.stderr
        await stored(log, A, 0, b"x")


@pytest.mark.parametrize("has_failed", [False, True])
async def test_a_second_log_is_refused_by_another_name_and_after_its_claim_was_deleted(
    backend: Sqlite, has_failed: bool
) -> None:
    link = backend.folder / "link.db"
    async with backend.opened() as log:
        await stored(log, A, 0, b"x")
        if has_failed:  # and both connections were closed and opened again
            await until(lambda: not log._writer._store.has_freed)  # its thread is not idle yet
            log._writer._distrust()
            await stored(log, B, 0, b"x")
        os.link(backend.path, link)
        backend.path.with_name(backend.path.name + SUFFIX).unlink()
        for path in (link, backend.path):
            with pytest.raises(InUseError, match="in use by another process"):
                await SqliteLog.open(path)
        await stored(log, A, log.last_seq - has_failed, b"y")
    async with backend.opened() as log:
        assert len(await everything(log)) == 2 + has_failed


async def test_the_file_is_for_its_owner_alone(backend: Sqlite) -> None:
    async with backend.opened() as log:
        await stored(log, A, 0, b"secret")
        files = list(backend.folder.iterdir())
        assert len(files) == 4
        assert {file.stat().st_mode & 0o077 for file in files} == {0}


# Files that are no log, or no longer


@contextmanager
def unwritable(path: Path) -> Iterator[None]:
    """Permissions do not stop root; a mark in the file system does."""
    if os.geteuid() != 0:
        mode = path.stat().st_mode
        path.chmod(mode & ~0o222)
        yield
        path.chmod(mode)
        return
    if subprocess.run(["chattr", "+i", path], capture_output=True, check=False).returncode:
        pytest.skip("root can write everywhere on this file system")
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", path], check=True, timeout=BOUND)


async def test_a_folder_without_writing_takes_no_log(backend: Sqlite) -> None:
    with unwritable(backend.folder), pytest.raises(NotWritableError, match="opened for writing"):
        await backend.open()


@pytest.mark.parametrize("what", ["file", "folder"])
async def test_a_log_that_cannot_be_written_is_not_opened(backend: Sqlite, what: str) -> None:
    async with backend.opened() as log:
        await stored(log, A, 0, b"x")
    with (
        unwritable(backend.path if what == "file" else backend.folder),
        pytest.raises(NotWritableError) as failure,
    ):
        await backend.open()
    assert str(backend.path) in failure.value.reason
    async with backend.opened() as log:
        assert len(await everything(log)) == 1


def overwrite(path: Path, start: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(start)
        file.write(data)


def into_anothers(path: Path) -> None:
    path.unlink()
    change(path, "CREATE TABLE recipes (name TEXT)")


NOISE = bytes(range(256)) * 64
DAMAGES = {
    "first bytes": lambda path: overwrite(path, 0, b"#!/bin/sh"),
    "header": lambda path: overwrite(path, 16, NOISE[:84]),
    "middle": lambda path: overwrite(path, path.stat().st_size // 2 // 4096 * 4096, NOISE),
    "cut in half": lambda path: os.truncate(path, path.stat().st_size // 2),
    "cut short": lambda path: os.truncate(path, 10),
    "text": lambda path: path.write_text("Dear diary, " * 1_000),
    "another application's": into_anothers,
    "no snapshots": lambda path: change(path, "DROP TABLE snapshots"),
    "no ids": lambda path: change(path, "ALTER TABLE entries RENAME id TO name"),
    "no version": lambda path: change(path, "DELETE FROM meta WHERE key = 'version'"),
    "no epoch": lambda path: change(path, "DELETE FROM meta WHERE key = 'epoch'"),
}


async def fill(backend: Sqlite) -> None:
    async with backend.opened() as log:
        last = 0
        for _ in range(20):
            *_, last = await stored(log, A, last, *[b"x" * 500] * 200)


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_file_is_named_and_left_alone(backend: Sqlite, damage: str) -> None:
    await fill(backend)
    DAMAGES[damage](backend.path)
    before = backend.path.read_bytes()
    with pytest.raises(DamagedError) as failure:
        await backend.open()
    assert str(backend.path) in failure.value.reason
    assert backend.path.read_bytes() == before


async def test_damage_that_was_not_looked_for_shows_when_it_is_read(
    backend: Sqlite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "CHECKED_BYTES", 0)
    await fill(backend)
    size = backend.path.stat().st_size
    overwrite(backend.path, size // 4 // 4096 * 4096, NOISE * (size // 8 // len(NOISE)))
    async with backend.opened() as log:
        with pytest.raises(FailedError) as failure:
            await everything(log)
        assert failure.value.because == "broken"
        await stored(log, B, 0, b"x")


# Versions


async def test_a_file_of_a_newer_version_is_refused_and_left_alone(backend: Sqlite) -> None:
    async with backend.opened():
        pass
    change(backend.path, "UPDATE meta SET value = 7 WHERE key = 'version'")
    before = backend.path.read_bytes()
    with pytest.raises(TooNewError, match="newer session-server") as failure:
        await backend.open()
    assert (failure.value.version, failure.value.known) == (7, len(schema.STEPS))
    assert backend.path.read_bytes() == before


def older_form(connection: sqlite3.Connection) -> None:
    """A form that never was: channels by their URIs, and no ids."""
    connection.execute(f"PRAGMA application_id = {schema.APPLICATION}")
    connection.execute("CREATE TABLE meta (key TEXT PRIMARY KEY, value NOT NULL)")
    connection.execute("INSERT INTO meta VALUES ('version', 1)")
    connection.execute("CREATE TABLE facts (place INTEGER PRIMARY KEY, uri TEXT, data BLOB)")
    rows = [(1, A, b"one"), (2, B, b"two"), (5, A, b"three")]
    connection.executemany("INSERT INTO facts VALUES (?, ?, ?)", rows)


def to_this_form(connection: sqlite3.Connection) -> None:
    connection.execute("DROP TABLE meta")
    for step in schema.STEPS:
        step(connection)
    connection.execute("INSERT INTO channels (uri) SELECT DISTINCT uri FROM facts")
    connection.execute(
        "INSERT INTO entries (seq, channel, id, data) SELECT place, number, 'old-' || place, data"
        " FROM facts JOIN channels USING (uri)"
    )
    connection.execute("DROP TABLE facts")


def with_steps(monkeypatch: pytest.MonkeyPatch, *steps: schema.Step) -> None:
    """A future in which these steps lead to the form of today."""
    monkeypatch.setattr(database, "migrate", lambda c, v: schema.migrate(c, v, steps))
    monkeypatch.setattr(database, "version_of", lambda c, p: schema.version_of(c, p, len(steps)))


def make_older_file(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        older_form(connection)


async def test_an_older_file_is_brought_to_this_form(
    backend: Sqlite, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_older_file(backend.path)
    with_steps(monkeypatch, older_form, to_this_form)
    for _ in range(2):
        async with backend.opened() as log:
            found = await everything(log)
            assert [(e.seq, e.channel, e.data) for e in found[:3]] == [
                (1, A, b"one"),
                (2, B, b"two"),
                (5, A, b"three"),
            ]
            assert log.last_seq == max(found[-1].seq, log.epoch.first)
            await stored(log, A, max(e.seq for e in found if e.channel == A), b"new")
    with closing(sqlite3.connect(backend.path)) as connection:
        assert connection.execute("SELECT value FROM meta WHERE key = 'version'").fetchone() == (2,)


async def test_a_step_that_fails_leaves_the_older_file_as_it_was(
    backend: Sqlite, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(connection: sqlite3.Connection) -> None:
        to_this_form(connection)
        connection.execute("INSERT INTO nowhere VALUES (1)")

    make_older_file(backend.path)
    with_steps(monkeypatch, older_form, fails)
    with pytest.raises(OpenError, match="nowhere"):
        await backend.open()
    with closing(sqlite3.connect(backend.path)) as connection:
        assert connection.execute("SELECT count(*) FROM facts").fetchone() == (3,)
        assert connection.execute("SELECT value FROM meta").fetchall() == [(1,)]
    with_steps(monkeypatch, older_form, to_this_form)
    async with backend.opened() as log:
        assert [entry.seq for entry in await everything(log)] == [1, 2, 5]
