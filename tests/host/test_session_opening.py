"""What is sent to a session while it is still being opened."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from session_server.host.bounds import Bounds
from session_server.host.host import Host
from session_server.log import AppendResult, Batch, Log, Refused, RefusedBecause
from session_server.log.memory import MemoryLog
from session_server.log.opening import open_log
from session_server.schemas.limits import HELD_FRAMES, UNSETTLED_BYTES_PER_PRINCIPAL
from session_server.schemas.principals import Principal
from tests.ahp.actions import title_changed
from tests.ahp.client import ROOT
from tests.host.harness import ANA, BO, SESSION, Client, hosting, joined, launched, with_session

TITLE = title_changed("Oslo")


class GatedLog(MemoryLog):
    """Holds back what is said of batches of sessions until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: list[tuple[Batch, Callable[[AppendResult], None]]] = []

    def append(self, batch: Batch, settled: Callable[[AppendResult], None]) -> None:
        if batch.channel.startswith("ahp-session:"):
            self._kept.append((batch, settled))
        else:
            super().append(batch, settled)

    async def let_go(self) -> None:
        await launched()
        kept, self._kept = self._kept, []
        for batch, settled in kept:
            super().append(batch, settled)

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


def request(number: Any, method: str, channel: str = SESSION, **params: Any) -> dict[str, Any]:
    params = {"channel": channel, **params}
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def answers(client: Client) -> list[Any]:
    return [frame["id"] for frame in client.received if "method" not in frame]


async def answer(client: Client, number: Any) -> dict[str, Any]:
    return await client.wait_for(lambda frame: frame.get("id") == number)


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
            client.say(request(f"create {number}", "createSession", uri, provider="people"))
            client.say(request(f"subscribe {number}", "subscribe", uri))
            client.dispatch({**TITLE, "title": f"No. {number}"}, uri)
            client.say(request(f"turns {number}", "fetchTurns", uri))
        for number in range(50):
            assert (await answer(client, f"create {number}"))["result"] is None
            snapshot = (await answer(client, f"subscribe {number}"))["result"]["snapshot"]
            assert snapshot["resource"] == f"ahp-session:/{number}"
            assert "result" in await answer(client, f"turns {number}")
            own = [a for a in answers(client) if str(a).endswith(f" {number}")]
            order = ("create", "subscribe", "turns")
            assert own == [f"{what} {number}" for what in order]
        await client.wait_for(lambda frame: "No. 49" in str(frame))
        titles = [e["action"]["title"] for e in client.envelopes() if "title" in e["action"]]
        assert sorted(titles) == sorted(f"No. {number}" for number in range(50))


async def test_a_session_can_be_disposed_of_together_with_its_creation() -> None:
    async with hosting() as host:
        client = await met(host)
        client.say(request("create", "createSession", provider="people"))
        client.say(request("dispose", "disposeSession"))
        client.say(request("subscribe", "subscribe"))
        assert (await answer(client, "create"))["result"] is None
        assert (await answer(client, "dispose"))["result"] is None
        assert host.sessions == {}


async def test_a_hundred_sessions_can_be_created_at_once() -> None:
    async with hosting() as host:
        client = await met(host)
        for number in range(100):
            uri = f"ahp-session:/{number}"
            client.say(request(number, "createSession", uri, provider="people"))
        for number in range(100):
            assert (await answer(client, number))["result"] is None
        assert len(host.sessions) == 100


async def test_others_who_subscribe_to_a_session_that_is_being_opened_wait_for_it() -> None:
    log = GatedLog()
    async with hosting(log) as host:
        maker, other, late = await met(host), await met(host, ANA, "b"), Client(host)
        presence = "ahp-presence:/1"
        maker.say(request(1, "createSession", provider="people"))
        other.say(request("s", "subscribe"))
        other.say(request("p", "subscribe", presence))
        params = {"protocolVersions": ["0.3.0"], "clientId": "c"}
        late.say(
            request("i", "initialize", ROOT, **params, initialSubscriptions=[SESSION, presence])
        )
        assert await other.call("ping") is None
        assert answers(other) == [2]
        await log.let_go()
        assert (await answer(maker, 1))["result"] is None
        assert (await answer(other, "s"))["result"]["snapshot"]["resource"] == SESSION
        assert (await answer(other, "p"))["result"] == {}
        shown = (await answer(late, "i"))["result"]["snapshots"]
        assert [snapshot["resource"] for snapshot in shown] == [SESSION]
        again = Client(host)
        maker.say(request(2, "createSession", "ahp-session:/2", provider="people"))
        again.say(
            request(
                "r",
                "reconnect",
                ROOT,
                clientId="c",
                lastSeenServerSeq=host.position,
                subscriptions=["ahp-session:/2"],
            )
        )
        assert answers(again) == []
        await log.let_go()
        assert (await answer(again, "r"))["result"]["type"] == "snapshot"


