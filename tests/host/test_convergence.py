"""Whatever happens on the way, all mirrors, the host and its log end up with the same.

A failure names its seed: `run_schedule(seed)` does the same again.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from session_server.log import Log, Sync
from session_server.log.memory import MemoryLog
from session_server.log.opening import open_log
from tests.effort import tries
from tests.host.agreement import Diverged
from tests.host.faults import HastyLog
from tests.host.links import LossyLink, ShufflingLink
from tests.host.schedules import Schedule

SCHEDULES = tries(in_ci=1_000, at_hand=30)
ON_DISK = tries(in_ci=40, at_hand=3)
BLOCKS = tries(in_ci=10, at_hand=3)


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
    "design.words.order",
    "design.record.not-delivered",
    "design.log.snapshots",
)
@pytest.mark.parametrize("block", range(BLOCKS))
def test_every_mirror_the_host_and_a_replay_of_the_log_are_equal(
    block: int, record_property: Any
) -> None:
    seeds = range(block, SCHEDULES, BLOCKS)
    restarts = envelopes = resumptions = 0
    for seed in seeds:
        try:
            schedule = run_schedule(seed)
        except Diverged as diverged:
            diverged.add_note(f"in schedule {seed}")
            raise
        restarts += schedule.restarts
        envelopes += len(schedule.seen)
        resumptions += sum(len(client.mirror.resumptions) - 1 for client in schedule.clients)
    record_property("schedules", len(seeds))
    record_property("envelopes", envelopes)
    record_property("resumptions", resumptions)
    record_property("restarts", restarts)
    assert min(restarts, envelopes, resumptions) > 0


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


# A check that cannot fail is a defect


SEEDS = range(tries(in_ci=10, at_hand=4))


def diverging(**options: Any) -> list[int]:
    found = []
    for seed in SEEDS:
        try:
            run_schedule(seed, trouble=0.0, **options)
        except Diverged:
            found.append(seed)
    return found


def test_the_check_notices_an_action_that_got_lost() -> None:
    LossyLink.lost = 0
    assert len(diverging(make_link=LossyLink)) > len(SEEDS) // 2
    assert LossyLink.lost > 0


def test_the_check_notices_an_action_that_overtook_another() -> None:
    ShufflingLink.shuffled = 0
    assert len(diverging(make_link=ShufflingLink)) > len(SEEDS) // 2
    assert ShufflingLink.shuffled > 0


def test_the_check_notices_a_delivery_before_it_was_durable() -> None:
    """Only a crash tells: what was seen is not in the log, or is something else there."""
    assert len(diverging(make_log=HastyLog)) > len(SEEDS) // 2
