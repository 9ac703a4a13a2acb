"""A log that may have lost entries, or is a copy, is not taken for the one that clients know."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from session_server.log import Epoch, StoredSnapshot
from session_server.log.protocol import EPOCH_STEP, DataLostError
from session_server.log.sqlite import claim
from session_server.log.sqlite.claim import SUFFIX
from tests.log.logs import Sqlite, SqliteNormal, end_of_wal, everything, stored, wal_of
from tests.log.test_sqlite_kill import killed_while_appending

pytestmark = pytest.mark.proves("design.log.epoch")

A = "ahp-session:/a"


async def epoch_of(backend: Sqlite) -> str:
    async with backend.opened() as log:
        return log.epoch


async def grown(backend: Sqlite) -> str:
    """The epoch of a log to which something was added."""
    async with backend.opened() as log:
        found = await everything(log)
        await stored(log, A, found[-1].seq if found else 0, b"x")
        return log.epoch


def files_of(backend: Sqlite) -> list[Path]:
    return list(backend.folder.glob("log.db*"))


def claim_of(backend: Sqlite) -> Path:
    return backend.path.with_name(backend.path.name + SUFFIX)


async def test_a_copy_is_another_log(tmp_path: Path) -> None:
    original = Sqlite(tmp_path)
    epoch = await grown(original)
    copies = []
    for name, files in (("alone", [original.path]), ("whole", files_of(original))):
        (tmp_path / name).mkdir()
        for file in files:
            shutil.copy2(file, tmp_path / name)
        copies.append(Sqlite(tmp_path / name))
    assert len({epoch, *[await epoch_of(copy) for copy in copies]}) == 3
    assert await epoch_of(original) == epoch


async def test_a_log_that_is_moved_stays_the_same(tmp_path: Path) -> None:
    epoch = await grown(Sqlite(tmp_path))
    (tmp_path / "moved").mkdir()
    for file in files_of(Sqlite(tmp_path)):
        file.rename(tmp_path / "moved" / file.name)
    assert await epoch_of(Sqlite(tmp_path / "moved")) == epoch


async def test_a_backup_that_lacks_entries_is_another_log(tmp_path: Path) -> None:
    backend = Sqlite(tmp_path)
    epoch = await grown(backend)
    backup = backend.path.read_bytes()
    assert await grown(backend) == epoch
    backend.path.write_bytes(backup)
    backend.accepts_loss = True
    restored = await epoch_of(backend)
    assert restored != epoch
    backend.accepts_loss = False
    assert await epoch_of(backend) == restored


async def test_a_backup_that_lacks_nothing_is_the_same_log(tmp_path: Path) -> None:
    backend = Sqlite(tmp_path)
    epoch = await grown(backend)
    backup = backend.path.read_bytes()
    assert await epoch_of(backend) == epoch
    backend.path.write_bytes(backup)
    assert await epoch_of(backend) == epoch


async def test_another_log_in_its_place_is_another_log(tmp_path: Path) -> None:
    backend, other = Sqlite(tmp_path), Sqlite(tmp_path / "other")
    other.folder.mkdir()
    await grown(backend)
    epochs = {await grown(backend), await grown(other), await grown(other), await grown(other)}
    backend.path.write_bytes(other.path.read_bytes())
    assert await epoch_of(backend) not in epochs
    assert len(epochs) == 2


async def test_what_was_forgotten_on_purpose_is_not_lost(tmp_path: Path) -> None:
    backend = Sqlite(tmp_path)
    epoch = await grown(backend)
    async with backend.opened() as log:
        await log.save_snapshot(StoredSnapshot(A, log.last_seq, b""))
        await log.trim(A, log.last_seq)
    assert await epoch_of(backend) == epoch
    async with backend.opened() as log:
        await log.drop(A)
    assert await epoch_of(backend) == epoch


@pytest.mark.parametrize("text", [b"", b"\xff\0 not a claim", b"1 2 3", b"x y z 4 5\n"])
async def test_a_log_whose_claim_is_illegible_is_another_log(tmp_path: Path, text: bytes) -> None:
    backend = Sqlite(tmp_path)
    epoch = await grown(backend)
    claim_of(backend).write_bytes(text)
    assert await epoch_of(backend) != epoch


async def test_a_log_that_lost_the_end_of_its_wal_is_another_log(tmp_path: Path) -> None:
    backend = Sqlite(tmp_path)
    epoch = await epoch_of(backend)
    durable, _ = killed_while_appending(backend.path, 200)
    os.truncate(backend.wal, end_of_wal(backend.wal) // 3)
    backend.accepts_loss = True
    async with backend.opened() as log:
        assert (await everything(log))[-1].seq < max(durable.values()) < log.epoch.first
        assert log.epoch != epoch


def lose_database(path: Path) -> None:
    path.unlink()


def empty_database(path: Path) -> None:
    path.write_bytes(b"")


def lose_wal(path: Path) -> None:
    wal_of(path).unlink()


@pytest.mark.parametrize("lose", [lose_database, empty_database, lose_wal])
@pytest.mark.parametrize("kind", [Sqlite, SqliteNormal])
async def test_a_log_that_lost_entries_is_opened_only_by_who_accepts_that(
    tmp_path: Path,
    kind: type[Sqlite],
    lose: Callable[[Path], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    backend = kind(tmp_path)
    epoch = await epoch_of(backend)
    durable, _ = killed_while_appending(backend.path, 200)
    kept = {file: file.read_bytes() for file in files_of(backend)}
    lose(backend.path)
    left = {file: file.read_bytes() for file in files_of(backend) if file.stat().st_size}
    for _ in range(2):
        with pytest.raises(DataLostError, match="--accept-data-loss") as refused:
            await backend.open()
        assert refused.value.code == "dataLost"
    assert {file: file.read_bytes() for file in left if not file.match("*-shm")} == {
        file: text for file, text in left.items() if not file.match("*-shm")
    }, "nothing is touched before the operator has decided"

    for file, text in kept.items():
        file.write_bytes(text)
    async with backend.opened() as log:
        assert durable.items() <= {e.id: e.seq for e in await everything(log)}.items()
    lose_database(backend.path)
    backend.accepts_loss = True
    async with backend.opened() as log:
        assert log.epoch != epoch
        assert await everything(log) == []
    assert "The loss is accepted." in caplog.text
    backend.accepts_loss = False
    async with backend.opened() as log:
        await stored(log, A, 0, b"x")


async def test_a_power_cut_without_full_sync_is_no_reason_not_to_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    boot = tmp_path / "boot_id"
    boot.write_text("this-boot\n")
    monkeypatch.setattr(claim, "BOOT_ID", boot)
    backend = SqliteNormal(tmp_path)
    await grown(backend)
    backup = backend.path.read_bytes()
    async with backend.opened() as log:
        await stored(log, A, log.last_seq, b"x")
        await log.find([])
        while_open = claim_of(backend).read_bytes()
    backend.path.write_bytes(backup)
    claim_of(backend).write_bytes(while_open)
    with pytest.raises(DataLostError):
        await backend.open()
    boot.write_text("the-next-boot\n")
    async with backend.opened() as log:
        assert len(await everything(log)) == 1
    assert "a power cut can do that" in caplog.text


@pytest.mark.parametrize("is_closed", [True, False])
@pytest.mark.parametrize("is_rebooted", [True, False])
@pytest.mark.parametrize("kind", [Sqlite, SqliteNormal])
async def test_without_full_sync_a_log_that_was_open_does_not_outlive_a_reboot(
    kind: type[Sqlite],
    is_rebooted: bool,
    is_closed: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    boot = tmp_path / "boot_id"
    boot.write_text("this-boot\n")
    monkeypatch.setattr(claim, "BOOT_ID", boot)
    backend = kind(tmp_path)
    async with backend.opened() as log:
        await stored(log, A, 0, b"x")
        await log.find([])
        epoch, while_open = log.epoch, claim_of(backend).read_bytes()
    if not is_closed:
        claim_of(backend).write_bytes(while_open)
    if is_rebooted:
        boot.write_text("the-next-boot\n")
    may_have_lost = kind is SqliteNormal and is_rebooted and not is_closed
    assert (await epoch_of(backend) != epoch) == may_have_lost


async def test_without_full_sync_and_a_boot_id_a_new_epoch_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim, "BOOT_ID", tmp_path / "missing")
    backend = SqliteNormal(tmp_path)
    async with backend.opened() as log:
        epoch, while_open = log.epoch, claim_of(backend).read_bytes()
    assert await epoch_of(backend) == epoch
    claim_of(backend).write_bytes(while_open)
    assert await epoch_of(backend) != epoch


async def test_no_position_of_an_earlier_epoch_is_one_of_the_next(tmp_path: Path) -> None:
    """Also where the same backup is put back again and again, with or without a claim."""
    backend = Sqlite(tmp_path)
    backend.accepts_loss = True
    await grown(backend)
    backup = backend.path.read_bytes()
    seen: list[int] = []
    for number in range(6):
        async with backend.opened() as log:
            last = (await everything(log))[-1].seq
            given = await stored(log, A, last, *[b"x"] * 100)
            assert not [seq for seq in seen if log.epoch.first <= seq <= log.last_seq]
            seen += (log.epoch.first, *given) if number else ()
        backend.path.write_bytes(backup)
        if number % 2:
            claim_of(backend).unlink()


@pytest.mark.parametrize("text", ["", "x", "12", "-x", "1.5-x", "0123456789abcdef"])
def test_an_invalid_epoch_text_is_not_an_epoch(text: str) -> None:
    assert Epoch.read(text) is None
    epoch = Epoch.after(5)
    assert Epoch.read(str(epoch)) == epoch


def test_an_epoch_is_beyond_what_is_known_though_the_clock_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("session_server.log.protocol.time.time", lambda: 0.0)
    assert Epoch.after(0).first >= EPOCH_STEP
    assert Epoch.after(2**40).first >= 2**40 + EPOCH_STEP


async def test_a_backup_of_database_and_claim_copied_over_both_is_another_log(
    tmp_path: Path,
) -> None:
    """The inodes stay, and both files agree; only the time of the copy tells."""
    backend = Sqlite(tmp_path)
    epoch = await grown(backend)
    assert await epoch_of(backend) == epoch
    seq, written, rest = claim_of(backend).read_bytes().split(b" ", 2)
    assert abs(int(written) - time.time_ns()) < 60 * 10**9
    an_hour_ago = b"%020d" % (int(written) - 3600 * 10**9)
    claim_of(backend).write_bytes(b" ".join((seq, an_hour_ago, rest)))
    restored = await epoch_of(backend)
    assert restored != epoch
    assert await epoch_of(backend) == restored
