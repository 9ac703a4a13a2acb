"""A completion that waits for the questions in its turn gets a verdict, however the turn ends."""

import asyncio
from typing import Any

import pytest

from session_server.agents.interface import TurnContext
from session_server.host.host import Host
from session_server.schemas.root import AgentInfo
from tests.host.harness import AGENT, SESSION, Client, hosting, joined, run, with_session

ASK = {"type": "session/inputRequested", "request": {"id": "r", "message": "Go on?"}}
COMPLETE = {"type": "session/turnComplete", "turnId": "t"}
CANCEL = {"type": "session/turnCancelled", "turnId": "t"}
START = {
    "type": "session/turnStarted",
    "turnId": "t",
    "message": {"text": "Go", "origin": {"kind": "user"}},
}


class Elsewhere:
    """An agent that speaks through a connection of its own; here it only keeps its turn open."""

    info = AgentInfo(provider="elsewhere", display_name="Elsewhere", description="", models=())
    resumes = True

    async def run(self, turn: TurnContext) -> None:  # noqa: ARG002
        await asyncio.Event().wait()


async def asked_in_a_turn(host: Host) -> tuple[Client, Client]:
    ana = await with_session(host, "elsewhere")
    agent = await joined(host, AGENT, "agent", SESSION)
    await ana.act(START)
    await agent.act(ASK)
    return ana, agent


async def verdict(client: Client, number: int) -> dict[str, Any]:
    def is_it(frame: dict[str, Any]) -> bool:
        params = frame.get("params", {})
        return params.get("origin") == {"clientId": "agent", "clientSeq": number}

    frame = await client.wait_for(is_it)
    envelope: dict[str, Any] = frame["params"]
    return envelope


@pytest.mark.proves("design.calls.held-turn")
@pytest.mark.parametrize(
    "ending",
    [CANCEL, {"type": "session/truncated"}],
    ids=["cancelled", "truncated"],
)
@run
async def test_a_completion_in_vain_is_refused_when_the_turn_ends(ending: dict[str, Any]) -> None:
    async with hosting(agents={"elsewhere": Elsewhere()}) as host:
        ana, agent = await asked_in_a_turn(host)
        number = agent.dispatch(COMPLETE)
        await ana.act(ending)
        refused = await verdict(agent, number)
        assert "ended in another way" in refused["rejectionReason"]
        assert refused["_meta"]["code"] == "noTurn"
        assert agent.connection.dispatches.unsettled == 0


@run
async def test_the_same_when_both_are_written_at_once() -> None:
    async with hosting(agents={"elsewhere": Elsewhere()}) as host:
        ana, agent = await asked_in_a_turn(host)
        number = agent.dispatch(COMPLETE)
        ana.dispatch(CANCEL)
        assert "rejectionReason" in await verdict(agent, number)


@run
async def test_a_completion_that_comes_true_is_not_refused() -> None:
    async with hosting(agents={"elsewhere": Elsewhere()}) as host:
        ana, agent = await asked_in_a_turn(host)
        number = agent.dispatch(COMPLETE)
        await ana.act({"type": "session/inputCompleted", "requestId": "r", "response": "decline"})
        await agent.wait_for_action("session/turnComplete")
        await agent.call("ping")
        origins = [frame.get("params", {}).get("origin") for frame in agent.received]
        assert {"clientId": "agent", "clientSeq": number} not in origins


@run
async def test_a_session_that_goes_takes_its_waiting_completions_with_it() -> None:
    async with hosting(agents={"elsewhere": Elsewhere()}) as host:
        ana, agent = await asked_in_a_turn(host)
        agent.dispatch(COMPLETE)
        await ana.call("disposeSession", SESSION)
        assert host._held._held == {}
