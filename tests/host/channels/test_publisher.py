"""How what was accepted or refused reaches people: once encoded, in order, and not too early."""

import asyncio
from typing import Any

import pytest

from session_server.host.channels import history
from session_server.host.channels.messages import Message
from session_server.host.host import Host
from session_server.schemas.errors import CloseCode
from session_server.schemas.principals import Principal
from session_server.schemas.wire import Seq
from tests.ahp.actions import input_completed, input_requested, title_changed
from tests.ahp.client import ROOT
from tests.host.ahp1 import opened
from tests.host.faulty_logs import TroubledLog
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
    with_agent,
    with_session,
)

OTHER = "ahp-session:/2"


class Ears(Client):
    """Keeps the messages themselves."""

    def __init__(self, host: Host, principal: Principal = ANA) -> None:
        self.messages: list[Message] = []
        super().__init__(host, principal)

    def send(self, message: Message) -> None:
        self.messages.append(message)
        super().send(message)


@pytest.mark.proves("design.deliver.encoded-once")
async def test_all_subscribers_get_the_same_message_encoded_once() -> None:
    async with hosting() as host:
        ana = await with_session(host)
        crowd = [Ears(host) for _ in range(5)]
        for number, ears in enumerate(crowd):
            await ears.initialize(f"ears-{number}", SESSION)
        await ana.act(title_changed("Oslo"))
        heard = {id(ears.messages[-1]) for ears in crowd}
        assert len(heard) == 1
        assert b"Oslo" in crowd[0].messages[-1].text


@pytest.mark.proves("ahp.envelope.origin")
async def test_an_action_says_whose_it_is_unless_it_is_the_hosts() -> None:
    async with hosting() as host:
        ana = await with_session(host)
        envelope = await ana.act(title_changed("Oslo"))
        assert envelope["origin"] == {"clientId": "laptop", "clientSeq": 1}
        agent = await joined(host, AGENT, "agent", SESSION)
        await agent.act(input_requested())
        await ana.act(input_completed(response="decline"))
        assert "origin" not in await ana.wait_for_action("session/turnComplete")


# Not too early


@pytest.mark.proves("design.append.refusal-waits", "design.rules.rejected")
async def test_a_refusal_waits_for_what_it_was_judged_on() -> None:
    log = TroubledLog()
    async with hosting(log) as host:
        ana, agent = await with_agent(host)
        bo = await joined(host, BO, "phone", SESSION)
        await agent.act(input_requested())
        log.trouble = ["hold"]
        done = input_completed()
        ana.dispatch(done)
        bo.dispatch({**done, "response": "decline"})
        await launched()
        before = len(bo.received)
        assert await bo.call("ping") is None
        assert len(bo.received) == before + 1
        record = host.record(SESSION)
        log.release()
        await ana.wait_for_action("session/inputCompleted")
        refused = await bo.wait_for(lambda f: "rejectionReason" in f.get("params", {}))
        assert refused["params"]["rejectionReason"] == "Too late: Ana answered “Go on?”."
        assert record.public.input_requests is not None


@pytest.mark.proves("design.append.refusal-waits", "design.append.refused")
async def test_a_refusal_that_was_judged_on_what_never_happened_is_not_sent() -> None:
    """The completion could not be saved, so that the other one is not too late at all."""
    log = TroubledLog()
    async with hosting(log) as host:
        ana, agent = await with_agent(host)
        bo = await joined(host, BO, "phone", SESSION)
        await agent.act(input_requested())
        log.trouble = ["full"]
        done = input_completed()
        ana.dispatch(done)
        second = await bo.act({**done, "response": "decline"})
        assert "Too late" not in second.get("rejectionReason", "")
        assert host.sessions[SESSION].head is host.sessions[SESSION].committed


class PonderingLog(TroubledLog):
    def __init__(self) -> None:
        super().__init__()
        self.thought = asyncio.Event()

    async def find(self, ids: Any) -> dict[str, Seq]:
        if ids:
            await self.thought.wait()
        return await super().find(ids)


@pytest.mark.proves("design.append.unknown")
@pytest.mark.parametrize("trouble", ["stored but unknown", "lost and unknown"])
async def test_a_channel_in_doubt_says_nothing_until_the_log_was_read_again(trouble: str) -> None:
    log = PonderingLog()
    async with hosting(log) as host:
        ana = await with_session(host)
        bo = await joined(host, BO, "phone", SESSION)
        log.trouble = [trouble]
        ana.dispatch(title_changed("Oslo"))
        bo.dispatch(title_changed("not for him to say"))
        ana.dispatch(title_changed("Bergen"))
        for client in (ana, bo):
            said = len(client.received)
            for _ in range(5):
                assert await client.call("ping") is None
            assert len(client.received) == said + 5
        ana.notify("unsubscribe", SESSION)
        shown = (await ana.call("subscribe", SESSION))["snapshot"]["state"]
        assert shown["summary"]["title"] != "Oslo"
        log.thought.set()
        await ana.wait_for_title("Bergen")
        await bo.wait_for(lambda f: "rejectionReason" in f.get("params", {}))
        assert [e["action"]["title"] for e in ana.envelopes()] == ["Oslo", "Bergen"]
        entries = await log.read(after=0, limit=1_000, channels=[SESSION])
        assert sum(b"Oslo" in entry.data for entry in entries) == 1


# Coming back


