"""How sessions begin and end for those who watch."""

import asyncio
import itertools

import pytest

from session_server.host import session_list
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


@pytest.mark.proves("ahp.channels.create")
@run
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
@run
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
@run
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
        await ana.act(titled("another one"))
        assert await bo.call("ping") is None
        assert bo.envelopes() == []


@pytest.mark.proves("design.wire.summary-rate")
@run
async def test_a_session_that_only_goes_on_is_news_once_in_a_while() -> None:
    assert session_list.QUIET_SECONDS == 1.0
    pause = 0.2
    with pytest.MonkeyPatch.context() as limits:
        limits.setattr(session_list, "QUIET_SECONDS", pause)
        async with hosting() as host:
            wall = await joined(host, ANA, "wall", ROOT)
            ana = await with_session(host)
            agent = await joined(host, AGENT, "agent", SESSION)
            question = {"id": "q", "kind": "text", "message": "?"}
            await agent.act({**FORM, "request": {"id": "r", "questions": [question]}})
            times: list[float] = []
            while len(times) < 4:
                await ana.act(
                    {
                        "type": "session/inputAnswerChanged",
                        "requestId": "r",
                        "questionId": "q",
                        "answer": {"state": "draft", "value": {"kind": "text", "value": "x"}},
                    }
                )
                for frame in wall.received:
                    changes = frame.get("params", {}).get("changes", {})
                    if set(changes) == {"modifiedAt"}:
                        times.append(asyncio.get_running_loop().time())
                wall.received.clear()
            apart = [later - earlier for earlier, later in itertools.pairwise(times)]
            assert min(apart) > pause * 0.9


@run
async def test_who_watches_only_the_session_hears_that_it_is_gone() -> None:
    async with hosting() as host:
        ana = await with_session(host)
        bo = await joined(host, BO, "phone", SESSION)
        assert await ana.call("disposeSession", SESSION) is None
        gone = await bo.wait_for(lambda f: f.get("method") == "root/sessionRemoved")
        assert gone["params"]["session"] == SESSION


@run
async def test_a_change_that_waited_for_the_turn_is_told_as_its_authors() -> None:
    async with hosting() as host:
        ana = await with_session(host)
        agent = await joined(host, AGENT, "agent", SESSION)
        await agent.act({"type": "session/inputRequested", "request": {"id": "r"}})
        ana.dispatch({"type": "session/modelChanged", "model": {"id": "m"}})
        await ana.act({"type": "session/inputCompleted", "requestId": "r", "response": "accept"})
        changed = await ana.wait_for_action("session/modelChanged")
        assert changed["_meta"]["by"] == {"id": "ana", "name": "Ana"}
