"""Deadlines and expiries when the wall clock jumps, or the machine has slept.

The event loop's own clock goes on as ever in these tests; only the time of day is moved.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from session_server.host import timers
from session_server.host.host import Host
from session_server.host.timers import COMPACT_AT, WallTimers
from session_server.log import Batch, Outcome, Refused, RefusedBecause
from session_server.log.memory import MemoryLog
from session_server.schemas.principals import Principal, Role
from tests.host.harness import AGENT, ANA, SESSION, Client, hosting, joined, run, with_session

HOUR = 3_600_000
MINUTE = 60_000


class WallClock:
    """The real one, and by how much it is wrong."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ahead = 0
        monkeypatch.setattr(timers, "time", self)

    def time_ns(self) -> int:
        return time.time_ns() + self.ahead * 1_000_000

    def now(self) -> int:
        return self.time_ns() // 1_000_000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> WallClock:
    return WallClock(monkeypatch)


async def ask(host: Host, expires_at: int, request_id: str = "r", **meta: Any) -> Client:
    agent = await joined(host, AGENT, f"agent {request_id}", SESSION)
    question = {"id": "q", "kind": "text", "message": "Which?", **meta.pop("question", {})}
    request = {
        "id": request_id,
        "message": "Go on?",
        "questions": [question],
        "_meta": {"expiresAt": expires_at, **meta},
    }
    asked = await agent.act({"type": "session/inputRequested", "request": request})
    assert "rejectionReason" not in asked
    return agent


def completion(request_id: str = "r") -> dict[str, Any]:
    answers = {"q": {"state": "submitted", "value": {"kind": "text", "value": "yes"}}}
    action = {"type": "session/inputCompleted", "requestId": request_id, "response": "accept"}
    return {**action, "answers": answers}


def draft(request_id: str = "r") -> dict[str, Any]:
    answer = {"state": "draft", "value": {"kind": "text", "value": "y"}}
    action = {"type": "session/inputAnswerChanged", "requestId": request_id, "questionId": "q"}
    return {**action, "answer": answer}


def ways_of_ending(host: Host) -> dict[str, str]:
    record = host.record(SESSION)
    assert record is not None
    return {outcome.request.id: outcome.via.value for outcome in record.private.outcomes}


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not is_so():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@pytest.mark.proves("design.deadlines.wall-clock")
@pytest.mark.parametrize("late", [completion, draft])
@run
async def test_an_answer_after_the_deadline_is_refused_before_any_timer_has_fired(
    clock: WallClock, late: Callable[[], dict[str, Any]]
) -> None:
    async with hosting() as host:
        client = await with_session(host)
        await ask(host, clock.now() + 10 * MINUTE)
        clock.ahead = HOUR
        refused = await client.act(late())
        assert refused["_meta"]["code"] == "alreadyCompleted"
        assert "timed out" in refused["rejectionReason"]
        assert ways_of_ending(host) == {"r": "timeout"}


@pytest.mark.proves("design.deadlines.wall-clock")
@run
async def test_a_deadline_that_a_jump_of_the_clock_passes_is_noticed_without_an_answer(
    clock: WallClock,
) -> None:
    async with hosting() as host:
        await with_session(host)
        await ask(host, clock.now() + 10 * MINUTE)
        await ask(host, clock.now() + 2 * HOUR, "later")
        await ask(host, clock.now() + 5 * MINUTE, "sooner")
        clock.ahead = HOUR
        await until(lambda: len(ways_of_ending(host)) == 2)
        assert ways_of_ending(host) == {"r": "timeout", "sooner": "timeout"}
        clock.ahead = 3 * HOUR
        await until(lambda: len(ways_of_ending(host)) == 3)


@run
async def test_a_clock_that_is_set_back_gives_a_question_its_time_again(clock: WallClock) -> None:
    async with hosting() as host:
        client = await with_session(host)
        clock.ahead = HOUR
        await ask(host, clock.now() + MINUTE)
        clock.ahead = 0
        assert "rejectionReason" not in await client.act(completion())


