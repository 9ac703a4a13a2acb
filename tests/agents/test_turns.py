"""Agents at work: every step is in the session, and questions wait for people."""

import asyncio

import pytest

from session_server.agents.demo import DEMO_SESSION, DEPLOY_SESSION, TRIP, open_demo
from session_server.agents.interface import TurnContext
from session_server.host.host import Host
from session_server.schemas.ahp.questions import TextQuestion
from session_server.schemas.ahp.session import AgentInfo
from session_server.schemas.ahp.tool_calls import ToolResult
from tests.ahp.actions import input_completed, turn_cancelled, turn_started
from tests.ahp.client import ROOT
from tests.host.harness import ANA, BO, SESSION, Client, hosting, joined, record_of, with_session

ANSWERS = {
    "name": {"state": "submitted", "value": {"kind": "text", "value": "Summer"}},
    "city": {"state": "submitted", "value": {"kind": "selected", "value": "oslo"}},
    "people": {"state": "submitted", "value": {"kind": "number", "value": 3}},
}


async def turn_over(client: Client) -> None:
    await client.wait_for_action("session/turnComplete")


def texts(host: Host, uri: str = SESSION) -> list[str]:
    """What the last finished turn says."""
    parts = record_of(host, uri).public.turns[-1].response_parts
    return [str(getattr(part, "content", part)) for part in parts]


@pytest.mark.proves("design.names.demo")
async def test_the_demo_asks_in_every_kind_and_says_what_it_got() -> None:
    async with hosting() as host:
        client = await with_session(host, "demo")
        await client.act(turn_started())
        asked = await client.wait_for_action("session/inputRequested")
        kinds = {question["kind"] for question in asked["action"]["request"]["questions"]}
        assert len(kinds) == len(TRIP) == 6
        await client.act(input_completed("t:trip", **ANSWERS))
        await turn_over(client)
        assert texts(host)[-1] == (
            "Here is what I have:\n\n- **Name**: Summer (Ana)\n- **City**: Oslo (Ana)\n"
            "- **People**: 3 (Ana)"
        )


async def test_the_demo_takes_no_for_an_answer() -> None:
    async with hosting() as host:
        client = await with_session(host, "demo")
        await client.act(turn_started())
        await client.wait_for_action("session/inputRequested")
        phone = await joined(host, BO, "phone", SESSION)
        await phone.act(input_completed("t:trip", "decline"))
        await turn_over(client)
        assert texts(host)[-1] == "No trip, then. Bo declined “Planning your trip”."


async def test_the_demo_shows_a_link_when_asked_for_one() -> None:
    async with hosting() as host:
        client = await with_session(host, "demo")
        await client.act(turn_started(text="With a link please"))
        await client.wait_for_action("session/inputRequested")
        await client.act(input_completed("t:trip", **ANSWERS))
        await client.wait_for(
            lambda f: (
                f.get("method") == "action"
                and f["params"]["action"].get("request", {}).get("url") is not None
            )
        )
        await client.act(input_completed("t:link"))
        await turn_over(client)


async def test_the_demo_sessions_open_once() -> None:
    async with hosting() as host:
        await open_demo(host)
        assert set(host.sessions) == {DEMO_SESSION, DEPLOY_SESSION}
        client = await joined(host, ANA, "laptop", ROOT)
        asks = lambda f: f.get("params", {}).get("changes", {}).get("status") == 24  # noqa: E731
        await client.wait_for(asks)
        await open_demo(host)
        assert await client.call("ping") is None
        assert len(host.sessions) == 2


async def test_cancelling_a_turn_stops_the_agent_and_closes_its_question() -> None:
    async with hosting() as host:
        client = await with_session(host, "demo")
        await client.act(turn_started())
        await client.wait_for_action("session/inputRequested")
        await client.act(turn_cancelled())
        record = record_of(host)
        assert record.public.input_requests is None
        assert record.private.outcomes[-1].via == "abandoned"
        await client.act(turn_started("u"))
        assert "rejectionReason" not in client.received[-1].get("params", {})


async def test_a_turn_that_is_cancelled_before_its_question_leaves_none_behind() -> None:
    """The agent may be about to ask at that moment, at any of its steps."""
    for steps in range(12):
        async with hosting() as host:
            client = await with_session(host, "demo")
            client.dispatch(turn_started())
            for _ in range(steps):
                await asyncio.sleep(0)
            await client.act(turn_cancelled())
            for _ in range(50):
                await asyncio.sleep(0)
            record = record_of(host)
            assert (record.public.active_turn, record.public.input_requests) == (None, None)


@pytest.mark.proves("ahp.queue.order", "design.names.demo")
async def test_queued_messages_become_turns_one_after_the_other() -> None:
    async with hosting() as host:
        client = await with_session(host, "demo")
        queued = {"type": "session/pendingMessageSet", "kind": "queued"}
        for name in ("a", "b"):
            message = {"text": name, "origin": {"kind": "user"}}
            await client.act({**queued, "id": name, "message": message})
        for name in ("a", "b"):
            begun = await client.wait_for_action("session/turnStarted", queuedMessageId=name)
            turn_id = begun["action"]["turnId"]
            removed = {"type": "session/pendingMessageRemoved", "kind": "queued", "id": name}
            told = [f.get("params", {}).get("action") for f in client.received]
            assert told.index(removed) < told.index(begun["action"])
            await client.wait_for(
                lambda f, turn_id=turn_id: (
                    f.get("method") == "action"
                    and f["params"]["action"].get("request", {}).get("id") == f"{turn_id}:trip"
                )
            )
            await client.act(input_completed(f"{turn_id}:trip", "decline"))
        assert record_of(host).public.queued_messages is None


class ScriptedAgent:
    """An agent that does whatever a test wants."""

    info = AgentInfo(provider="scripted", display_name="S", description="", models=())
    resumes = False

    async def run(self, turn: TurnContext) -> None:
        match turn.message.text:
            case "fail":
                raise RuntimeError("secret details")
            case "bad question":
                same = TextQuestion(id="q", message="?")
                await turn.ask(same, same, key="q")
            case _:
                await turn.think("Hm.", key="thought")
                await turn.stream("Hel", key="text")
                await turn.stream("lo", key="text")
                await turn.show_tool_call("ls", key="tool", message="Listing")
                await turn.show_tool_call("ls", key="tool", message="Listing")
                done = ToolResult(success=True, past_tense_message="Listed")
                await turn.finish_tool_call(key="tool", result=done)


async def test_an_agent_can_think_stream_and_show_tools() -> None:
    async with hosting(agents={"scripted": ScriptedAgent()}) as host:
        client = await with_session(host, "scripted")
        await client.act(turn_started())
        await turn_over(client)
        parts = record_of(host).public.turns[-1].response_parts
        kinds = [type(part).__name__ for part in parts]
        assert kinds == ["ReasoningPart", "MarkdownPart", "ToolCallPart"]
        assert texts(host)[1] == "Hello"


async def test_an_agent_that_fails_fails_its_turn_without_telling_secrets() -> None:
    async with hosting(agents={"scripted": ScriptedAgent()}) as host:
        client = await with_session(host, "scripted")
        for turn_id, text in (("t", "fail"), ("u", "bad question")):
            await client.act(turn_started(turn_id, text))
            await client.wait_for_action("session/error", turnId=turn_id)
        state = record_of(host).public
        assert state.summary.status == 2
        assert "secret" not in str(state)
