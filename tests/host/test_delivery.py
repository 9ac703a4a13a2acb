"""How what was accepted or refused reaches people: once encoded, in order, and not too early."""

import asyncio
from typing import Any

import pytest

from session_server.host import history
from session_server.host.delivery import Message
from session_server.host.host import Host
from session_server.schemas.principals import Principal
from session_server.schemas.wire import Seq
from tests.host.harness import (
    AGENT,
    ANA,
    BO,
    ROOT,
    SESSION,
    Client,
    hosting,
    joined,
    run,
    with_session,
)
from tests.host.test_channel import FORM, TroubledLog, titled

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
@run
async def test_all_subscribers_get_the_same_message_encoded_once() -> None:
    async with hosting() as host:
        ana = await with_session(host)
        crowd = [Ears(host) for _ in range(5)]
        for number, ears in enumerate(crowd):
            await ears.initialize(f"ears-{number}", SESSION)
        await ana.act(titled("Oslo"))
        heard = {id(ears.messages[-1]) for ears in crowd}
        assert len(heard) == 1
        assert b"Oslo" in crowd[0].messages[-1].text


@pytest.mark.proves("ahp.envelope.origin")
@run
async def test_an_action_says_whose_it_is_unless_it_is_the_hosts() -> None:
    async with hosting() as host:
        ana = await with_session(host)
        envelope = await ana.act(titled("Oslo"))
        assert envelope["origin"] == {"clientId": "laptop", "clientSeq": 1}
        agent = await joined(host, AGENT, "agent", SESSION)
        await agent.act(FORM)
        await ana.act({"type": "session/inputCompleted", "requestId": "r", "response": "decline"})
        assert "origin" not in await ana.wait_for_action("session/turnComplete")


# Not too early


@pytest.mark.proves("design.append.refusal-waits", "design.rules.rejected")
@run
async def test_a_refusal_waits_for_what_it_was_judged_on() -> None:
    log = TroubledLog()
    async with hosting(log) as host:
        ana = await with_session(host)
        agent = await joined(host, AGENT, "agent", SESSION)
        bo = await joined(host, BO, "phone", SESSION)
        await agent.act(FORM)
        log.trouble = ["hold"]
        done = {"type": "session/inputCompleted", "requestId": "r", "response": "accept"}
        ana.dispatch(done)
        bo.dispatch({**done, "response": "decline"})
        before = len(bo.received)
        assert await bo.call("ping") is None
        assert len(bo.received) == before + 1
        record = host.record(SESSION)
        log.release()
        await ana.wait_for_action("session/inputCompleted")
        refused = await bo.wait_for(lambda f: "rejectionReason" in f.get("params", {}))
        assert refused["params"]["rejectionReason"] == "Too late: Ana answered “Go on?”."
        assert record is not None
        assert record.public.input_requests is not None


@pytest.mark.proves("design.append.refusal-waits", "design.append.refused")
@run
async def test_a_refusal_that_was_judged_on_what_never_happened_is_not_sent() -> None:
    """The completion could not be saved, so that the other one is not too late at all."""
    log = TroubledLog()
    async with hosting(log) as host:
        ana = await with_session(host)
        agent = await joined(host, AGENT, "agent", SESSION)
        bo = await joined(host, BO, "phone", SESSION)
        await agent.act(FORM)
        log.trouble = ["full"]
        done = {"type": "session/inputCompleted", "requestId": "r", "response": "accept"}
        ana.dispatch(done)
        second = await bo.act({**done, "response": "decline"})
        assert "Too late" not in second.get("rejectionReason", "")
        assert host.sessions[SESSION].head is host.sessions[SESSION].committed


