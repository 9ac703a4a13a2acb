"""What the host does by itself: deadlines, news of summaries, forks and pages of history."""

from typing import Any

import msgspec
import pytest

from session_server.host.awaiting import StateWaiters
from session_server.host.session_list import changes_between
from session_server.schemas.ahp.session import AgentSelection, SummaryMeta
from session_server.schemas.codec import encode
from tests.ahp.actions import (
    answer_changed,
    input_completed,
    input_requested,
    text_question,
    turn_cancelled,
    turn_started,
)
from tests.ahp.client import ROOT
from tests.host.harness import AGENT, ANA, SESSION, hosting, joined, with_session
from tests.host.manual_clock import ManualClock


def ask(request_id: str, **meta: Any) -> dict[str, Any]:
    return input_requested(request_id, text_question(defaultValue="as usual"), _meta=meta)


async def test_a_deadline_cancels_the_question_and_the_turn_ends_with_it() -> None:
    async with hosting() as host:
        ana = await with_session(host)
        agent = await joined(host, AGENT, "agent", SESSION)
        await agent.act(ask("r", expiresAt=host.now() + 30))
        done = await ana.wait_for_action("session/inputCompleted")
        assert done["action"]["response"] == "cancel"
        assert done["_meta"]["by"] == {"id": "host"}
        await ana.wait_for_action("session/turnComplete")
        record = host.record(SESSION)
        assert record is not None
        assert record.private.outcomes[-1].via == "timeout"


async def test_a_deadline_holds_when_the_clock_is_set_back() -> None:
    clock = ManualClock()
    async with hosting(clock=clock) as host:
        ana = await with_session(host)
        agent = await joined(host, AGENT, "agent", SESSION)
        deadline = clock.now() + 30
        await agent.act(ask("r", expiresAt=deadline))
        clock.ahead = -50
        await clock.advance(0.1)
        done = await ana.wait_for_action("session/inputCompleted")
        assert done["_meta"]["at"] >= deadline


async def test_a_deadline_may_mean_the_defaults() -> None:
    async with hosting() as host:
        ana = await with_session(host)
        agent = await joined(host, AGENT, "agent", SESSION)
        await agent.act(ask("r", expiresAt=host.now() - 1, onExpiry="defaults"))
        done = await ana.wait_for_action("session/inputCompleted")
        assert done["action"]["response"] == "accept"
        assert done["action"]["answers"]["q"]["value"]["value"] == "as usual"
        assert done["action"]["answers"]["q"]["_meta"]["via"] == "default"


async def test_a_question_outside_a_turn_gets_one_that_ends_with_it() -> None:
    async with hosting() as host:
        ana = await with_session(host)
        agent = await joined(host, AGENT, "agent", SESSION)
        agent.dispatch(ask("r"))
        started = await ana.wait_for_action("session/turnStarted")
        assert started["action"]["message"]["origin"]["kind"] == "systemNotification"
        await ana.wait_for_action("session/inputRequested")
        await ana.act(input_completed(response="decline"))
        await ana.wait_for_action("session/turnComplete")


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


@pytest.mark.proves("ahp.channels.root-notifications")
async def test_the_root_hears_of_changes_and_not_of_every_draft() -> None:
    async with hosting() as host:
        wall = await joined(host, ANA, "wall", ROOT)
        ana = await with_session(host)
        agent = await joined(host, AGENT, "agent", SESSION)
        await agent.act(ask("r"))
        for _ in range(50):
            await ana.act(answer_changed("x"))
        news = [f for f in wall.received if f.get("method") == "root/sessionSummaryChanged"]
        assert len(news) < 10
        assert any(f["params"]["changes"].get("status") == 24 for f in news)
        latest = await wall.wait_for(
            lambda f: (
                f.get("method") == "root/sessionSummaryChanged"
                and set(f["params"]["changes"]) == {"modifiedAt"}
            )
        )
        record = host.record(SESSION)
        assert record is not None
        assert latest["params"]["changes"]["modifiedAt"] == record.public.summary.modified_at


async def test_a_cleared_field_of_a_summary_is_never_null() -> None:
    async with hosting() as host:
        await with_session(host)
        agent = await joined(host, AGENT, "agent", SESSION)
        await agent.act({"type": "session/activityChanged", "activity": "Thinking"})
        record = host.record(SESSION)
        assert record is not None
        busy = record.public.summary
        await agent.act({"type": "session/activityChanged"})
        record = host.record(SESSION)
        assert record is not None
        assert encode(changes_between(busy, record.public.summary)) == b'{"activity":""}'
        chosen = msgspec.structs.replace(busy, agent=AgentSelection(uri="agent:/a"))
        assert encode(changes_between(chosen, busy)) == b"{}"
        left = msgspec.structs.replace(busy, meta=SummaryMeta(askers_gone=True))
        assert encode(changes_between(busy, left)) == b'{"_meta":{"askersGone":true}}'
        assert encode(changes_between(left, busy)) == b'{"_meta":{}}'


@pytest.mark.proves("ahp.channels.create-fork", "ahp.channels.fetch-turns")
async def test_a_fork_has_the_history_up_to_its_turn_and_pages_lead_back() -> None:
    async with hosting() as host:
        ana = await with_session(host, "demo")
        agent = await joined(host, AGENT, "agent", SESSION)
        for number in range(5):
            await agent.act(turn_started(f"t{number}"))
            await ana.act(turn_cancelled(f"t{number}"))
        fork = {"session": SESSION, "turnId": "t2"}
        assert await ana.call("createSession", "x:/fork", provider="demo", fork=fork) is None
        page = await ana.call("fetchTurns", "x:/fork", limit=2)
        assert ([t["id"] for t in page["turns"]], page["hasMore"]) == (["t1", "t2"], True)
        page = await ana.call("fetchTurns", "x:/fork", before="t1")
        assert ([t["id"] for t in page["turns"]], page["hasMore"]) == (["t0"], False)
        page = await ana.call("fetchTurns", "x:/fork", before="unknown")
        assert page == {"turns": [], "hasMore": False}


@pytest.mark.proves("ahp.errors.turn-in-progress")
async def test_a_turn_that_is_not_over_cannot_be_forked() -> None:
    async with hosting() as host:
        ana = await with_session(host, "demo")
        agent = await joined(host, AGENT, "agent", SESSION)
        await agent.act(turn_started())
        fork = {"session": SESSION, "turnId": "t"}
        error = await ana.call("createSession", "x:/fork", provider="demo", fork=fork)
        assert error["code"] == -32004
        await ana.act(turn_cancelled())
        assert await ana.call("createSession", "x:/fork", provider="demo", fork=fork) is None
