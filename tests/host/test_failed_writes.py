"""Things that go wrong at a bad moment: whoever waits is told, and nobody else is harmed."""

import asyncio
from pathlib import Path
from random import Random
from typing import Any

from session_server.host.active_clients import GRACE_SECONDS
from session_server.host.log_writer import FIRST_PAUSE
from session_server.log import Batch, RefusedBecause
from session_server.log.memory import MemoryLog
from session_server.log.opening import open_log
from session_server.log.protocol import FailedError
from session_server.schemas.ahp.session import Lifecycle
from session_server.schemas.limits import SUBSCRIPTIONS_PER_CONNECTION as SUBSCRIPTIONS
from session_server.schemas.wire import Seq, Uri
from tests.ahp.actions import input_completed, input_requested, title_changed, turn_started
from tests.ahp.client import ROOT
from tests.host.faulty_logs import FULL, Settled, SlowLog, TroubledLog
from tests.host.harness import (
    AGENT,
    ANA,
    BO,
    SESSION,
    Client,
    hosting,
    joined,
    launched,
    with_session,
)
from tests.host.manual_clock import ManualClock

OTHER = "ahp-session:/2"
SOON = 60.0
NOT_NOW = FailedError(RefusedBecause.FULL, "There is no space left.")


def is_titled(title: str) -> Any:
    return lambda f: f.get("method") == "action" and f["params"]["action"].get("title") == title


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
        await ana.wait_for(is_titled("one"))
        await ana.wait_for(is_titled("two"))
        seqs = [envelope["serverSeq"] for envelope in ana.envelopes()]
        assert seqs == sorted(seqs)


async def test_an_unknown_outcome_is_asked_about_until_there_is_an_answer() -> None:
    class ReticentLog(TroubledLog):
        silences = 2

        async def find(self, ids: Any) -> dict[str, Seq]:
            if ids and self.silences:
                self.silences -= 1
                raise FailedError(RefusedBecause.BROKEN, "ask again later")
            return await super().find(ids)

    log = ReticentLog()
    async with hosting(log) as host:
        ana = await with_session(host)
        log.trouble = ["stored but unknown"]
        async with asyncio.timeout(SOON):
            assert "rejectionReason" not in await ana.act(title_changed("Oslo"))
            assert "rejectionReason" not in await ana.act(title_changed("Bergen"))


async def test_a_conflict_is_looked_into_until_the_log_can_be_read() -> None:
    class ShyLog(MemoryLog):
        silences = 0

        async def read(self, **about: Any) -> Any:
            if self.silences:
                self.silences -= 1
                raise FailedError(RefusedBecause.BROKEN, "ask again later")
            return await super().read(**about)

    log = ShyLog()
    async with hosting(log) as host:
        ana = await with_session(host)
        await log.drop(SESSION)
        log.silences = 1
        async with asyncio.timeout(SOON):
            assert "rejectionReason" in await ana.act(title_changed("Oslo"))


# Sessions that come and go


async def test_a_uri_that_is_used_again_is_another_session_to_who_comes_back() -> None:
    async with hosting() as host:
        ana = await with_session(host)
        seen = await ana.act(title_changed("the old one"))
        ana.connection.closed()
        other = await joined(host, ANA, "other")
        await other.call("disposeSession", SESSION)
        await other.call("createSession", SESSION, provider="people")
        back = Client(host)
        answer = await back.call(
            "reconnect",
            clientId="laptop",
            lastSeenServerSeq=seen["serverSeq"],
            subscriptions=[SESSION],
        )
        assert answer["type"] == "snapshot"
        assert answer["snapshots"][0]["state"]["summary"]["title"] != "the old one"


async def test_a_host_that_died_while_making_a_session_makes_it_ready(tmp_path: Path) -> None:
    class DyingLog(SlowLog):
        """Stores the opening of the session, and dies over the next batch."""

        def append(self, batch: Batch, settled: Settled) -> None:
            if batch.channel != SESSION or batch.expected == 0:
                super().append(batch, settled)

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
        record = host.record(SESSION)
        assert record is not None
        if record.public.lifecycle is Lifecycle.CREATING:
            async with asyncio.timeout(SOON):
                await client.wait_for_action("session/ready")


async def test_a_session_that_cannot_be_disposed_of_goes_on() -> None:
    class ClingingLog(MemoryLog):
        async def drop(self, _: Uri) -> Seq:
            raise NOT_NOW

    async with hosting(ClingingLog()) as host:
        ana = await with_session(host)
        async with asyncio.timeout(SOON):
            error = await ana.call("disposeSession", SESSION)
        assert "space" in error["message"]
        assert "rejectionReason" not in await ana.act(title_changed("Oslo"))


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