@pytest.mark.proves("ahp.envelope.rejection-not-kept")
async def test_a_rejection_is_not_replayed() -> None:
    async with hosting() as host:
        ana = await with_session(host)
        seen = (await ana.act(title_changed("Oslo")))["serverSeq"]
        assert "rejectionReason" in await ana.act({"type": "session/levitated"})
        assert "rejectionReason" in await ana.act(title_changed("x" * 501))
        last = await ana.act(title_changed("Bergen"))
        ana.connection.closed()
        _, answer = await back_as(host, "laptop", seen, SESSION)
        assert answer["actions"] == [last]


@pytest.mark.proves("ahp.reconnect.client-seq", "ahp.frames.ids-per-socket")
async def test_numbers_that_an_earlier_connection_used_are_new_again() -> None:
    async with hosting() as host:
        ana = await with_session(host)
        first = await ana.act(title_changed("Oslo"))
        ana.connection.closed()
        back, answer = await back_as(host, "laptop", first["serverSeq"], SESSION)
        assert answer["type"] == "replay"
        assert await back.call("ping") is None
        second = await back.act(title_changed("Oslo"))
        assert second["origin"] == first["origin"]
        assert second["serverSeq"] > first["serverSeq"]
        assert "rejectionReason" not in second


@pytest.mark.proves("ahp.reconnect.root-notifications")
async def test_missed_session_notifications_are_not_replayed() -> None:
    async with hosting() as host:
        wall = await joined(host, ANA, "wall", ROOT)
        wall.connection.closed()
        await with_session(host)
        back, answer = await back_as(host, "wall", 0, ROOT)
        assert answer["type"] in ("replay", "snapshot")
        other = await joined(host, ANA, "other")
        await other.call("createSession", OTHER, provider="people")
        await back.wait_for(lambda f: f.get("method") == "root/sessionAdded")
        added = [f for f in back.received if f.get("method") == "root/sessionAdded"]
        assert [f["params"]["summary"]["resource"] for f in added] == [OTHER]
        items = (await back.call("listSessions"))["items"]
        assert {item["resource"] for item in items} == {SESSION, OTHER}


@pytest.mark.proves("ahp.reconnect.too-old", "design.log.too-old")
async def test_a_position_is_too_old_for_the_channel_that_has_dropped_its_history(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(history, "ENVELOPES_KEPT", 5)
    async with hosting() as host:
        ana = await with_session(host)
        await ana.call("createSession", OTHER, provider="people")
        await ana.call("subscribe", OTHER)
        seen = (await ana.act(title_changed("Oslo"), OTHER))["serverSeq"]
        quiet = await ana.act(title_changed("Bergen"), OTHER)
        for number in range(10):
            last = await ana.act(title_changed(str(number)))
        ana.connection.closed()
        _, answer = await back_as(host, "laptop", seen, OTHER)
        assert answer == {"type": "replay", "actions": [quiet], "missing": []}
        _, answer = await back_as(host, "laptop", last["serverSeq"] - 2, SESSION)
        assert len(answer["actions"]) == 2
        _, answer = await back_as(host, "laptop", seen, SESSION)
        assert answer["type"] == "snapshot"
        (shown,) = answer["snapshots"]
        assert (shown["resource"], shown["fromSeq"]) == (SESSION, last["serverSeq"])
        assert shown["state"]["summary"]["title"] == "9"


@pytest.mark.proves("design.log.one-in-flight")
async def test_a_channel_has_one_batch_on_its_way_and_channels_do_not_wait_for_each_other() -> None:
    log = TroubledLog()
    async with hosting(log) as host:
        ana = await with_session(host)
        await ana.call("createSession", OTHER, provider="people")
        await ana.call("subscribe", OTHER)
        log.trouble = ["hold", "hold"]
        for number in range(10):
            ana.dispatch(title_changed(str(number)))
            await launched()
            assert len(log.held) == 1
            assert len(log.held[0][0].entries) == 1
        assert "rejectionReason" not in await ana.act(title_changed("meanwhile"), OTHER)
        log.release()
        await ana.wait_for_title("0")
        await launched()
        assert len(log.held) == 1
        assert len(log.held[0][0].entries) == 9


# What fails for one


async def test_an_outbox_that_fails_keeps_nobody_else_from_anything() -> None:
    class Broken(Client):
        is_broken = False

        def send(self, message: Message) -> None:
            if self.is_broken:
                raise RuntimeError("a defect")
            super().send(message)

    async with hosting() as host:
        broken = Broken(host, BO)
        await broken.initialize("phone")
        ana = await with_session(host)
        await ana.call("unsubscribe", SESSION)
        await broken.call("subscribe", SESSION)
        await ana.call("subscribe", SESSION)
        broken.is_broken = True
        for title in ("Oslo", "Bergen"):
            assert "rejectionReason" not in await ana.act(title_changed(title))
        for title in ("Tromsø", "Bodø"):
            ana.dispatch(title_changed(title))
        await ana.wait_for_title("Bodø")


async def test_a_view_for_later_versions_that_fails_ends_only_the_connections_that_see_it() -> None:
    def fails(*_: object) -> Any:
        raise RuntimeError("a defect")

    async with hosting() as host:
        ana = await with_session(host)
        editor = await opened(host, "editor", SESSION)
        views = host.sessions[SESSION].ahp1_views()
        views._projection = views._projection._replace(envelopes=fails)
        for title in ("Oslo", "Bergen"):
            assert "rejectionReason" not in await ana.act(title_changed(title))
        assert editor.closed[0] == CloseCode.INTERNAL_ERROR
        again = await opened(host, "tablet", SESSION)
        await ana.act(title_changed("Bodø"))
        assert [envelope["action"] for envelope in again.envelopes()] == [title_changed("Bodø")]
