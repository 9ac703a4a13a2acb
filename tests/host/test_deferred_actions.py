"""A completion that waits for the questions in its turn gets a verdict, however the turn ends."""

import asyncio
from typing import Any

import pytest

from session_server.agents.interface import TurnContext
from session_server.host.host import Host
from session_server.log import Batch, NewEntry
from session_server.log.memory import MemoryLog
from session_server.schemas.ahp.actions import TurnCancelled
from session_server.schemas.ahp.session import AgentInfo
from session_server.schemas.codec import encode
from session_server.schemas.limits import COMPLETIONS_HELD
from session_server.schemas.log_entries import Logged
from session_server.schemas.principals import Principal, Role, Stamp
from tests.ahp.actions import (
    input_completed,
    input_requested,
    model_changed,
    title_changed,
    turn_cancelled,
    turn_completed,
    turn_started,
)
from tests.host.harness import (
    AGENT,
    ANA,
    SESSION,
    Client,
    back_as,
    hosting,
    joined,
    record_of,
    with_session,
)

CY = Principal(id="cy", name="Cy", role=Role.OWNER)
ASK = input_requested()
COMPLETE = turn_completed()
CANCEL = turn_cancelled()
START = turn_started()


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


@pytest.mark.proves("design.calls.held-turn")
@pytest.mark.parametrize(
    "ending",
    [CANCEL, {"type": "session/truncated"}],
    ids=["cancelled", "truncated"],
)
async def test_a_deferred_completion_is_rejected_when_the_turn_ends_otherwise(
    ending: dict[str, Any],
) -> None:
    async with hosting(agents={"elsewhere": Elsewhere()}) as host:
        ana, agent = await asked_in_a_turn(host)
        number = agent.dispatch(COMPLETE)
        await ana.act(ending)
        refused = await agent.echo(number)
        assert "ended in another way" in refused["rejectionReason"]
        assert refused["_meta"]["code"] == "noTurn"
        assert agent.connection.dispatcher.unsettled == 0


async def test_a_completion_that_comes_true_is_not_refused() -> None:
    async with hosting(agents={"elsewhere": Elsewhere()}) as host:
        ana, agent = await asked_in_a_turn(host)
        number = agent.dispatch(COMPLETE)
        await ana.act(input_completed(response="decline"))
        await agent.wait_for_action("session/turnComplete")
        await agent.call("ping")
        origins = [frame.get("params", {}).get("origin") for frame in agent.received]
        assert {"clientId": "agent", "clientSeq": number} not in origins


# Changes of model and agent


def chosen(agent: str) -> dict[str, Any]:
    return {"type": "session/agentChanged", "agent": {"uri": f"agent:/{agent}"}}


async def settled(client: Client, number: int) -> dict[str, Any]:
    """The one verdict on an action of this client."""
    envelope = await client.echo(number)
    mine = [f for f in client.received if f.get("params", {}).get("origin") == envelope["origin"]]
    assert len(mine) == 1
    return envelope


@pytest.mark.proves("ahp.rules.deferred-origin")
async def test_a_change_that_waits_for_the_turn_is_echoed_with_its_origin() -> None:
    async with hosting(agents={"elsewhere": Elsewhere()}) as host:
        ana = await with_session(host, "elsewhere")
        cy = await joined(host, CY, "phone", SESSION)
        await ana.act(START)
        first, second = ana.dispatch(model_changed("small")), cy.dispatch(model_changed("large"))
        other = ana.dispatch(chosen("a"))
        superseded = await settled(ana, first)
        assert superseded["_meta"]["code"] == "superseded"
        assert superseded["action"] == model_changed("small")
        await ana.act(CANCEL)
        happened = await settled(cy, second)
        assert "rejectionReason" not in happened
        assert happened["_meta"]["by"] == {"id": "cy", "name": "Cy"}
        assert "rejectionReason" not in await settled(ana, other)
        model = record_of(host).public.summary.model
        assert model.id == "large"
        assert host._deferred._changes == {}


@pytest.mark.proves("ahp.rules.deferred-origin")
async def test_a_change_that_waits_keeps_its_origin_over_a_restart() -> None:
    log = MemoryLog()
    log_close, log.close = log.close, no_closing  # type: ignore[method-assign]
    async with hosting(log, agents={"elsewhere": Elsewhere()}) as host:
        ana = await with_session(host, "elsewhere")
        await ana.act(START)
        number = ana.dispatch(model_changed("small"))
        await ana.act(title_changed("Oslo"))
        seen = host.position
    async with hosting(log, agents={"elsewhere": Elsewhere()}) as host:
        other = await joined(host, ANA, "phone", SESSION)
        await other.act(CANCEL)
        await other.wait_for_action("session/modelChanged")
        _, result = await back_as(host, "laptop", seen, SESSION)
        own = [e for e in result["actions"] if e["action"]["type"] == "session/modelChanged"]
        assert [e["origin"] for e in own] == [{"clientId": "laptop", "clientSeq": number}]
    await log_close()


async def no_closing() -> None:
    """The log outlives its host."""


async def test_a_change_that_waited_and_was_made_by_another_process_is_not_refused() -> None:
    log = MemoryLog()
    async with hosting(log, agents={"elsewhere": Elsewhere()}) as host:
        ana = await with_session(host, "elsewhere")
        await ana.act(START)
        number = ana.dispatch(model_changed("small"))
        await ana.act(title_changed("Oslo"))
        channel = host.sessions[SESSION]
        (deferred,) = channel.committed.private.deferred
        stamp = Stamp(at=host.now(), by=deferred.by)
        written = (
            Logged(action=TurnCancelled(turn_id="t"), stamp=stamp),
            Logged(action=deferred.change, stamp=stamp, origin=deferred.origin),
        )
        entries = tuple(NewEntry(host.new_id(), encode(logged)) for logged in written)
        log.append((Batch(SESSION, channel.last_seq, entries),), lambda _: None)
        await ana.act(title_changed("Bergen"))
        await ana.call("ping")
        assert "rejectionReason" not in await settled(ana, number)
        assert host._deferred._changes == {}


async def test_what_waits_is_forgotten_with_its_session() -> None:
    async with hosting(agents={"elsewhere": Elsewhere()}) as host:
        ana, agent = await asked_in_a_turn(host)
        agent.dispatch(COMPLETE)
        ana.dispatch(model_changed("small"))
        await ana.act(title_changed("Oslo"))
        assert host._deferred._changes
        assert host._deferred._completions
        assert await ana.call("disposeSession", SESSION) is None
        assert (host._deferred._changes, host._deferred._completions) == ({}, {})


async def test_a_turn_that_is_completed_again_and_again_keeps_the_latest_completions() -> None:
    async with hosting(agents={"elsewhere": Elsewhere()}) as host:
        _, agent = await asked_in_a_turn(host)
        first = agent.dispatch(COMPLETE)
        for _ in range(COMPLETIONS_HELD):
            last = agent.dispatch(COMPLETE)
        refused = await agent.echo(first)
        assert "completed too many times" in refused["rejectionReason"]
        deferred = host._deferred._completions[SESSION]
        assert len(deferred) == COMPLETIONS_HELD
        assert all(change.before is None and change.after is None for change in deferred)
        await agent.act(CANCEL)
        assert "rejectionReason" in await agent.echo(last)