async def test_a_client_that_leaves_during_the_handshake_is_not_kept() -> None:
    async with hosting() as host:
        await with_session(host)
        hasty = Client(host, BO)
        params = {
            "channel": ROOT,
            "protocolVersions": ["0.3.0"],
            "clientId": "hasty",
            "initialSubscriptions": [SESSION],
        }
        hasty.say({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
        hasty.connection.closed()
        await joined(host, BO, "phone")
        assert hasty not in host.sessions[SESSION].publisher.subscribers


async def test_a_client_that_left_during_a_failed_handshake_stays_gone() -> None:
    log = FullForLog(b'"clientId":"hasty"')
    async with hosting(log) as host:
        await with_session(host)
        await joined(host, BO, "phone")
        hasty = Client(host, BO)
        hello = {"channel": ROOT, "protocolVersions": ["0.3.0"], "clientId": "hasty"}
        again = {"clientId": "phone", "lastSeenServerSeq": 0, "subscriptions": [SESSION]}
        hasty.say({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
        hasty.say(
            {"jsonrpc": "2.0", "id": 2, "method": "reconnect", "params": {"channel": ROOT, **again}}
        )
        hasty.connection.closed()
        await log.refused.wait()
        await joined(host, BO, "tablet")
        assert hasty not in host.sessions[SESSION].publisher.subscribers


async def test_of_two_that_come_with_one_client_id_at_once_one_gets_it() -> None:
    async with hosting() as host:
        ana, bo = Client(host, ANA), Client(host, BO)
        async with asyncio.TaskGroup() as tasks:
            answers = [tasks.create_task(client.initialize("same")) for client in (ana, bo)]
        assert "protocolVersion" in answers[0].result()
        assert answers[1].result().get("code") == -32009


async def test_too_many_initial_subscriptions_harm_nobody_else() -> None:
    async with hosting() as host:
        maker = await joined(host)
        uris = [f"x:/{number}" for number in range(SUBSCRIPTIONS + 1)]
        for uri in uris:
            await maker.call("createSession", uri, provider="people")
        greedy, modest = Client(host), Client(host)
        async with asyncio.timeout(SOON):
            assert (await greedy.initialize("greedy", *uris))["code"] == -32011
            assert "protocolVersion" in await modest.initialize("modest", *uris[:2])


# What the host does on its own


class OnceFullLog(TroubledLog):
    """The disk is full when each of these is to be written, and has space again after it."""

    def __init__(self, *texts: bytes) -> None:
        super().__init__()
        self.to_refuse = list(texts)

    def append(self, batch: Batch, settled: Settled) -> None:
        text = b"".join(entry.data for entry in batch.entries)
        if self.to_refuse and self.to_refuse[0] in text:
            self.to_refuse.pop(0)
            self.trouble = ["full"]
        super().append(batch, settled)


class FullForLog(MemoryLog):
    """The disk is full once, when this text is to be written."""

    def __init__(self, text: bytes | None = None) -> None:
        super().__init__()
        self.text = text
        self.refused = asyncio.Event()

    def append(self, batch: Batch, settled: Settled) -> None:
        data = b"".join(entry.data for entry in batch.entries)
        if self.text is not None and self.text in data:
            self.text = None
            self._loop.call_soon(settled, FULL)
            self._loop.call_soon(self.refused.set)
        else:
            super().append(batch, settled)


async def test_a_turn_that_the_host_could_not_end_is_ended_later() -> None:
    log = OnceFullLog(b"session/turnComplete")
    async with hosting(log) as host:
        ana = await with_session(host)
        agent = await joined(host, AGENT, "agent", SESSION)
        await agent.act(input_requested())
        await ana.act(input_completed())
        await ana.act(title_changed("there is space again"))
        assert not log.to_refuse
        async with asyncio.timeout(SOON):
            await ana.wait_for_action("session/turnComplete")


async def test_a_turn_does_not_stay_without_its_agent() -> None:
    """The agent could not write what it says; the turn goes on or fails, once it can be told."""
    log = OnceFullLog(b"Let me ask", b"session/error")
    async with hosting(log) as host:
        ana = await with_session(host, "demo")
        await ana.act(turn_started())
        async with asyncio.timeout(SOON):
            await ana.wait_for_action("session/error")
        assert not log.to_refuse


async def test_a_session_becomes_ready_once_there_is_space() -> None:
    log = OnceFullLog(b"session/ready")
    async with hosting(log) as host:
        ana = await joined(host)
        assert await ana.call("createSession", SESSION, provider="people") is None
        await ana.call("subscribe", SESSION)
        await ana.act(title_changed("there is space again"))
        assert not log.to_refuse
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
        assert host.root.committed is not None
        assert host.root.committed.active_sessions == 2


ROLE = b"session/activeClientChanged"
CLAIM = {"type": ROLE.decode(), "activeClient": {"clientId": "laptop", "tools": []}}
RELEASED = {"type": ROLE.decode(), "activeClient": None}


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
        back = Client(host)
        await back.call("reconnect", clientId="laptop", lastSeenServerSeq=0, subscriptions=[])
        await clock.advance(FIRST_PAUSE * 2)
        record = host.record(SESSION)
        assert record is not None
        assert record.public.active_client is not None
