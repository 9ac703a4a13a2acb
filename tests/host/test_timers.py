"""Deadlines and expiries when the time of day jumps, or the machine has slept."""

from typing import Any

import pytest

from session_server.host.host import Host
from session_server.host.persistence.log_status import PROBE_SECONDS
from session_server.host.timers import COMPACT_AT, RECHECK_SECONDS, WallTimers
from session_server.schemas.principals import Principal, Role
from tests.ahp.actions import answer_changed, input_completed, input_requested, text_question
from tests.host.faulty_logs import TroubledLog
from tests.host.harness import (
    AGENT,
    ANA,
    SESSION,
    Client,
    hosting,
    joined,
    record_of,
    with_session,
)
from tests.host.manual_clock import ManualClock

HOUR = 3_600_000
MINUTE = 60_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def ask(host: Host, expires_at: int, request_id: str = "r", **meta: Any) -> Client:
    agent = await joined(host, AGENT, f"agent {request_id}", SESSION)
    question = text_question(**meta.pop("question", {}))
    meta = {"expiresAt": expires_at, **meta}
    asked = await agent.act(input_requested(request_id, question, _meta=meta))
    assert "rejectionReason" not in asked
    return agent


def ways_of_ending(host: Host) -> dict[str, str]:
    outcomes = record_of(host).private.outcomes
    return {outcome.request.id: outcome.via.value for outcome in outcomes}


@pytest.mark.proves("design.deadlines.wall-clock")
@pytest.mark.parametrize("late", [input_completed(q="yes"), answer_changed("y")])
async def test_an_answer_after_the_deadline_is_refused_before_any_timer_has_fired(
    clock: ManualClock, late: dict[str, Any]
) -> None:
    async with hosting(clock=clock) as host:
        client = await with_session(host)
        await ask(host, clock.now() + 10 * MINUTE)
        clock.ahead = HOUR
        refused = await client.act(late)
        assert refused["_meta"]["code"] == "alreadyCompleted"
        assert "timed out" in refused["rejectionReason"]
        assert ways_of_ending(host) == {"r": "timeout"}


@pytest.mark.proves("design.deadlines.wall-clock")
async def test_a_deadline_that_a_jump_of_the_clock_passes_is_noticed_without_an_answer(
    clock: ManualClock,
) -> None:
    async with hosting(clock=clock) as host:
        await with_session(host)
        await ask(host, clock.now() + 10 * MINUTE)
        await ask(host, clock.now() + 2 * HOUR, "later")
        await ask(host, clock.now() + 5 * MINUTE, "sooner")
        clock.ahead = HOUR
        await clock.advance(RECHECK_SECONDS)
        assert ways_of_ending(host) == {"r": "timeout", "sooner": "timeout"}
        clock.ahead = 3 * HOUR
        await clock.advance(RECHECK_SECONDS)
        assert len(ways_of_ending(host)) == 3


async def test_a_clock_that_is_set_back_gives_a_question_its_time_again(clock: ManualClock) -> None:
    async with hosting(clock=clock) as host:
        client = await with_session(host)
        clock.ahead = HOUR
        await ask(host, clock.now() + MINUTE)
        clock.ahead = 0
        assert "rejectionReason" not in await client.act(input_completed(q="yes"))


async def test_who_began_in_time_may_answer_late_where_only_defaults_were_due(
    clock: ManualClock,
) -> None:
    async with hosting(clock=clock) as host:
        client = await with_session(host)
        for request_id in ("begun", "untouched"):
            default = {"defaultValue": "d"}
            at = clock.now() + MINUTE
            await ask(host, at, request_id, onExpiry="defaults", question=default)
        await client.act(answer_changed("y", "begun"))
        clock.ahead = HOUR
        assert "rejectionReason" in await client.act(input_completed("untouched", q="yes"))
        assert "rejectionReason" not in await client.act(input_completed("begun", q="yes"))
        assert ways_of_ending(host) == {"untouched": "default", "begun": "person"}


async def test_an_expiry_that_could_not_be_written_still_goes_before_a_late_answer(
    clock: ManualClock,
) -> None:
    log = TroubledLog()
    async with hosting(log, clock=clock) as host:
        client = await with_session(host)
        await ask(host, clock.now() + MINUTE)
        clock.ahead, log.trouble = HOUR, ["full"] * 10
        assert (await client.act(input_completed(q="yes")))["_meta"]["code"] != "alreadyCompleted"
        log.trouble = []
        await clock.advance(PROBE_SECONDS)
        assert host.log_status.reason is None
        assert (await client.act(input_completed(q="yes")))["_meta"]["code"] == "alreadyCompleted"
        assert ways_of_ending(host) == {"r": "timeout"}


async def test_a_session_that_goes_takes_its_timer_with_it(clock: ManualClock) -> None:
    async with hosting(clock=clock) as host:
        client = await with_session(host)
        await ask(host, clock.now() + MINUTE)
        assert len(host.timers) == 1
        await client.call("disposeSession", SESSION)
        assert len(host.timers) == 0


# Credentials


def guest(expires_at: int) -> Principal:
    return Principal(id="share:1", role=Role.ANSWERER, credential="token", expires_at=expires_at)


@pytest.mark.proves("design.deadlines.wall-clock")
async def test_an_expired_credential_ends_its_connection_when_the_clock_jumps(
    clock: ManualClock,
) -> None:
    async with hosting(clock=clock) as host:
        idle = await joined(host, guest(clock.now() + HOUR), "idle")
        active = await joined(host, guest(clock.now() + HOUR), "active")
        other = await joined(host, guest(clock.now() + 3 * HOUR), "other")
        clock.ahead = 2 * HOUR
        active.say({"jsonrpc": "2.0", "id": 9, "method": "ping", "params": {}})
        assert active.closed == (4500, "your token has expired")
        assert active.received[-1].get("id") != 9
        await clock.advance(RECHECK_SECONDS)
        assert idle.closed == (4500, "your token has expired")
        assert other.closed is None
        for client in (idle, active, other):
            client.connection.closed()
        assert len(host.timers) == 0
        assert (await joined(host, ANA, "owner")).closed is None


# Timers


async def test_timers_fire_in_order_and_those_that_were_cancelled_never(
    clock: ManualClock,
) -> None:
    timers, now = WallTimers(clock), clock.now()
    fired: list[str] = []
    timers.at(now + 3_000, lambda: fired.append("c"))
    timers.at(now + 2_000, lambda: fired.append("b"))
    timers.at(now, lambda: fired.append("a"))
    timers.at(now + 2_000, lambda: fired.append("never")).cancel()
    timers.at(now + 2_500, lambda: 1 / 0)
    await clock.advance(0)
    assert fired == ["a"]
    await clock.advance(5)
    assert fired == ["a", "b", "c"]
    assert len(timers) == 0


def test_cancelled_timers_are_not_kept(clock: ManualClock) -> None:
    timers = WallTimers(clock)
    for _ in range(10 * COMPACT_AT):
        timer = timers.at(clock.now() + HOUR, lambda: None)
        timer.cancel()
        timer.cancel()
    assert len(timers) == 0
    assert len(timers._waiting) <= COMPACT_AT + 1
