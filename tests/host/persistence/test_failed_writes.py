"""Things that go wrong at a bad moment: whoever waits is told, and nobody else is harmed."""

import asyncio
from pathlib import Path
from random import Random

import pytest

from session_server.host.clients.active_clients import GRACE_SECONDS
from session_server.host.connection import subscriptions
from session_server.host.persistence.log_writer import FIRST_PAUSE
from session_server.log import Batch
from session_server.log.memory import MemoryLog
from session_server.log.opening import open_log
from session_server.schemas.ahp.session import Lifecycle
from tests.ahp.actions import (
    active_client_changed,
    input_completed,
    input_requested,
    title_changed,
    turn_started,
)
from tests.ahp.client import ROOT
from tests.host.faulty_logs import FULL, SlowLog, TroubledLog
from tests.host.harness import (
    AGENT,
    ANA,
    BO,
    SESSION,
    Client,
    back_as,
    hosting,
    joined,
    launched,
    record_of,
    with_agent,
    with_session,
)
from tests.host.manual_clock import ManualClock
from tests.log.one_by_one import OneByOneLog, SettledOne

OTHER = "ahp-session:/2"
SOON = 60.0


class FullForLog(OneByOneLog):
    """The disk is full once for each of these texts, in their order, when it is to be written."""

    def __init__(self, *texts: bytes) -> None:
        super().__init__()
        self._texts = iter(texts)
        self.text = next(self._texts, None)
        self.refused = asyncio.Event()

    def append_one(self, batch: Batch, settled: SettledOne) -> None:
        data = b"".join(entry.data for entry in batch.entries)
        if self.text is not None and self.text in data:
            self.text = next(self._texts, None)
            self._loop.call_soon(settled, FULL)
            self._loop.call_soon(self.refused.set)
        else:
            super().append_one(batch, settled)


# The order of all channels


async def test_nothing_overtakes_a_batch_whose_fate_is_being_found_out() -> None:
    """One position stands for all channels, so what is lower must never come later."""
    log = TroubledLog()
    async with hosting(log) as host:
        ana = await with_session(host)
        await ana.call("createSession", OTHER, provider="people")
        await ana.call("subscribe", OTHER)
        log.trouble = ["stored but unknown"]
        ana.dispatch(title_changed("one"))
        ana.dispatch(title_changed("two"), OTHER)
        await ana.wait_for_title("one")
        await ana.wait_for_title("two")
        seqs = [envelope["serverSeq"] for envelope in ana.envelopes()]
        assert seqs == sorted(seqs)


# Sessions that come and go


async def test_a_uri_that_is_used_again_is_another_session_to_who_comes_back() -> None:
    async with hosting() as host:
        ana = await with_session(host)
        seen = await ana.act(title_changed("the old one"))
        ana.connection.closed()
        other = await joined(host, ANA, "other")
        await other.call("disposeSession", SESSION)
        await other.call("createSession", SESSION, provider="people")
        _, answer = await back_as(host, "laptop", seen["serverSeq"], SESSION)
        assert answer["type"] == "snapshot"
        assert answer["snapshots"][0]["state"]["summary"]["title"] != "the old one"


async def test_a_host_that_died_while_making_a_session_makes_it_ready(tmp_path: Path) -> None:
    class DyingLog(SlowLog):
        """Stores the opening of the session, and dies over the next batch."""

        def append_one(self, batch: Batch, settled: SettledOne) -> None:
            if batch.channel != SESSION or batch.expected == 0:
                super().append_one(batch, settled)

    store = f"sqlite:///{tmp_path / 'log.db'}"
    inner = await open_log(store)
    log = DyingLog(inner, Random(0), history={})
    log.is_slow = False
    async with hosting(log) as host:
        client = await joined(host)
        assert await client.call("createSession", SESSION, provider="people") is None
        log.crash()
    await inner.close()
    async with hosting(await open_log(store)) as host:
        client = await joined(host, ANA, "laptop", SESSION)
        if record_of(host).public.lifecycle is Lifecycle.CREATING:
            async with asyncio.timeout(SOON):
                await client.wait_for_action("session/ready")


async def test_news_of_a_session_are_not_compared_with_an_older_one_of_its_name() -> None:
    async with hosting() as host:
        wall = await joined(host, ANA, "wall", ROOT)
        agent = await joined(host, AGENT, "agent")
        for _ in range(2):
            await agent.call("createSession", SESSION, provider="people")
            await agent.call("subscribe", SESSION)
            await agent.act(input_requested())
            async with asyncio.timeout(SOON):
                await wall.wait_for(
                    lambda f: f.get("params", {}).get("changes", {}).get("status") == 24
                )
            wall.received.clear()
            await agent.call("disposeSession", SESSION)


async def test_what_waits_when_a_session_is_disposed_of_is_refused_and_not_written() -> None:
    log = SlowLog(MemoryLog(), Random(0), history={})
    log.is_slow = False
    async with hosting(log) as host:
        ana = await with_session(host)
        log.is_slow = True
        ana.dispatch(title_changed("is being written"))
        await launched()
        ana.dispatch(title_changed("waits"))
        assert await ana.call("disposeSession", SESSION) is None
        assert [batch.channel for batch, _ in log.held if batch.channel == SESSION] == []
        log.is_slow = False
        log.release(len(log.held))
        refused = await ana.wait_for(lambda f: "rejectionReason" in f.get("params", {}))
        assert refused["params"]["action"] == title_changed("waits")
        assert await ana.call("createSession", SESSION, provider="people") is None


