"""What is sent to a session while it is still being opened."""

from pathlib import Path
from typing import Any

import pytest

from session_server.host.host import Host
from session_server.host.host_limits import HostLimits
from session_server.log import Batch, Log, Refused, RefusedBecause
from session_server.log.opening import open_log
from session_server.schemas.limits import HELD_FRAMES, UNSETTLED_BYTES_PER_PRINCIPAL
from session_server.schemas.principals import Principal, Role
from tests.ahp.actions import active_client_changed, title_changed
from tests.ahp.client import ROOT
from tests.host.harness import ANA, BO, SESSION, Client, hosting, joined, launched, with_session
from tests.log.one_by_one import OneByOneLog, SettledOne

TITLE = title_changed("Oslo")


class GatedLog(OneByOneLog):
    """Holds back what is said of batches of sessions until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: list[tuple[Batch, SettledOne]] = []

    def append_one(self, batch: Batch, settled: SettledOne) -> None:
        if batch.channel.startswith("ahp-session:"):
            self._kept.append((batch, settled))
        else:
            super().append_one(batch, settled)

    async def let_go(self) -> None:
        await launched()
        kept, self._kept = self._kept, []
        for batch, settled in kept:
            super().append_one(batch, settled)

    async def refuse(self) -> None:
        await launched()
        kept, self._kept = self._kept, []
        for _, settled in kept:
            settled(Refused(RefusedBecause.FULL, "The disk is full."))


async def met(
    host: Host, principal: Principal = ANA, client_id: str = "laptop", *uris: str
) -> Client:
    """Connected, with nothing received but what the test is about."""
    client = await joined(host, principal, client_id, *uris)
    client.received.clear()
    return client


def answers(client: Client) -> list[Any]:
    return [frame["id"] for frame in client.received if "method" not in frame]


@pytest.mark.proves("ahp.channels.create-together")
@pytest.mark.parametrize("store", ["memory:", "sqlite"])
async def test_what_is_sent_together_with_create_session_is_taken_in_order(
    store: str, tmp_path: Path
) -> None:
    log: Log = await open_log("memory:" if store == "memory:" else f"sqlite:///{tmp_path / 'log'}")
    async with hosting(log) as host:
        client = await met(host)
        for number in range(50):
            uri = f"ahp-session:/{number}"
            client.ask(f"create {number}", "createSession", uri, provider="people")
            client.ask(f"subscribe {number}", "subscribe", uri)
            client.dispatch({**TITLE, "title": f"No. {number}"}, uri)
            client.ask(f"turns {number}", "fetchTurns", uri)
        for number in range(50):
            assert (await client.answer(f"create {number}"))["result"] is None
            snapshot = (await client.answer(f"subscribe {number}"))["result"]["snapshot"]
            assert snapshot["resource"] == f"ahp-session:/{number}"
            assert "result" in await client.answer(f"turns {number}")
            own = [a for a in answers(client) if str(a).endswith(f" {number}")]
            order = ("create", "subscribe", "turns")
            assert own == [f"{what} {number}" for what in order]
        await client.wait_for(lambda frame: "No. 49" in str(frame))
        titles = [e["action"]["title"] for e in client.envelopes() if "title" in e["action"]]
        assert sorted(titles) == sorted(f"No. {number}" for number in range(50))


async def test_a_session_can_be_disposed_of_together_with_its_creation() -> None:
    async with hosting() as host:
        client = await met(host)
        client.ask("create", "createSession", SESSION, provider="people")
        client.ask("dispose", "disposeSession", SESSION)
        client.ask("subscribe", "subscribe", SESSION)
        assert (await client.answer("create"))["result"] is None
        assert (await client.answer("dispose"))["result"] is None
        assert host.sessions == {}


async def test_others_who_subscribe_to_a_session_that_is_being_opened_wait_for_it() -> None:
    log = GatedLog()
    async with hosting(log) as host:
        maker, other, late = await met(host), await met(host, ANA, "b"), Client(host)
        presence = "ahp-presence:/1"
        maker.ask(1, "createSession", SESSION, provider="people")
        other.ask("s", "subscribe", SESSION)
        other.ask("p", "subscribe", presence)
        hello = {"protocolVersions": ["0.3.0"], "clientId": "c"}
        late.ask("i", "initialize", **hello, initialSubscriptions=[SESSION, presence])
        assert await other.call("ping") is None
        assert answers(other) == [2]
        await log.let_go()
        assert (await maker.answer(1))["result"] is None
        assert (await other.answer("s"))["result"]["snapshot"]["resource"] == SESSION
        assert (await other.answer("p"))["result"] == {}
        shown = (await late.answer("i"))["result"]["snapshots"]
        assert [snapshot["resource"] for snapshot in shown] == [SESSION]
        again = Client(host)
        maker.ask(2, "createSession", "ahp-session:/2", provider="people")
        seen = {"clientId": "c", "lastSeenServerSeq": host.position}
        again.ask("r", "reconnect", **seen, subscriptions=["ahp-session:/2"])
        assert answers(again) == []
        await log.let_go()
        assert (await again.answer("r"))["result"]["type"] == "snapshot"


async def test_clients_waiting_for_a_session_that_cannot_be_opened_get_an_error() -> None:
    log = GatedLog()
    async with hosting(log) as host:
        client = await met(host)
        client.ask(1, "createSession", SESSION, provider="people")
        client.ask(2, "subscribe", SESSION)
        seq = client.dispatch(TITLE)
        client.ask(3, "createSession", SESSION, provider="people")
        client.ask(4, "subscribe", SESSION)
        await log.refuse()
        assert (await client.answer(1))["error"]["code"] == -32603
        assert (await client.answer(2))["error"]["code"] == -32001
        rejection = await client.wait_for(lambda frame: frame.get("method") == "action")
        assert rejection["params"]["origin"]["clientSeq"] == seq
        assert rejection["params"]["_meta"]["code"] == "notSaved"
        await log.let_go()
        assert (await client.answer(3))["result"] is None
        assert "snapshot" in (await client.answer(4))["result"]


async def test_a_session_uri_that_is_being_opened_belongs_to_the_first_creator() -> None:
    log = GatedLog()
    async with hosting(log) as host:
        first, second = await met(host), await met(host, ANA, "b")
        first.ask(1, "createSession", SESSION, provider="people")
        second.ask(1001, "createSession", SESSION, provider="people")
        await log.let_go()
        assert (await first.answer(1))["result"] is None
        assert (await second.answer(1001))["error"]["code"] == -32003


async def test_who_may_not_see_a_session_learns_nothing_while_it_is_being_opened() -> None:
    log = GatedLog()
    async with hosting(log) as host:
        maker = await met(host)
        limited = Principal(id="gus", role=Role.OWNER, sessions=("ahp-session:/other",))
        guest = await met(host, limited, "guest")
        maker.ask(1, "createSession", SESSION, provider="people")
        guest.ask("s", "subscribe", SESSION)
        assert guest.received[-1]["error"]["code"] == -32001
        await log.let_go()
        await maker.answer(1)


async def test_frames_that_wait_for_a_session_are_bounded_in_number_and_bytes() -> None:
    log = GatedLog()
    async with hosting(log, limits=HostLimits(actions_per_second=0)) as host:
        client = await met(host)
        client.ask(0, "createSession", SESSION, provider="people")
        for number in range(1, HELD_FRAMES + 1):
            client.ask(number, "fetchTurns", SESSION)
        assert answers(client) == []
        client.ask("many", "fetchTurns", SESSION)
        assert client.received[-1]["error"]["code"] == -32011
        client.dispatch(TITLE)
        assert client.received[-1]["params"]["_meta"]["code"] == "limit"
        await log.let_go()
        await client.answer(HELD_FRAMES)
        big = "x" * (UNSETTLED_BYTES_PER_PRINCIPAL // 8)
        client.ask("c", "createSession", "ahp-session:/2", provider="people")
        for number in range(9):
            client.ask(f"b{number}", "fetchTurns", "ahp-session:/2", before=big)
        assert (await client.answer("b7"))["error"]["code"] == -32011
        await log.let_go()
        assert "result" in await client.answer("b6")


async def test_a_client_that_leaves_meanwhile_leaves_nothing_behind() -> None:
    log = GatedLog()
    async with hosting(log) as host:
        maker, other = await met(host), await met(host, ANA, "b")
        maker.ask(1, "createSession", SESSION, provider="people")
        other.ask("s", "subscribe", SESSION)
        other.connection.closed()
        await log.let_go()
        await maker.answer(1)
        assert await maker.call("ping") is None
        assert host.sessions[SESSION].publisher.subscribers == {}


async def test_sessions_that_are_gone_take_no_place_among_the_subscriptions() -> None:
    async with hosting() as host:
        client = await met(host)
        for number in range(10):
            uri = f"ahp-session:/{number}"
            await client.call("createSession", uri, provider="people")
            assert "snapshot" in await client.call("subscribe", uri)
            assert await client.call("subscribe", f"ahp-presence:/{number}") == {}
            await client.call("disposeSession", uri)
        assert len(client.connection.peer.subscriptions._channels) <= 1
        assert host.presence._rooms == {}


@pytest.mark.proves("ahp.session.active-client-own")
async def test_nobody_can_make_someone_else_the_active_client_of_a_new_session() -> None:
    async with hosting() as host:
        client = await met(host)
        theirs = {"clientId": "somebody", "tools": []}
        wanted = {"provider": "people", "activeClient": theirs}
        refused = await client.call("createSession", SESSION, **wanted)
        assert refused["code"] == -32009
        assert host.sessions == {}
        wanted["activeClient"] = {"clientId": "laptop", "tools": []}
        assert await client.call("createSession", SESSION, **wanted) is None
        await client.call("subscribe", SESSION)
        assert "rejectionReason" not in await client.act(active_client_changed(None))


# Requests, answers and their ids


@pytest.mark.parametrize("request_id", [0, -3, 1.5, 2**60, "", "a-b", "🙂"])
async def test_a_request_is_answered_with_its_own_id_whatever_that_is(request_id: Any) -> None:
    async with hosting() as host:
        client = await with_session(host)
        none, title = "ahp-session:/none", {"clientSeq": 9, "action": TITLE}
        for method, channel, params, code in (
            ("ping", ROOT, {}, None),
            ("unsubscribe", SESSION, {}, None),
            ("presence/update", "ahp-presence:/1", {}, None),
            ("dispatchAction", SESSION, title, None),
            ("nonsense", SESSION, {}, -32601),
            ("subscribe", none, {}, -32001),
            ("dispatchAction", none, title, -32001),
            ("dispatchAction", SESSION, {**title, "action": {"type": "odd"}}, -32602),
            ("dispatchAction", SESSION, {}, -32600),
        ):
            client.received.clear()
            client.ask(request_id, method, channel, **params)
            answered = await client.wait_for(lambda frame: "id" in frame)
            assert answered["id"] == request_id
            assert answered.get("error", {}).get("code") == code
            assert "error" in answered or answered["result"] is None
        assert client.connection.peer.replies.unanswered == 0


async def test_an_action_refused_as_a_request_gets_both_its_rejection_and_an_error() -> None:
    async with hosting() as host:
        await with_session(host)
        watcher = await met(host, BO, "phone", SESSION)
        watcher.ask("r", "dispatchAction", SESSION, clientSeq=1, action=TITLE)
        assert (await watcher.answer("r"))["error"]["code"] == -32011
        rejection = await watcher.wait_for(lambda frame: frame.get("method") == "action")
        assert rejection["params"]["origin"] == {"clientId": "phone", "clientSeq": 1}
        assert answers(watcher) == ["r"]
        early = Client(host)
        early.ask("e", "dispatchAction", SESSION, clientSeq=1, action=TITLE)
        assert early.received[-1]["error"]["code"] == -32601


async def test_an_action_that_is_nested_too_deep_is_rejected_to_its_sender() -> None:
    async with hosting() as host:
        client = await with_session(host)
        deep: Any = []
        for _ in range(100):
            deep = [deep]
        envelope = await client.act({**TITLE, "_meta": {"x": deep}})
        assert "nested" in envelope["rejectionReason"]
        assert envelope["action"] == {**TITLE, "_meta": None}
        client.ask("d", "subscribe", SESSION, x=deep)
        assert client.received[-1]["id"] == "d"
        assert client.received[-1]["error"]["code"] == -32700