@run
async def test_who_began_in_time_may_answer_late_where_only_defaults_were_due(
    clock: WallClock,
) -> None:
    async with hosting() as host:
        client = await with_session(host)
        for request_id in ("begun", "untouched"):
            default = {"defaultValue": "d"}
            at = clock.now() + MINUTE
            await ask(host, at, request_id, onExpiry="defaults", question=default)
        await client.act(draft("begun"))
        clock.ahead = HOUR
        assert "rejectionReason" in await client.act(completion("untouched"))
        assert "rejectionReason" not in await client.act(completion("begun"))
        assert ways_of_ending(host) == {"untouched": "default", "begun": "person"}


class FailingLog(MemoryLog):
    is_full = False

    def append(self, batch: Batch, settled: Callable[[Outcome], None]) -> None:
        if self.is_full and batch.channel == SESSION:
            refused = Refused(RefusedBecause.FULL, "The disk is full.")
            asyncio.get_running_loop().call_soon(settled, refused)
        else:
            super().append(batch, settled)


@run
async def test_an_expiry_that_could_not_be_written_still_goes_before_a_late_answer(
    clock: WallClock,
) -> None:
    log = FailingLog()
    async with hosting(log) as host:
        client = await with_session(host)
        await ask(host, clock.now() + MINUTE)
        clock.ahead, log.is_full = HOUR, True
        assert (await client.act(completion()))["_meta"]["code"] != "alreadyCompleted"
        log.is_full = False
        await until(lambda: host.storage.reason is None)
        assert (await client.act(completion()))["_meta"]["code"] == "alreadyCompleted"
        assert ways_of_ending(host) == {"r": "timeout"}


@run
async def test_a_session_that_goes_takes_its_timer_with_it(clock: WallClock) -> None:
    async with hosting() as host:
        client = await with_session(host)
        await ask(host, clock.now() + MINUTE)
        assert len(host.timers) == 1
        await client.call("disposeSession", SESSION)
        assert len(host.timers) == 0


# Credentials


def guest(expires_at: int) -> Principal:
    credential = {"credential": "token", "expires_at": expires_at}
    return Principal(id="share:1", role=Role.ANSWERER, **credential)  # type: ignore[arg-type]


@pytest.mark.proves("design.deadlines.wall-clock")
@run
async def test_an_expired_credential_ends_its_connection_when_the_clock_jumps(
    clock: WallClock,
) -> None:
    async with hosting() as host:
        idle = await joined(host, guest(clock.now() + HOUR), "idle")
        active = await joined(host, guest(clock.now() + HOUR), "active")
        other = await joined(host, guest(clock.now() + 3 * HOUR), "other")
        clock.ahead = 2 * HOUR
        active.say({"jsonrpc": "2.0", "id": 9, "method": "ping", "params": {}})
        assert active.closed == (4500, "your token has expired")
        assert active.received[-1].get("id") != 9
        await idle.until_closed()
        assert idle.closed == (4500, "your token has expired")
        assert other.closed is None
        for client in (idle, active, other):
            client.connection.closed()
        assert len(host.timers) == 0
        assert (await joined(host, ANA, "owner")).closed is None


# Timers


@run
async def test_timers_fire_in_order_and_those_that_were_cancelled_never() -> None:
    now = 1_000
    timers = WallTimers(lambda: now)
    fired: list[str] = []
    timers.at(3_000, lambda: fired.append("c"))
    timers.at(2_000, lambda: fired.append("b"))
    timers.at(1_000, lambda: fired.append("a"))
    timers.at(2_000, lambda: fired.append("never")).cancel()
    timers.at(2_500, lambda: 1 / 0)
    await until(lambda: fired == ["a"])
    now = 10_000
    await until(lambda: fired == ["a", "b", "c"])
    assert len(timers) == 0


@run
async def test_cancelled_timers_are_not_kept() -> None:
    timers = WallTimers(lambda: 0)
    for _ in range(10 * COMPACT_AT):
        timer = timers.at(HOUR, lambda: None)
        timer.cancel()
        timer.cancel()
    assert len(timers) == 0
    assert len(timers._waiting) <= COMPACT_AT + 1
