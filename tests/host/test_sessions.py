"""How sessions begin and end for those who watch."""

import pytest

from tests.ahp.actions import (
    answer_changed,
    input_completed,
    input_requested,
    text_question,
    title_changed,
)
from tests.ahp.client import ROOT
from tests.host.faulty_logs import TroubledLog
from tests.host.harness import AGENT, ANA, BO, SESSION, Client, hosting, joined, with_session
from tests.host.manual_clock import ManualClock


@pytest.mark.proves("ahp.channels.create")
async def test_a_session_is_being_created_until_it_is_ready() -> None:
    log = TroubledLog()
    async with hosting(log) as host:
        ana = await joined(host)
        opening = log.append

        def hold_what_follows(batch, settled):  # type: ignore[no-untyped-def]
            if batch.channel == SESSION and batch.expected > 0:
                log.trouble = ["hold"]
            opening(batch, settled)

        log.append = hold_what_follows  # type: ignore[method-assign]
        assert await ana.call("createSession", SESSION, provider="people") is None
        shown = (await ana.call("subscribe", SESSION))["snapshot"]
        assert shown["state"]["lifecycle"] == "creating"
        log.release()
        ready = await ana.wait_for_action("session/ready")
        assert ready["serverSeq"] > shown["fromSeq"]
        ana.say({"jsonrpc": "2.0", "method": "unsubscribe", "params": {"channel": SESSION}})
        shown = (await ana.call("subscribe", SESSION))["snapshot"]
        assert shown["state"]["lifecycle"] == "ready"


@pytest.mark.proves("ahp.connect.best-version")
async def test_the_highest_version_that_both_speak_is_chosen() -> None:
    async with hosting() as host:
        for number, offered in enumerate(
            (["0.3.0"], ["9.0.0", "0.3.0"], ["0.1.0", "0.3.0", "0.2.0"])
        ):
            client = Client(host)
            result = await client.call(
                "initialize", protocolVersions=offered, clientId=f"c{number}"
            )
            assert result["protocolVersion"] == "0.3.0"


@pytest.mark.proves("ahp.channels.dispose")
async def test_who_watched_a_session_that_is_gone_hears_nothing_of_its_successor() -> None:
    async with hosting() as host:
        ana = await with_session(host)
        wall = await joined(host, ANA, "wall", ROOT)
        bo = await joined(host, BO, "phone", SESSION)
        assert await ana.call("disposeSession", SESSION) is None
        removed = await wall.wait_for(lambda f: f.get("method") == "root/sessionRemoved")
        assert removed["params"]["session"] == SESSION
        assert (await bo.call("subscribe", SESSION))["code"] == -32001
        await ana.call("createSession", SESSION, provider="people")
        await ana.call("subscribe", SESSION)
        await ana.act(title_changed("another one"))
        assert await bo.call("ping") is None
        assert bo.envelopes() == []


@pytest.mark.proves("design.wire.summary-rate")
async def test_a_session_that_only_goes_on_is_news_once_in_a_while() -> None:
    clock = ManualClock()
    async with hosting(clock=clock) as host:
        wall = await joined(host, ANA, "wall", ROOT)
        ana = await with_session(host)
        agent = await joined(host, AGENT, "agent", SESSION)
        await agent.act(input_requested("r", text_question()))
        wall.received.clear()
        for _ in range(40):
            await ana.act(answer_changed("x"))
            await clock.advance(0.1)
        changes = [frame["params"]["changes"] for frame in wall.received if "changes" in str(frame)]
        assert 3 <= len(changes) <= 4
        assert all(set(change) == {"modifiedAt"} for change in changes)


async def test_who_watches_only_the_session_hears_that_it_is_gone() -> None:
    async with hosting() as host:
        ana = await with_session(host)
        bo = await joined(host, BO, "phone", SESSION)
        assert await ana.call("disposeSession", SESSION) is None
        gone = await bo.wait_for(lambda f: f.get("method") == "root/sessionRemoved")
        assert gone["params"]["session"] == SESSION


async def test_a_deferred_change_is_attributed_to_its_author() -> None:
    async with hosting() as host:
        ana = await with_session(host)
        agent = await joined(host, AGENT, "agent", SESSION)
        await agent.act(input_requested())
        ana.dispatch({"type": "session/modelChanged", "model": {"id": "m"}})
        await ana.act(input_completed())
        changed = await ana.wait_for_action("session/modelChanged")
        assert changed["_meta"]["by"] == {"id": "ana", "name": "Ana"}
