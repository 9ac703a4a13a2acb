"""Whatever happens on the way, mirrors of all versions, the host and its log agree in the end.

A failure names its seed and options: `run_schedule(seed, **options)` does the same again.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from session_server.log import Log
from session_server.log.memory import MemoryLog
from tests.ahp.oracle import Diverged
from tests.effort import tries
from tests.host.faulty_logs import HastyLog
from tests.host.links import LossyLink, ShufflingLink
from tests.host.random_schedules import Schedule

SCHEDULES = tries(in_ci=200, at_hand=9)
BLOCKS = 4


@contextmanager
def noted(where: str) -> Iterator[None]:
    try:
        yield
    except Diverged as diverged:
        diverged.add_note(where)
        raise


def run_schedule(seed: int, **options: Any) -> Schedule:
    async def run() -> Schedule:
        log = MemoryLog()

        async def opened() -> Log:
            return log

        schedule = Schedule(seed, opened, **options)
        await schedule.run()
        return schedule

    with noted(f"in schedule {seed} with {options}"):
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
        schedule = run_schedule(seed)
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


def test_they_are_equal_when_acknowledgements_get_lost() -> None:
    for seed in range(tries(in_ci=20, at_hand=1)):
        run_schedule(seed, trouble=0.05, kinds=("stored but unknown",))


@pytest.mark.proves("design.memory.evicted")
@pytest.mark.parametrize("block", range(BLOCKS))
def test_they_are_equal_when_sessions_leave_memory_whenever_they_can(
    block: int, record_property: Any
) -> None:
    """With few clients, so that sessions are without a subscriber now and then."""
    evictions = loads = 0
    for seed in range(block, SCHEDULES, BLOCKS):
        schedule = run_schedule(seed, evicts=True, clients=2 + seed % 5)
        evictions += schedule.evictions
        loads += schedule.loads
    record_property("evictions", evictions)
    record_property("loads", loads)
    assert min(evictions, loads) > 0


# A check that cannot fail is a defect


SEEDS = range(tries(in_ci=4, at_hand=3))
DEFECTS: dict[str, dict[str, Any]] = {
    "an action that got lost": {"make_link": LossyLink},
    "an action that overtook another": {"make_link": ShufflingLink},
    "a delivery before it was durable": {"make_log": HastyLog},  # only a crash tells
}


def diverges(seed: int, **options: Any) -> bool:
    try:
        run_schedule(seed, trouble=0.0, **options)
    except Diverged:
        return True
    return False


@pytest.mark.parametrize("versions", [["0.3.0"], ["0.9.0", "1.0.0"]])
@pytest.mark.parametrize("defect", DEFECTS)
def test_the_check_notices(defect: str, versions: list[str]) -> None:
    found = [seed for seed in SEEDS if diverges(seed, versions=versions, **DEFECTS[defect])]
    assert len(found) > len(SEEDS) // 2
