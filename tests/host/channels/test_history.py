"""What is kept for clients that come back, and what becomes of the rest."""

import asyncio
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from session_server.host.channels import channel, history
from session_server.host.channels.history import EnvelopeMemory, History
from session_server.host.channels.publisher import NO_SNAPSHOT
from session_server.host.persistence import maintenance
from session_server.host.persistence.maintenance import trim_heap
from session_server.log import RefusedBecause, StoredSnapshot
from session_server.log.opening import open_log
from session_server.log.protocol import FailedError
from session_server.schemas.limits import ENVELOPE_BYTES_PER_HOST
from session_server.schemas.log_entries import CLIENTS_CHANNEL
from tests.ahp.actions import title_changed
from tests.effort import PATIENCE
from tests.host.harness import SESSION, hosting, joined, until_trimmed, with_session
from tests.waiting import until


def filled(*times: int) -> History:
    kept = History(EnvelopeMemory())
    for seq, at in enumerate(times, 1):
        kept.keep(seq, at, b"%d" % seq)
    return kept


def test_what_came_after_a_position_is_given_in_order() -> None:
    kept = filled(10, 10, 10)
    assert kept.since(1) == [(2, b"2"), (3, b"3")]
    assert kept.since(3) == []
    assert kept.since(0) == [(1, b"1"), (2, b"2"), (3, b"3")]


def test_a_position_before_the_floor_cannot_be_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "ENVELOPES_KEPT", 2)
    kept = filled(10, 10, 10)
    assert kept.since(0) is None
    assert kept.since(1) == [(2, b"2"), (3, b"3")]


def test_what_is_too_old_is_forgotten() -> None:
    kept = filled(10, 20, 30)
    assert not kept.forget(10)
    assert kept.forget(25)
    assert kept.floor == 2
    assert kept.since(1) is None
    assert kept.since(2) == [(3, b"3")]


def test_all_channels_together_keep_a_bounded_number_of_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(history, "ENVELOPE_BYTES_PER_HOST", 10)
    memory = EnvelopeMemory()
    quiet, busy, last = History(memory), History(memory), History(memory)
    quiet.keep(1, 10, b"x" * 4)
    busy.keep(2, 10, b"x" * 3)
    quiet.keep(3, 10, b"x")
    busy.keep(4, 10, b"x")
    last.keep(5, 10, b"x" * 3)
    assert memory.bytes == 4 + 3
    assert (quiet.floor, quiet.outlived, quiet.since(1)) == (3, 0, None)  # the log still has it
    assert busy.since(2) == [(4, b"x")]
    assert quiet.forget(11)
    assert quiet.outlived == 3
    busy.let_go()
    last.let_go()
    last.let_go()
    assert memory.bytes == 0


def test_the_bytes_of_what_grows_old_are_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ENVELOPE_BYTES_PER_HOST > history.ENVELOPE_BYTES_KEPT
    memory = EnvelopeMemory()
    kept = History(memory)
    monkeypatch.setattr(history, "ENVELOPES_KEPT", 2)
    for seq in range(1, 4):
        kept.keep(seq, 10 * seq, b"xx")
    assert memory.bytes == 4
    kept.forget(25)
    assert memory.bytes == 2


async def test_the_envelopes_of_a_session_go_with_it() -> None:
    async with hosting() as host:
        ana = await with_session(host)
        await ana.act(title_changed("x"))
        kept = host.sessions[SESSION].publisher.history
        assert kept in host.envelopes._histories
        await ana.call("disposeSession", SESSION)
        assert kept not in host.envelopes._histories


async def test_a_snapshot_of_a_state_that_is_over_takes_no_memory() -> None:
    async with hosting() as host:
        ana = await with_session(host)
        await ana.call("subscribe", SESSION)
        session = host.sessions[SESSION]
        assert session.publisher._snapshot[0] is session.committed
        await ana.act(title_changed("x"))
        assert session.publisher._snapshot == NO_SNAPSHOT


def test_large_envelopes_are_bounded_by_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "ENVELOPE_BYTES_KEPT", 10)
    kept = History(EnvelopeMemory())
    kept.keep(1, 10, b"x" * 6)
    kept.keep(2, 10, b"x" * 4)
    assert kept.since(0) == [(1, b"x" * 6), (2, b"x" * 4)]
    kept.keep(3, 10, b"x")
    assert kept.since(0) is None
    assert kept.since(1) == [(2, b"x" * 4), (3, b"x")]
    kept.keep(4, 10, b"x" * 11)
    assert (kept.floor, kept.since(4)) == (4, [])


def test_where_nothing_happens_nothing_is_kept_at_hand() -> None:
    kept = filled(10, 20)
    assert not kept.rest(20)
    assert kept.rest(21)
    assert not kept.rest(21)
    assert (kept.since(1), kept.since(2)) == (None, [])
    assert kept.outlived == 0, "the log still has it"
    kept.keep(3, 30, b"3")
    assert kept.since(2) == [(3, b"3")]
    assert not kept.forget(20)
    assert kept.forget(21)
    assert kept.outlived == 2


def test_what_a_snapshot_covered_at_the_start_grows_old_as_well() -> None:
    kept = History(EnvelopeMemory())
    kept.resume(7, 100)
    assert (kept.since(6), kept.since(7)) == (None, [])
    assert not kept.forget(100)
    assert kept.forget(101)
    assert kept.outlived == 7