async def test_clients_waiting_for_a_session_that_cannot_be_opened_get_an_error() -> None:
    log = GatedLog()
    async with hosting(log) as host:
        client = await met(host)
        client.say(request(1, "createSession", provider="people"))
        client.say(request(2, "subscribe"))
        seq = client.dispatch(TITLE)
        client.say(request(3, "createSession", provider="people"))
        client.say(request(4, "subscribe"))
        await log.refuse()
        assert (await answer(client, 1))["error"]["code"] == -32603
        assert (await answer(client, 2))["error"]["code"] == -32001
        rejection = await client.wait_for(lambda frame: frame.get("method") == "action")
        assert rejection["params"]["origin"]["clientSeq"] == seq
        assert rejection["params"]["_meta"]["code"] == "notSaved"
        await log.let_go()
        assert (await answer(client, 3))["result"] is None
        assert "snapshot" in (await answer(client, 4))["result"]


async def test_a_session_uri_that_is_being_opened_belongs_to_the_first_creator() -> None:
    log = GatedLog()
    async with hosting(log) as host:
        first, second = await met(host), await met(host, ANA, "b")
        first.say(request(1, "createSession", provider="people"))
        second.say(request(1001, "createSession", provider="people"))
        await log.let_go()
        assert (await answer(first, 1))["result"] is None
        assert (await answer(second, 1001))["error"]["code"] == -32003


async def test_who_may_not_see_a_session_learns_nothing_while_it_is_being_opened() -> None:
    log = GatedLog()
    async with hosting(log) as host:
        maker = await met(host)
        guest = await met(host, limited(BO), "guest")
        maker.say(request(1, "createSession", provider="people"))
        guest.say(request("s", "subscribe"))
        assert guest.received[-1]["error"]["code"] == -32001
        await log.let_go()
        await answer(maker, 1)


def limited(principal: Principal) -> Principal:
    return msgspec.structs.replace(principal, sessions=("ahp-session:/other",))


