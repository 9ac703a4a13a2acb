"""What is kept for clients that come back, and what becomes of the rest."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from session_server.host import history, upkeep
from session_server.host.history import History
from session_server.log.opening import open_log
from tests.host.harness import SESSION, hosting, run, with_session
from tests.host.test_channel import titled


def filled(*times: int) -> History:
    kept = History()
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


@pytest.mark.proves("design.log.bounded")
@pytest.mark.parametrize("why", ["too many", "too old"])
def test_what_is_forgotten_goes_from_the_log_once_a_snapshot_covers_it(
    why: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if why == "too many":
        monkeypatch.setattr(history, "ENVELOPES_KEPT", 5)
        monkeypatch.setattr(upkeep, "ENTRIES_BETWEEN_SNAPSHOTS", 20)
    else:
        monkeypatch.setattr(upkeep, "AGING_SECONDS", 0.01)
        monkeypatch.setattr(upkeep, "HISTORY_LIFETIME_MS", -1)

    @run
    async def check() -> None:
        store = f"sqlite:///{tmp_path / 'log.db'}"
        log = await open_log(store)
        async with hosting(log) as host:
            ana = await with_session(host)
            for number in range(30):
                await ana.act(titled(str(number)))
            async with asyncio.timeout(5):
                while (floor := (await log.floors()).get(SESSION, 0)) == 0:
                    await ana.call("ping")
            left = await log.read(after=0, limit=1_000, channels=(SESSION,))
            assert len(left) < 30
            assert all(entry.seq > floor for entry in left)
            before: Any = host.record(SESSION)
        async with hosting(await open_log(store)) as host:
            assert host.record(SESSION) == before

    check()
