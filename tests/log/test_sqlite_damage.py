"""What is read back from a file is what was written, or is marked; and what a backup is."""

import asyncio
import os
import secrets
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from session_server.log import Batch, Log, NewEntry, StoredSnapshot
from session_server.log.protocol import DamagedError, NotWritableError, OpenError
from session_server.log.sqlite import schema, store
from session_server.log.sqlite.backup import back_up, examined
from session_server.log.sqlite.positions import Positions
from tests.log.logs import (
    Sqlite,
    change,
    damage_entry,
    damage_snapshot,
    everything,
    settled,
    stored,
)
from tests.log.test_sqlite_kill import assert_whole

A, B = "ahp-session:/a", "ahp-session:/b"
ROOT = Path(__file__).resolve().parents[2]
BOUND = 60


@pytest.fixture
def backend(tmp_path: Path) -> Sqlite:
    return Sqlite(tmp_path)


# Checksums


def setting(what: str) -> Callable[[Path, int], None]:
    return lambda path, seq: change(path, f"UPDATE entries SET {what} WHERE seq = {seq}")


DAMAGES: dict[str, Callable[[Path, int], None]] = {
    "one byte": damage_entry,
    "a number for data": setting("data = 7"),
    "another channel": setting("channel = 2"),
}


@pytest.mark.proves("design.log.checksums")
@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_entry_is_marked_and_the_others_are_read(
    backend: Sqlite, damage: str
) -> None:
    async with backend.opened() as log:
        _, second, _ = await stored(log, A, 0, b"one", b"two", b"three")
        await stored(log, B, 0, b"four")
    DAMAGES[damage](backend.path, second)
    async with backend.opened() as log:
        found = await everything(log)
        assert [entry.is_intact for entry in found] == [True, False, True, True]
        assert [entry.data for entry in found if entry.is_intact] == [b"one", b"three", b"four"]


@pytest.mark.proves("design.log.checksums")
async def test_a_damaged_id_keeps_nothing_from_being_read(backend: Sqlite) -> None:
    async with backend.opened() as log:
        one, _ = await stored(log, A, 0, b"one", b"two")
    setting("id = CAST(x'ff00fe' AS TEXT)")(backend.path, one)
    async with backend.opened() as log:
        found = [(entry.data, entry.is_intact) for entry in await everything(log)]
        assert found == [(b"one", True), (b"two", True)]


@pytest.mark.proves("design.log.checksums")
async def test_entries_that_changed_places_are_marked(backend: Sqlite) -> None:
    async with backend.opened() as log:
        one, two, _ = await stored(log, A, 0, b"x", b"y", b"z")
    setting("seq = -1")(backend.path, one)
    setting(f"seq = {one}")(backend.path, two)
    setting(f"seq = {two}")(backend.path, -1)
    async with backend.opened() as log:
        assert [entry.is_intact for entry in await everything(log)] == [False, False, True]


@pytest.mark.proves("design.log.checksums")
async def test_a_damaged_snapshot_is_marked(backend: Sqlite) -> None:
    async with backend.opened() as log:
        (one,) = await stored(log, A, 0, b"1")
        (other,) = await stored(log, B, 0, b"2")
        await log.save_snapshot(StoredSnapshot(A, one, b"of a"))
        await log.save_snapshot(StoredSnapshot(B, other, b"of b"))
    damage_snapshot(backend.path, A)
    async with backend.opened() as log:
        snapshots = {snapshot.channel: snapshot for snapshot in await log.snapshots()}
        assert not snapshots[A].is_intact
        assert snapshots[B] == StoredSnapshot(B, other, b"of b")
        await log.save_snapshot(StoredSnapshot(A, one, b"again"))
        assert StoredSnapshot(A, one, b"again") in await log.snapshots()