async def test_frames_that_wait_for_a_session_are_bounded_in_number_and_bytes() -> None:
    log = GatedLog()
    async with hosting(log, bounds=Bounds(actions_per_second=0)) as host:
        client = await met(host)
        client.say(request(0, "createSession", provider="people"))
        for number in range(1, HELD_FRAMES + 1):
            client.say(request(number, "fetchTurns"))
        assert answers(client) == []
        client.say(request("many", "fetchTurns"))
        assert client.received[-1]["error"]["code"] == -32011
        client.dispatch(TITLE)
        assert client.received[-1]["params"]["_meta"]["code"] == "limit"
        await log.let_go()
        await answer(client, HELD_FRAMES)
        big = "x" * (UNSETTLED_BYTES_PER_PRINCIPAL // 8)
        client.say(request("c", "createSession", "ahp-session:/2", provider="people"))
        for number in range(9):
            client.say(request(f"b{number}", "fetchTurns", "ahp-session:/2", before=big))
        assert (await answer(client, "b7"))["error"]["code"] == -32011
        await log.let_go()
        assert "result" in await answer(client, "b6")


async def test_a_client_that_leaves_meanwhile_leaves_nothing_behind() -> None:
    log = GatedLog()
    async with hosting(log) as host:
        maker, other = await met(host), await met(host, ANA, "b")
        maker.say(request(1, "createSession", provider="people"))
        other.say(request("s", "subscribe"))
        other.connection.closed()
        await log.let_go()
        await answer(maker, 1)
        assert await maker.call("ping") is None
        assert host.sessions[SESSION].publisher.subscribers == {}


async def test_sessions_that_are_gone_take_no_place_among_the_subscriptions() -> None:
    async with hosting() as host:
        client = await met(host)
        for number in range(300):
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
        freed = await client.act({"type": "session/activeClientChanged", "activeClient": None})
        assert "rejectionReason" not in freed


# Requests, answers and their ids


@pytest.mark.parametrize("request_id", [0, -3, 1.5, 2**60, "", "a-b", "🙂"])
async def test_a_request_is_answered_with_its_own_id_whatever_that_is(request_id: Any) -> None:
    async with hosting() as host:
        client = await with_session(host)
        for frame in (
            request(request_id, "ping", ROOT),
            request(request_id, "unsubscribe"),
            request(request_id, "presence/update", "ahp-presence:/1"),
            request(request_id, "dispatchAction", clientSeq=9, action=TITLE),
        ):
            client.received.clear()
            client.say(frame)
            answered = await client.wait_for(lambda frame: "id" in frame)
            assert answered == {"jsonrpc": "2.0", "id": request_id, "result": None}
        none, title = "ahp-session:/none", {"clientSeq": 9, "action": TITLE}
        for frame, code in (
            (request(request_id, "nonsense"), -32601),
            (request(request_id, "subscribe", none), -32001),
            (request(request_id, "dispatchAction", none, **title), -32001),
            (request(request_id, "dispatchAction", clientSeq=9, action={"type": "odd"}), -32602),
            (request(request_id, "dispatchAction"), -32600),
        ):
            client.received.clear()
            client.say(frame)
            answered = await client.wait_for(lambda frame: "id" in frame)
            assert (answered["id"], answered["error"]["code"]) == (request_id, code)
        assert client.connection.peer.replies.unanswered == 0


async def test_an_action_refused_as_a_request_gets_both_its_rejection_and_an_error() -> None:
    async with hosting() as host:
        await with_session(host)
        watcher = await met(host, BO, "phone", SESSION)
        watcher.say(request("r", "dispatchAction", clientSeq=1, action=TITLE))
        assert (await answer(watcher, "r"))["error"]["code"] == -32011
        rejection = await watcher.wait_for(lambda frame: frame.get("method") == "action")
        assert rejection["params"]["origin"] == {"clientId": "phone", "clientSeq": 1}
        assert answers(watcher) == ["r"]
        early = Client(host)
        early.say(request("e", "dispatchAction", clientSeq=1, action=TITLE))
        assert early.received[-1]["error"]["code"] == -32601


async def test_half_an_emoji_in_an_action_is_kept_as_a_replacement_character() -> None:
    async with hosting() as host:
        client = await with_session(host)
        action = b'{"type":"session/titleChanged","title":"half \\ud83d"}'
        params = b'{"channel":"ahp-session:/1","clientSeq":7,"action":%b}' % action
        client.connection.receive(
            b'{"jsonrpc":"2.0","method":"dispatchAction","params":%b}' % params
        )
        envelope = await client.wait_for_action("session/titleChanged")
        assert envelope["origin"]["clientSeq"] == 7
        assert envelope["action"]["title"] == "half \ufffd"


async def test_an_action_that_is_nested_too_deep_is_rejected_to_its_sender() -> None:
    async with hosting() as host:
        client = await with_session(host)
        deep: Any = []
        for _ in range(100):
            deep = [deep]
        envelope = await client.act({**TITLE, "_meta": {"x": deep}})
        assert "nested" in envelope["rejectionReason"]
        assert envelope["action"] == {**TITLE, "_meta": None}
        client.say(request("d", "subscribe", x=deep))
        assert client.received[-1]["id"] == "d"
        assert client.received[-1]["error"]["code"] == -32700


@pytest.mark.proves("ahp.connect.no-version")
async def test_a_connection_without_a_common_version_is_closed_after_its_answer() -> None:
    async with hosting() as host:
        client = Client(host)
        error = await client.call("initialize", protocolVersions=["9.9.9"], clientId="x")
        assert error["code"] == -32005
        assert client.closed is not None
        assert client.closed[0] == 4501


async def test_a_page_of_no_turns_has_none() -> None:
    async with hosting() as host:
        client = await with_session(host)
        page = await client.call("fetchTurns", SESSION, limit=0)
        assert page == {"turns": [], "hasMore": False}
