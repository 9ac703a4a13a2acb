"""How large a session, and all sessions of a host, may become."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from session_server.host.channels.state_size import MEASURED_EVERY_MS, StateMemory, StateSize
from session_server.host.host import Host
from session_server.host.host_limits import HostLimits
from session_server.log import Log
from session_server.log.opening import open_log
from session_server.schemas.codec import encode
from session_server.schemas.limits import ANSWER_CHARS, SESSION_BYTES, STATE_BYTES_PER_HOST
from tests.ahp.actions import answer_changed, input_completed, input_requested, text_question
from tests.host.harness import AGENT, BO, SESSION, Client, hosting, joined, with_session
from tests.servers import sqlite_store

SMALL = HostLimits(session_bytes=100_000)


def draft(text: str, question: str = "q1", state: str = "draft") -> dict[str, Any]:
    return answer_changed(text, "r", question, state)


def asking(request_id: str = "r", message: str = "?") -> dict[str, Any]:
    questions = [text_question(f"q{n}", message=message) for n in range(1, 4)]
    return input_requested(request_id, *questions)


@asynccontextmanager
async def with_a_question(
    limits: HostLimits = SMALL, log: Log | None = None
) -> AsyncIterator[tuple[Host, Client, Client]]:
    """A host, an agent that has asked something, and somebody who may answer."""
    async with hosting(log, limits=limits) as host:
        await with_session(host)
        agent, bo = (
            await joined(host, AGENT, "agent", SESSION),
            await joined(host, BO, "bo", SESSION),
        )
        assert "rejectionReason" not in await agent.act(asking())
        yield host, agent, bo


async def fill(bo: Client) -> dict[str, Any]:
    """Answers until the session has no room; the refusal."""
    for question in ("q1", "q2", "q3"):
        envelope = await bo.act(draft("x" * 40_000, question))
        if "rejectionReason" in envelope:
            return envelope
    raise AssertionError("it never was full")


@pytest.mark.proves("design.limits.session-bytes")
async def test_a_session_that_is_full_refuses_what_would_make_it_larger() -> None:
    async with with_a_question() as (host, agent, bo):
        refused = await fill(bo)
        assert "This session is full" in refused["rejectionReason"]
        assert refused["_meta"]["code"] == "limit"
        assert len(encode(host.sessions[SESSION].committed)) <= 100_000
        more = await agent.act(asking("another", "x" * 30_000))
        assert "This session is full" in more["rejectionReason"]


async def test_a_session_that_is_full_takes_what_makes_room_or_replaces() -> None:
    async with with_a_question() as (_, agent, bo):
        await fill(bo)
        for action in (
            draft("y" * 40_000),  # as long as the one before
            draft("y" * 40_000, state="submitted"),
            {**draft("", "q2"), "answer": None},
        ):
            assert "rejectionReason" not in await bo.act(action)
        assert "rejectionReason" in await bo.act(draft("y" * 60_000))
        done = input_completed()
        assert "rejectionReason" not in await bo.act(done)
        assert "rejectionReason" not in await agent.act(asking("another"))


async def test_drafts_that_replace_each_other_never_fill_a_session() -> None:
    async with with_a_question() as (host, _, bo):
        for number in range(20):
            envelope = await bo.act(draft(str(number) * 30_000))
            assert "rejectionReason" not in envelope
        assert host.states.bytes < 200_000


async def test_the_bound_of_a_session_holds_after_a_restart(tmp_path: Path) -> None:
    store = sqlite_store(tmp_path)
    async with with_a_question(log=await open_log(store)) as (_, _, bo):
        await fill(bo)
    async with hosting(await open_log(store), limits=SMALL) as host:
        bo = await joined(host, BO, "bo", SESSION)
        refused = await bo.act(draft("x" * 40_000, "q3"))
        assert "This session is full" in refused["rejectionReason"]


async def test_the_states_of_all_sessions_together_are_bounded() -> None:
    limits = HostLimits(session_bytes=0, state_bytes=100_000)
    async with with_a_question(limits) as (host, agent, bo):
        ana = await joined(host)
        for number in range(3):
            await ana.call("createSession", f"ahp-session:/{number + 2}", provider="people")
        envelope = {}
        for question in ("q1", "q2", "q3"):
            envelope = await bo.act(draft("x" * 60_000, question))
        assert "more than its share" in envelope["rejectionReason"]
        refused = await ana.call("createSession", "ahp-session:/9", provider="people")
        assert (refused["code"], "dispose of some" in refused["message"]) == (-32011, True)
        await agent.call("subscribe", "ahp-session:/2")
        small = await agent.act(asking(), "ahp-session:/2")
        assert "rejectionReason" not in small  # it has its share
        await ana.call("disposeSession", SESSION)
        assert await ana.call("createSession", "ahp-session:/9", provider="people") is None


async def test_estimates_that_are_too_high_do_not_keep_sessions_from_being_made(
    tmp_path: Path,
) -> None:
    limits = HostLimits(state_bytes=100_000)
    store = sqlite_store(tmp_path)
    async with with_a_question(limits, await open_log(store)) as (host, _, bo):
        for number in range(4):
            await bo.act(draft(str(number) * 30_000))
        assert host.states.is_full
        ana = await joined(host)
        assert await ana.call("createSession", "ahp-session:/2", provider="people") is None
        await bo.act(draft("z" * 30_000))
    async with hosting(await open_log(store), limits=limits) as host:
        assert not host.states.is_full


def test_a_full_session_is_measured_at_most_once_a_second() -> None:
    size = StateSize(StateMemory(per_session=1_000))
    size.add(990)
    measured: list[int] = []

    def measure() -> int:
        measured.append(size.bytes)
        return 990

    for now in (0, 1, MEASURED_EVERY_MS - 1):
        assert size.refusal(20, measure, MEASURED_EVERY_MS + now) is not None
    assert len(measured) == 1
    assert size.refusal(20, measure, 2 * MEASURED_EVERY_MS) is not None
    assert len(measured) == 2
    assert size.refusal(10, measure, 0) is None


def test_limits_of_zero_are_none() -> None:
    memory = StateMemory(0, 0)
    size = StateSize(memory)
    assert not size.add(1 << 40)
    assert memory.limit() == 0
    bounded = StateMemory(0, 10)
    filled = StateSize(bounded)
    assert not filled.add(10)
    assert filled.add(1)
    assert bounded.limit() == 10


def test_what_is_set_is_within_what_is_in_the_documentation() -> None:
    memory = StateMemory()
    assert (memory.per_session, memory.per_host) == (SESSION_BYTES, STATE_BYTES_PER_HOST)
    assert ANSWER_CHARS * 100 < SESSION_BYTES < STATE_BYTES_PER_HOST
