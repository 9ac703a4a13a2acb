"""How sessions begin and end for those who watch."""

import pytest

from session_server.schemas.log_entries import TOKENS_CHANNEL
from session_server.schemas.principals import Principal, Role
from tests.ahp.actions import (
    answer_changed,
    input_completed,
    input_requested,
    text_question,
    title_changed,
)
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
    record_of,
    with_agent,
    with_session,
)
from tests.host.manual_clock import ManualClock

OTHER = "ahp-session:/2"


@pytest.mark.proves("ahp.channels.create")
async def test_a_session_is_being_created_until_it_is_ready() -> None:
    log = TroubledLog()
    async with hosting(log) as host:
        ana = await joined(host)
        opening = log.append_one

        def hold_what_follows(batch, settled):  # type: ignore[no-untyped-def]
            if batch.channel == SESSION and batch.expected > 0:
                log.trouble = ["hold"]
            opening(batch, settled)

        log.append_one = hold_what_follows  # type: ignore[method-assign]
        assert await ana.call("createSession", SESSION, provider="people") is None
        shown = (await ana.call("subscribe", SESSION))["snapshot"]
        assert shown["state"]["lifecycle"] == "creating"
        log.release()
        ready = await ana.wait_for_action("session/ready")
        assert ready["serverSeq"] > shown["fromSeq"]
        ana.notify("unsubscribe", SESSION)
        shown = (await ana.call("subscribe", SESSION))["snapshot"]
        assert shown["state"]["lifecycle"] == "ready"


@pytest.mark.proves("ahp.channels.dispose")
async def test_who_watched_a_session_hears_that_it_is_gone_and_nothing_of_its_successor() -> None:
    async with hosting() as host:
        ana = await with_session(host)
        wall = await joined(host, ANA, "wall", ROOT)
        bo = await joined(host, BO, "phone", SESSION)
        assert await ana.call("disposeSession", SESSION) is None
        for watcher in (wall, bo):
            removed = await watcher.wait_for(lambda f: f.get("method") == "root/sessionRemoved")
            assert removed["params"]["session"] == SESSION
        assert (await bo.call("subscribe", SESSION))["code"] == -32001
        await ana.call("createSession", SESSION, provider="people")
        await ana.call("subscribe", SESSION)
        await ana.act(title_changed("another one"))
        assert await bo.call("ping") is None
        assert bo.envelopes() == []


@pytest.mark.proves("design.wire.summary-rate", "ahp.channels.root-notifications")
async def test_a_session_that_only_goes_on_is_news_once_in_a_while() -> None:
    clock = ManualClock()
    async with hosting(clock=clock) as host:
        wall = await joined(host, ANA, "wall", ROOT)
        ana, agent = await with_agent(host)
        await agent.act(input_requested("r", text_question()))
        await wall.wait_for(lambda f: f.get("params", {}).get("changes", {}).get("status") == 24)
        wall.received.clear()
        for _ in range(40):
            await ana.act(answer_changed("x"))
            await clock.advance(0.1)
        changes = [frame["params"]["changes"] for frame in wall.received if "changes" in str(frame)]
        assert 3 <= len(changes) <= 4
        assert all(set(change) == {"modifiedAt"} for change in changes)
        await clock.advance(1)
        latest = wall.received[-1]["params"]["changes"]["modifiedAt"]
        assert latest == record_of(host).public.summary.modified_at


LIMITED = Principal(id="gus", role=Role.OWNER, sessions=(SESSION,))


async def test_a_limited_principal_sees_its_sessions_and_no_others() -> None:
    async with hosting() as host:
        ana = await with_session(host)
        assert await ana.call("createSession", OTHER, provider="people") is None
        guest = await joined(host, LIMITED, "guest")
        items = (await guest.call("listSessions"))["items"]
        assert [item["resource"] for item in items] == [SESSION]
        for uri in (OTHER, "ahp-presence:/2", TOKENS_CHANNEL):
            assert (await guest.call("subscribe", uri))["code"] == -32001
        assert "snapshot" in await guest.call("subscribe", SESSION)
        assert (await guest.call("disposeSession", SESSION))["code"] == -32009


@pytest.mark.parametrize("how", ["subscribe", "initialize", "reconnect", "in AHP 1.0"])
async def test_a_limited_principal_hears_of_its_sessions_and_of_no_others(how: str) -> None:
    async with hosting() as host:
        ana = await with_session(host)
        assert await ana.call("createSession", OTHER, provider="people") is None
        agent = await joined(host, AGENT, "agent", SESSION, OTHER)
        guest = Client(host, LIMITED)
        if how == "in AHP 1.0":
            guest = await opened(host, "guest", ROOT, principal=LIMITED)
            assert guest.mirrors == {}
        else:
            await guest.initialize("guest", *((ROOT,) if how == "initialize" else ()))
        if how == "subscribe":
            assert await guest.call("subscribe", ROOT) == {}
        if how == "reconnect":
            guest.connection.closed()
            guest, answer = await back_as(host, "guest", 0, ROOT, principal=LIMITED)
            assert answer.get("missing", []) == []
        guest.received.clear()
        for uri in (OTHER, SESSION):
            await agent.act(input_requested(), uri)
        changed = await guest.wait_for(lambda f: f.get("method") == "root/sessionSummaryChanged")
        assert changed["params"]["changes"]["status"] == 24
        assert await ana.call("disposeSession", OTHER) is None
        assert await guest.call("ping") is None
        news = [frame for frame in guest.received if "method" in frame]
        told = {(frame["method"], frame["params"]["session"]) for frame in news}
        assert told == {("root/sessionSummaryChanged", SESSION)}
        guest.notify("unsubscribe", ROOT)
        await agent.act(input_completed(response="cancel"))
        assert await guest.call("ping") is None
        assert [frame for frame in guest.received if "method" in frame] == news
