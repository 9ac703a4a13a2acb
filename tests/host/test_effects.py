"""What the host does by itself: deadlines, changes of summaries, forks and pages of history."""

from typing import Any

import msgspec
import pytest

from session_server.host.async_api import StateWaiters
from session_server.host.session_list import changes_between
from session_server.schemas.ahp.session import AgentSelection, SummaryMeta
from session_server.schemas.codec import encode
from tests.ahp.actions import input_requested, text_question, turn_cancelled, turn_started
from tests.host.harness import AGENT, SESSION, hosting, joined, record_of, with_agent, with_session
from tests.host.manual_clock import ManualClock


def ask(request_id: str, **meta: Any) -> dict[str, Any]:
    return input_requested(request_id, text_question(defaultValue="as usual"), _meta=meta)


async def test_a_deadline_cancels_the_question_and_its_turn_though_the_clock_is_set_back() -> None:
    clock = ManualClock()
    async with hosting(clock=clock) as host:
        ana, agent = await with_agent(host)
        deadline = clock.now() + 30
        await agent.act(ask("r", expiresAt=deadline))
        clock.ahead = -50
        await clock.advance(0.1)
        done = await ana.wait_for_action("session/inputCompleted")
        assert done["action"]["response"] == "cancel"
        assert done["_meta"]["by"] == {"id": "host"}
        assert done["_meta"]["at"] >= deadline
        await ana.wait_for_action("session/turnComplete")
        assert record_of(host).private.outcomes[-1].via == "timeout"


async def test_who_is_disconnected_because_the_host_stops_has_not_left() -> None:
    async with hosting() as host:
        await with_session(host)
        waiting = StateWaiters(host)
        agent = await joined(host, AGENT, "agent", SESSION)
        with host.askers.waiting(SESSION, "r"):
            await agent.act(ask("r", lease=600))
            await agent.act(ask("other", lease=600))
            assert len(host.timers) == 1  # nobody waits for the other one
            waiting.close()
        assert len(host.timers) == 0


async def test_a_cleared_field_of_a_summary_is_never_null() -> None:
    async with hosting() as host:
        _, agent = await with_agent(host)
        await agent.act({"type": "session/activityChanged", "activity": "Thinking"})
        busy = record_of(host).public.summary
        await agent.act({"type": "session/activityChanged"})
        idle = record_of(host).public.summary
        assert encode(changes_between(busy, idle)) == b'{"activity":""}'
        chosen = msgspec.structs.replace(busy, agent=AgentSelection(uri="agent:/a"))
        assert encode(changes_between(chosen, busy)) == b"{}"
        left = msgspec.structs.replace(busy, meta=SummaryMeta(askers_gone=True))
        assert encode(changes_between(busy, left)) == b'{"_meta":{"askersGone":true}}'
        assert encode(changes_between(left, busy)) == b'{"_meta":{}}'


@pytest.mark.proves(
    "ahp.channels.create-fork", "ahp.channels.fetch-turns", "ahp.errors.turn-in-progress"
)
async def test_a_fork_has_the_history_up_to_a_turn_that_is_over_and_pages_lead_back() -> None:
    async with hosting() as host:
        ana = await with_session(host, "demo")
        agent = await joined(host, AGENT, "agent", SESSION)
        for number in range(5):
            await agent.act(turn_started(f"t{number}"))
            await ana.act(turn_cancelled(f"t{number}"))
        await agent.act(turn_started("active"))
        fork = {"session": SESSION, "turnId": "active"}
        error = await ana.call("createSession", "x:/fork", provider="demo", fork=fork)
        assert error["code"] == -32004
        fork["turnId"] = "t2"
        assert await ana.call("createSession", "x:/fork", provider="demo", fork=fork) is None
        page = await ana.call("fetchTurns", "x:/fork", limit=2)
        assert ([t["id"] for t in page["turns"]], page["hasMore"]) == (["t1", "t2"], True)
        page = await ana.call("fetchTurns", "x:/fork", before="t1")
        assert ([t["id"] for t in page["turns"]], page["hasMore"]) == (["t0"], False)
        for nothing, has_more in (({"before": "unknown"}, False), ({"limit": 0}, True)):
            page = await ana.call("fetchTurns", "x:/fork", **nothing)
            assert page == {"turns": [], "hasMore": has_more}