def make_file_of_first_form(path: Path) -> None:
    """As the version before wrote it: no checksums, and a file that cannot give pages back."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = wal")
        schema.migrate(connection, 0, schema.STEPS[:1])
        connection.execute("UPDATE meta SET value = 'before' WHERE key = 'epoch'")
        connection.execute("INSERT INTO channels VALUES (1, ?, 0)", (A,))
        rows = [(seq, 1, f"id-{seq}", b"%d" % seq) for seq in (1, 2, 3)]
        connection.executemany("INSERT INTO entries VALUES (?, ?, ?, ?)", rows)
        connection.execute("INSERT INTO snapshots VALUES (1, 2, ?)", (b"after two",))


@pytest.mark.proves("design.log.checksums")
async def test_a_file_of_the_version_before_opens_and_goes_on(backend: Sqlite) -> None:
    make_file_of_first_form(backend.path)
    for _ in range(2):
        async with backend.opened() as log:
            found = await everything(log)
            assert [entry.data for entry in found[:3]] == [b"1", b"2", b"3"]
            assert all(entry.is_intact for entry in found)
            assert await log.snapshots() == [StoredSnapshot(A, 2, b"after two")]
            (new,) = await stored(log, A, found[-1].seq, b"new")
    damage_entry(backend.path, new)
    async with backend.opened() as log:
        assert [entry.is_intact for entry in await everything(log)] == [True] * 4 + [False]


# Giving space back


def free_pages(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        (free,) = connection.execute("PRAGMA freelist_count").fetchone()
        return int(free)


async def fill(log: Log, last: int = 0) -> None:
    """Some megabytes."""
    for _ in range(10):
        *_, last = await stored(log, A, last, *[secrets.token_bytes(2_000)] * 200)


@pytest.mark.proves("design.log.shrinks")
@pytest.mark.parametrize("form", ["first", "latest"])
async def test_the_file_becomes_smaller_when_a_session_is_gone(
    backend: Sqlite, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.setattr(store, "SPARE_PAGES", 10)
    if form == "first":
        make_file_of_first_form(backend.path)
    async with backend.opened() as log:
        (kept,) = await stored(log, B, 0, b"kept")
        await fill(log, 3 if form == "first" else 0)
    large = backend.path.stat().st_size
    assert large > 4_000_000
    async with backend.opened() as log:
        await log.drop(A)
        while backend.path.stat().st_size > large // 10:  # the test's own bound ends it
            (kept,) = await stored(log, B, kept, b"and writing goes on")
        assert (await everything(log))[0].data == b"kept"
    assert free_pages(backend.path) <= 10


async def test_some_free_pages_stay_for_what_is_written_next(backend: Sqlite) -> None:
    async with backend.opened() as log:
        await fill(log)
        await log.drop(A)
    assert 0 < free_pages(backend.path) <= store.SPARE_PAGES


def test_a_file_that_cannot_become_smaller_is_not_tried_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the first form that could not be written anew, for want of space."""
    monkeypatch.setattr(store, "SPARE_PAGES", 10)
    with closing(sqlite3.connect(tmp_path / "old.db", isolation_level=None)) as connection:
        schema.migrate(connection, 0)
        connection.execute("CREATE TABLE large (data)")
        connection.execute("INSERT INTO large VALUES (zeroblob(1000000))")
        connection.execute("DROP TABLE large")
        assert not store.Store(connection, Positions()).shrink()


# Backups