@pytest.mark.proves("design.log.bounded")
async def test_a_quiet_session_gets_a_snapshot_and_its_log_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no space for the first one, so another is taken."""
    store = f"sqlite:///{tmp_path / 'log.db'}"
    monkeypatch.setattr(maintenance, "AGING_SECONDS", 0.01)
    monkeypatch.setattr(maintenance, "HISTORY_IDLE_MS", -1)
    log = await open_log(store)
    save, refused = log.save_snapshot, asyncio.Event()

    async def save_the_second(snapshot: StoredSnapshot) -> None:
        if snapshot.channel == SESSION and not refused.is_set():
            refused.set()
            raise FailedError(RefusedBecause.FULL, "There is no space left.")
        await save(snapshot)

    log.save_snapshot = save_the_second  # type: ignore[method-assign]
    async with hosting(log) as host:
        ana = await with_session(host)
        await ana.act(title_changed("Oslo"))
        async with asyncio.timeout(PATIENCE):
            while SESSION not in {snapshot.channel for snapshot in await log.snapshots()}:
                await ana.call("ping")
        assert refused.is_set()
        assert host.sessions[SESSION].publisher.history.since(0) is None
        assert await log.floors() == {}
        before: Any = host.record(SESSION)
    async with hosting(await open_log(store)) as host:
        await host.loaded.loaded(SESSION)
        assert host.record(SESSION) == before
        assert host.sessions[SESSION].entries_since_snapshot == 0


@pytest.mark.proves("design.log.bounded")
@pytest.mark.parametrize("is_quiet", [True, False])
async def test_a_host_that_stops_takes_snapshots_of_what_was_quiet(
    tmp_path: Path, is_quiet: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was active is folded again, so that its clients get what they missed."""
    store = f"sqlite:///{tmp_path / 'log.db'}"
    if is_quiet:
        monkeypatch.setattr(maintenance, "QUIET_AT_STOP_MS", -1_000)
    async with hosting(await open_log(store)) as host:
        ana = await with_session(host)
        await ana.act(title_changed("Oslo"))
        before: Any = host.record(SESSION)
        position = host.sessions[SESSION].last_seq
    async with hosting(await open_log(store)) as host:
        channel = host.sessions[SESSION]
        assert host.loaded.is_evicted(SESSION) == is_quiet
        await host.loaded.loaded(SESSION)
        assert channel.committed == before
        assert (channel.entries_since_snapshot == 0) == is_quiet
        assert (channel.publisher.history.since(position - 1) is None) == is_quiet
        assert len(await host.log.read(after=0, limit=9, channels=(SESSION,))) == 3


async def test_what_nobody_can_come_back_for_goes_with_the_next_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel, "ENTRIES_BETWEEN_SNAPSHOTS", 5)
    async with hosting(log := await open_log(f"sqlite:///{tmp_path / 'log.db'}")) as host:
        for number in range(12):
            await joined(host, client_id=f"c{number}")
        await until_trimmed(host, CLIENTS_CHANNEL)
        left = await log.read(after=0, limit=100, channels=(CLIENTS_CHANNEL,))
        assert len(left) < 12
        assert host.clients.find("c0") is not None


@pytest.mark.proves("design.log.bounded")
@pytest.mark.parametrize("why", ["too many", "too old"])
async def test_what_is_forgotten_goes_from_the_log_once_a_snapshot_covers_it(
    why: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if why == "too many":
        monkeypatch.setattr(history, "ENVELOPES_KEPT", 5)
        monkeypatch.setattr(channel, "ENTRIES_BETWEEN_SNAPSHOTS", 20)
    else:
        monkeypatch.setattr(maintenance, "AGING_SECONDS", 0.01)
        monkeypatch.setattr(maintenance, "HISTORY_LIFETIME_MS", -1)

    store = f"sqlite:///{tmp_path / 'log.db'}"
    log = await open_log(store)
    async with hosting(log) as host:
        ana = await with_session(host)
        for number in range(30):
            await ana.act(title_changed(str(number)))
        floor = await until_trimmed(host)
        left = await log.read(after=0, limit=1_000, channels=(SESSION,))
        assert len(left) < 30
        assert all(entry.seq > floor for entry in left)
        before: Any = host.record(SESSION)
    async with hosting(await open_log(store)) as host:
        await host.loaded.loaded(SESSION)
        assert host.record(SESSION) == before


async def test_memory_is_given_back_once_after_sessions_are_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trimmed: list[int] = []
    monkeypatch.setattr(maintenance, "GIVING_BACK_SECONDS", 0.05)
    monkeypatch.setattr(maintenance, "trim_heap", lambda: trimmed.append(1))
    async with hosting() as host:
        ana = await joined(host)
        for number in range(5):
            await ana.call("createSession", f"ahp-session:/{number}", provider="people")
        for number in range(5):
            await ana.call("disposeSession", f"ahp-session:/{number}")
        await until(lambda: trimmed)
    assert sum(trimmed) < 5


FRAGMENTED = """
from session_server.host.persistence.maintenance import trim_heap
def resident():
    return int(next(line for line in open("/proc/self/status") if "VmRSS" in line).split()[1])
pieces = [bytes(4_000) for _ in range(20_000)]
kept = pieces[::50]
del pieces
before = resident()
trim_heap()
print(before - resident())
"""


def test_trimming_the_heap_frees_what_lies_between_what_is_used() -> None:
    if platform.libc_ver()[0] != "glibc":
        trim_heap()
        pytest.skip("only glibc can be told")
    done = subprocess.run(
        [sys.executable, "-c", FRAGMENTED], capture_output=True, text=True, timeout=60, check=True
    )
    assert int(done.stdout) > 30_000