@pytest.mark.proves("design.append.unknown")
@run
async def test_a_channel_in_doubt_says_nothing_until_the_log_was_read_again() -> None:
    class PonderingLog(TroubledLog):
        def __init__(self) -> None:
            super().__init__()
            self.thought = asyncio.Event()

        async def find(self, ids: Any) -> dict[str, Seq]:
            if ids:
                await self.thought.wait()
            return await super().find(ids)

    for trouble in ("stored but unknown", "lost and unknown"):
        log = PonderingLog()
        async with hosting(log) as host:
            ana = await with_session(host)
            bo = await joined(host, BO, "phone", SESSION)
            log.trouble = [trouble]
            ana.dispatch(titled("Oslo"))
            bo.dispatch(titled("Bergen"))
            for client in (ana, bo):
                said = len(client.received)
                for _ in range(5):
                    assert await client.call("ping") is None
                assert len(client.received) == said + 5
            ana.say({"jsonrpc": "2.0", "method": "unsubscribe", "params": {"channel": SESSION}})
            shown = (await ana.call("subscribe", SESSION))["snapshot"]["state"]
            assert shown["summary"]["title"] != "Oslo"
            log.thought.set()
            await bo.wait_for_action("session/titleChanged")
            await bo.wait_for(lambda f: "rejectionReason" in f.get("params", {}))


# Coming back


async def back_as(host: Host, client_id: str, seen: int, *channels: str) -> tuple[Client, Any]:
    client = Client(host)
    answer = await client.call(
        "reconnect", clientId=client_id, lastSeenServerSeq=seen, subscriptions=list(channels)
    )
    return client, answer


@pytest.mark.proves("ahp.envelope.rejection-not-kept")
@run
async def test_a_refusal_is_not_told_again() -> None:
    async with hosting() as host:
        ana = await with_session(host)
        seen = (await ana.act(titled("Oslo")))["serverSeq"]
        assert "rejectionReason" in await ana.act({"type": "session/levitated"})
        assert "rejectionReason" in await ana.act(titled("x" * 501))
        last = await ana.act(titled("Bergen"))
        ana.connection.closed()
        _, answer = await back_as(host, "laptop", seen, SESSION)
        assert answer["actions"] == [last]


@pytest.mark.proves("ahp.reconnect.client-seq", "ahp.frames.ids-per-socket")
@run
async def test_numbers_that_an_earlier_connection_used_are_new_again() -> None:
    async with hosting() as host:
        ana = await with_session(host)
        first = await ana.act(titled("Oslo"))
        ana.connection.closed()
        back, answer = await back_as(host, "laptop", first["serverSeq"], SESSION)
        assert answer["type"] == "replay"
        assert await back.call("ping") is None
        second = await back.act(titled("Oslo"))
        assert second["origin"] == first["origin"]
        assert second["serverSeq"] > first["serverSeq"]
        assert "rejectionReason" not in second


@pytest.mark.proves("ahp.reconnect.root-notifications")
@run
async def test_news_of_sessions_that_were_missed_are_not_sent_later() -> None:
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
@run
async def test_a_position_is_too_old_for_the_channel_that_has_dropped_its_history() -> None:
    with pytest.MonkeyPatch.context() as limits:
        limits.setattr(history, "ENVELOPES_KEPT", 5)
        async with hosting() as host:
            ana = await with_session(host)
            await ana.call("createSession", OTHER, provider="people")
            await ana.call("subscribe", OTHER)
            seen = (await ana.act(titled("Oslo"), OTHER))["serverSeq"]
            quiet = await ana.act(titled("Bergen"), OTHER)
            for number in range(10):
                last = await ana.act(titled(str(number)))
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
@run
async def test_a_channel_has_one_batch_on_its_way_and_channels_do_not_wait_for_each_other() -> None:
    log = TroubledLog()
    async with hosting(log) as host:
        ana = await with_session(host)
        await ana.call("createSession", OTHER, provider="people")
        await ana.call("subscribe", OTHER)
        log.trouble = ["hold", "hold"]
        for number in range(10):
            ana.dispatch(titled(str(number)))
            assert len(log.held) == 1
            assert len(log.held[0][0].entries) == 1
        assert "rejectionReason" not in await ana.act(titled("meanwhile"), OTHER)
        log.release()
        await ana.wait_for(
            lambda f: f.get("method") == "action" and f["params"]["action"].get("title") == "0"
        )
        assert len(log.held) == 1
        assert len(log.held[0][0].entries) == 9