# Handshakes


@pytest.mark.parametrize("refused", [(), (b'"clientId":"hasty"',)], ids=["saved", "not saved"])
async def test_a_client_that_leaves_during_the_handshake_is_not_kept(
    refused: tuple[bytes, ...],
) -> None:
    async with hosting(log := FullForLog(*refused)) as host:
        await with_session(host)
        await joined(host, BO, "phone")
        hasty = Client(host, BO)
        hello = {"protocolVersions": ["0.3.0"], "clientId": "hasty"}
        hasty.ask(1, "initialize", **hello, initialSubscriptions=[SESSION])
        again = {"clientId": "phone", "lastSeenServerSeq": 0}
        hasty.ask(2, "reconnect", **again, subscriptions=[SESSION])
        hasty.connection.closed()
        await joined(host, BO, "tablet")
        assert log.text is None
        assert hasty not in host.sessions[SESSION].publisher.subscribers


async def test_of_two_that_come_with_one_client_id_at_once_one_gets_it() -> None:
    async with hosting() as host:
        ana, bo = Client(host, ANA), Client(host, BO)
        async with asyncio.TaskGroup() as tasks:
            answers = [tasks.create_task(client.initialize("same")) for client in (ana, bo)]
        assert "protocolVersion" in answers[0].result()
        assert answers[1].result().get("code") == -32009


async def test_too_many_initial_subscriptions_harm_nobody_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subscriptions, "SUBSCRIPTIONS_PER_CONNECTION", 3)
    async with hosting() as host:
        maker = await joined(host)
        uris = [f"x:/{number}" for number in range(4)]
        for uri in uris:
            await maker.call("createSession", uri, provider="people")
        greedy, modest = Client(host), Client(host)
        async with asyncio.timeout(SOON):
            assert (await greedy.initialize("greedy", *uris))["code"] == -32011
            assert "protocolVersion" in await modest.initialize("modest", *uris[:2])


# What the host does on its own


async def test_a_turn_that_the_host_could_not_end_is_ended_later() -> None:
    log = FullForLog(b"session/turnComplete")
    async with hosting(log) as host:
        ana, agent = await with_agent(host)
        await agent.act(input_requested())
        await ana.act(input_completed())
        await ana.act(title_changed("there is space again"))
        assert log.text is None
        async with asyncio.timeout(SOON):
            await ana.wait_for_action("session/turnComplete")


async def test_a_turn_does_not_stay_without_its_agent() -> None:
    """The agent could not write what it says; the turn goes on or fails, once it can be told."""
    log = FullForLog(b"Let me ask", b"session/error")
    async with hosting(log) as host:
        ana = await with_session(host, "demo")
        await ana.act(turn_started())
        async with asyncio.timeout(SOON):
            await ana.wait_for_action("session/error")
        assert log.text is None


async def test_a_session_becomes_ready_once_there_is_space() -> None:
    log = FullForLog(b"session/ready")
    async with hosting(log) as host:
        ana = await joined(host)
        assert await ana.call("createSession", SESSION, provider="people") is None
        await ana.call("subscribe", SESSION)
        await ana.act(title_changed("there is space again"))
        assert log.text is None
        async with asyncio.timeout(SOON):
            await ana.wait_for_action("session/ready")


async def test_a_delayed_mark_is_not_written_after_it_became_untrue() -> None:
    log, clock = FullForLog(b'"activeSessions":1'), ManualClock()
    async with hosting(log, clock=clock) as host:
        ana = await joined(host, ANA, "laptop", ROOT)
        for uri in (SESSION, OTHER):
            await ana.call("createSession", uri, provider="people")
        await log.refused.wait()
        await clock.advance(FIRST_PAUSE * 2)
        assert host.root.committed.active_sessions == 2


CLAIM, RELEASED = active_client_changed("laptop"), active_client_changed(None)
ROLE = CLAIM["type"].encode()


async def test_a_role_that_could_not_be_released_is_released_later() -> None:
    clock = ManualClock()
    async with hosting(log := FullForLog(), clock=clock) as host:
        ana = await with_session(host)
        bo = await joined(host, BO, "phone", SESSION)
        await ana.act(CLAIM)
        log.text = ROLE
        ana.connection.closed()
        await clock.advance(GRACE_SECONDS)
        assert log.refused.is_set()
        await clock.advance(FIRST_PAUSE)
        async with asyncio.timeout(SOON):
            await bo.wait_for(lambda f: f.get("params", {}).get("action") == RELEASED)


async def test_a_role_is_not_released_late_from_a_client_that_is_back() -> None:
    clock = ManualClock()
    async with hosting(log := FullForLog(), clock=clock) as host:
        ana = await with_session(host)
        await ana.act(CLAIM)
        log.text = ROLE
        ana.connection.closed()
        await clock.advance(GRACE_SECONDS)
        assert log.refused.is_set()
        await back_as(host, "laptop", 0)
        await clock.advance(FIRST_PAUSE * 2)
        assert record_of(host).public.active_client is not None