def names_in(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


@pytest.mark.proves("design.log.backup")
async def test_a_backup_is_made_while_the_log_is_written(backend: Sqlite, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    async with backend.opened() as log:
        (last,) = await stored(log, A, 0, b"1")
        await log.save_snapshot(StoredSnapshot(A, last, b"after one"))
        made = back_up(backend.path, copy)
        assert (made.entries, made.channels, made.damaged) == (1, 1, {})
        assert made.size == copy.stat().st_size
        assert copy.stat().st_mode & 0o077 == 0
        await stored(log, A, last, b"2")
        assert len(await everything(log)) == 2
    assert names_in(tmp_path) == {"log.db", "log.db-claim", "copy.db"}
    restored = Sqlite(tmp_path / "elsewhere")
    restored.folder.mkdir()
    copy.rename(restored.path)
    async with restored.opened() as again:
        assert [entry.data for entry in await everything(again)] == [b"1"]
        assert await again.snapshots() == [StoredSnapshot(A, last, b"after one")]


def reported_in(output: Path) -> set[str]:
    """The entries that a process has reported as durable so far."""
    lines = output.read_text().splitlines(keepends=True)
    said = [line.split()[1:] for line in lines if line.startswith("durable") and line[-1] == "\n"]
    return {pair.partition(":")[2] for pairs in said for pair in pairs}


def copied_while_busy(source: Path, folder: Path) -> list[tuple[Sqlite, set[str]]]:
    """Copies, each with what had been reported before it was begun."""
    output = folder / "output"
    command = [sys.executable, "-m", "tests.log.appending", str(source)]
    copies: list[tuple[Sqlite, set[str]]] = []
    reported: set[str] = set()
    with output.open("wb") as file, subprocess.Popen(command, cwd=ROOT, stdout=file) as process:
        try:
            for number in range(4):
                enough, deadline = len(reported) + 100, time.monotonic() + BOUND
                while len(reported := reported_in(output)) < enough:
                    assert time.monotonic() < deadline, "nothing is written"
                    time.sleep(0.01)
                copy = Sqlite(folder / str(number))
                copy.folder.mkdir()
                assert back_up(source, copy.path).damaged == {}
                copies.append((copy, reported))
        finally:
            process.kill()
    return copies


@pytest.mark.slow
@pytest.mark.proves("design.log.backup")
async def test_each_backup_of_a_busy_log_is_of_one_moment(backend: Sqlite, tmp_path: Path) -> None:
    for copy, reported in await asyncio.to_thread(copied_while_busy, backend.path, tmp_path):
        async with copy.opened() as log:
            found = await everything(log)
        assert_whole(found)
        assert reported <= {entry.id for entry in found}


@pytest.mark.proves("design.log.backup", "design.log.epoch")
@pytest.mark.parametrize("has_grown", [False, True])
async def test_a_restored_backup_is_another_log(
    backend: Sqlite, tmp_path: Path, has_grown: bool
) -> None:
    """Even where it lacks nothing, and its bytes are written over those that were there."""
    copy = tmp_path / "copy.db"
    async with backend.opened() as log:
        epoch = log.epoch
        (last,) = await stored(log, A, 0, b"1")
        back_up(backend.path, copy)
        if has_grown:
            await stored(log, A, last, b"2")
    backend.path.write_bytes(copy.read_bytes())
    backend.accepts_loss = has_grown
    async with backend.opened() as log:
        assert log.epoch != epoch
        assert [entry.data for entry in await everything(log)] == [b"1"]


async def test_a_backup_names_what_is_damaged_in_it(backend: Sqlite, tmp_path: Path) -> None:
    async with backend.opened() as log:
        (one,) = await stored(log, A, 0, b"1")
        (other,) = await stored(log, B, 0, b"2")
        await log.save_snapshot(StoredSnapshot(B, other, b"of b"))
    damage_entry(backend.path, one)
    damage_snapshot(backend.path, B)
    made = back_up(backend.path, tmp_path / "copy.db")
    assert made.damaged == {
        A: f"its entry {one} does not match its checksum",
        B: f"its snapshot at {other} does not match its checksum",
    }


async def test_a_backup_replaces_no_file_and_leaves_none_that_is_not_whole(
    backend: Sqlite, tmp_path: Path
) -> None:
    async with backend.opened() as log:
        await stored(log, A, 0, *[b"x" * 3_000] * 100)
    taken = tmp_path / "taken"
    taken.write_text("mine")
    with pytest.raises(NotWritableError, match="exists already"):
        back_up(backend.path, taken)
    assert taken.read_text() == "mine"
    with pytest.raises(OpenError, match="There is no database"):
        back_up(tmp_path / "missing.db", tmp_path / "copy.db")
    with pytest.raises(NotWritableError, match="cannot be written"):
        back_up(backend.path, tmp_path / "no folder" / "copy.db")
    os.truncate(backend.path, backend.path.stat().st_size // 2)
    with pytest.raises(DamagedError):
        back_up(backend.path, tmp_path / "copy.db")
    with pytest.raises(DamagedError):
        examined(backend.path)
    assert not any(name.startswith("copy") for name in names_in(tmp_path))


# Entries that last


@pytest.mark.proves("design.log.decisions")
async def test_lasting_entries_are_bounded_by_number_and_size(
    backend: Sqlite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "DECISIONS_KEPT", 3)
    monkeypatch.setattr(store, "DECISION_BYTES_KEPT", 1_000)
    async with backend.opened() as log:
        entries = [NewEntry(f"{n}", b"x" * n, lasts_until=9) for n in (10, 600, 300, 50)]
        await settled(log, Batch(A, 0, tuple(entries)))
        await log.save_snapshot(StoredSnapshot(A, log.last_seq, b""))
        await log.trim(A, log.last_seq, 1)
        assert [len(e.data) for e in await everything(log)] == [600, 300, 50]
        (last,) = await stored(log, A, log.last_seq, b"x" * 60)
        await settled(log, Batch(A, last, (NewEntry("large", b"x" * 700, lasts_until=9),)))
        await log.save_snapshot(StoredSnapshot(A, log.last_seq, b""))
        await log.trim(A, log.last_seq, 1)
        assert [len(e.data) for e in await everything(log)] == [50, 700]
