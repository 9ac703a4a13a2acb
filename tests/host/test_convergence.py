"""Whatever happens on the way, mirrors of all versions, the host and its log agree in the end.

A failure names its seed: `run_schedule(seed)` does the same again.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from session_server.log import Log, Sync
from session_server.log.memory import MemoryLog
from session_server.log.opening import open_log
from tests.ahp.oracle import Diverged
from tests.effort import tries
from tests.host.faulty_logs import HastyLog
from tests.host.links import LossyLink, ShufflingLink
from tests.host.random_schedules import Schedule

SCHEDULES = tries(in_ci=200, at_hand=9)
ON_DISK = tries(in_ci=10, at_hand=3)
BLOCKS = 4


def run_schedule(seed: int, **options: Any) -> Schedule:
    async def run() -> Schedule:
        log = MemoryLog()

        async def opened() -> Log:
            return log

        schedule = Schedule(seed, opened, **options)
        await schedule.run()
        return schedule

    return asyncio.run(run())


def run_schedule_on_disk(seed: int, folder: Path) -> Schedule:
    """The file is opened anew at every start, as another process would."""

    async def run() -> Schedule:
        path = folder / f"{seed}.db"
        logs: list[Log] = []

        async def opened() -> Log:
            for log in logs:
                await log.close()
            logs[:] = [await open_log(f"sqlite:///{path}", sync=Sync.NORMAL)]
            return logs[0]

        schedule = Schedule(seed, opened)
        try:
            await schedule.run()
        finally:
            for log in logs:
                await log.close()
        return schedule

    return asyncio.run(run())


@pytest.mark.proves(
    "ahp.reconnect.replay",
    "ahp.reconnect.seamless",
    "design.deliver.order",
    "design.record.not-delivered",
    "design.log.snapshots",
    "ahp.ahp1.mixed",
)
@pytest.mark.parametrize("block", range(BLOCKS))
def test_every_mirror_the_host_and_a_replay_of_the_log_are_equal(
    block: int, record_property: Any
) -> None:
    seeds = range(block, SCHEDULES, BLOCKS)
    restarts = envelopes = ahp1_envelopes = resumptions = 0
    for seed in seeds:
        try:
            schedule = run_schedule(seed)
        except Diverged as diverged:
            diverged.add_note(f"in schedule {seed}")
            raise
        restarts += schedule.restarts
        envelopes += len(schedule.seen)
        ahp1_envelopes += sum(map(len, schedule.ahp1_seen.values()))
        resumptions += sum(len(client.mirror.resumptions) - 1 for client in schedule.clients)
    record_property("schedules", len(seeds))
    record_property("envelopes", envelopes)
    record_property("ahp1_envelopes", ahp1_envelopes)
    record_property("resumptions", resumptions)
    record_property("restarts", restarts)
    assert min(restarts, envelopes, ahp1_envelopes, resumptions) > 0


def test_they_are_equal_on_a_disk_too(tmp_path: Path) -> None:
    """Disks have a pace of their own, so there may have to be more before one restarts."""
    restarts = 0
    for seed in range(10 * ON_DISK):
        try:
            restarts += run_schedule_on_disk(seed, tmp_path).restarts
        except Diverged as diverged:
            diverged.add_note(f"in schedule {seed} on disk")
            raise
        if seed + 1 >= ON_DISK and restarts > 0:
            return
    pytest.fail("nothing restarted")


def test_they_are_equal_when_acknowledgements_get_lost() -> None:
    for seed in range(SCHEDULES // 10):
        run_schedule(seed, trouble=0.05, kinds=("stored but unknown",))


@pytest.mark.proves("design.memory.evicted")
@pytest.mark.parametrize("block", range(BLOCKS))
def test_they_are_equal_when_sessions_leave_memory_whenever_they_can(
    block: int, record_property: Any
) -> None:
    """With few clients, so that sessions are without a subscriber now and then."""
    evictions = loads = 0
    for seed in range(block, SCHEDULES, BLOCKS):
        try:
            schedule = run_schedule(seed, evicts=True, clients=2 + seed % 5)
        except Diverged as diverged:
            diverged.add_note(f"in schedule {seed} with evictions")
            raise
        evictions += schedule.evictions
        loads += schedule.loads
    record_property("evictions", evictions)
    record_property("loads", loads)
    assert min(evictions, loads) > 0


# A check that cannot fail is a defect


SEEDS = range(tries(in_ci=4, at_hand=3))


def diverging(**options: Any) -> list[int]:
    found = []
    for seed in SEEDS:
        try:
            run_schedule(seed, trouble=0.0, **options)
        except Diverged:
            found.append(seed)
    return found


each_family = pytest.mark.parametrize("versions", [["0.3.0"], ["0.9.0", "1.0.0"]])


@each_family
def test_the_check_notices_an_action_that_got_lost(versions: list[str]) -> None:
    LossyLink.lost = 0
    assert len(diverging(make_link=LossyLink, versions=versions)) > len(SEEDS) // 2
    assert LossyLink.lost > 0


@each_family
def test_the_check_notices_an_action_that_overtook_another(versions: list[str]) -> None:
    ShufflingLink.shuffled = 0
    assert len(diverging(make_link=ShufflingLink, versions=versions)) > len(SEEDS) // 2
    assert ShufflingLink.shuffled > 0


@each_family
def test_the_check_notices_a_delivery_before_it_was_durable(versions: list[str]) -> None:
    """Only a crash tells: what was seen is not in the log, or is something else there."""
    assert len(diverging(make_log=HastyLog, versions=versions)) > len(SEEDS) // 2
