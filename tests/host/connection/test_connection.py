"""The protocol of one client, without a socket."""

from pathlib import Path
from typing import Any

import pytest

from session_server.host.host import Host
from session_server.log.opening import open_log
from tests.ahp.actions import title_changed
from tests.ahp.client import ROOT
from tests.host.harness import (
    ANA,
    BO,
    SESSION,
    Client,
    back_as,
    hosting,
    joined,
    with_session,
)

TITLE = title_changed("Oslo")


@pytest.mark.proves(
    "ahp.connect.initialize", "ahp.connect.best-version", "ahp.connect.unknown-subscription"
)
@pytest.mark.parametrize("offered", [["0.3.0"], ["9.0.0", "0.1.0", "0.3.0", "0.2.0"]])
async def test_initialize_answers_with_version_position_and_snapshots(offered: list[str]) -> None:
    async with hosting() as host:
        result = await Client(host).call(
            "initialize",
            protocolVersions=offered,
            clientId="laptop",
            initialSubscriptions=[ROOT, "ahp-session:/unknown"],
        )
        assert result["protocolVersion"] == "0.3.0"
        assert [s["resource"] for s in result["snapshots"]] == [ROOT]
        assert result["snapshots"][0]["fromSeq"] == result["serverSeq"]
        providers = {a["provider"] for a in result["snapshots"][0]["state"]["agents"]}
        assert providers == {"demo", "people"}


@pytest.mark.proves("ahp.connect.no-version")
@pytest.mark.parametrize(
    ("offered", "code"), [(["1.0"], -32602), ([], -32005), (["2.0.0", "9.9.9"], -32005)]
)
async def test_without_a_common_version_a_connection_is_closed_after_its_answer(
    offered: list[str], code: int
) -> None:
    async with hosting() as host:
        client = Client(host)
        error = await client.call("initialize", protocolVersions=offered, clientId="x")
        assert error["code"] == code
        if code == -32005:
            assert error["data"] == {"supportedVersions": ["1.0.0", "0.9.0", "0.3.0"]}
            assert client.closed[0] == 4501


@pytest.mark.proves(
    "ahp.connect.handshake-first", "ahp.connect.initialize-once", "ahp.connect.ping"
)
async def test_before_the_handshake_only_ping_is_understood() -> None:
    async with hosting() as host:
        client = Client(host)
        assert await client.call("ping") is None
        assert (await client.call("listSessions"))["code"] == -32601
        client.dispatch(TITLE)
        await client.initialize()
        assert (await client.call("initialize", protocolVersions=["0.3.0"], clientId="x"))[
            "code"
        ] == -32601
        assert await client.call("ping") is None
        assert client.envelopes() == []


async def test_frames_that_come_during_the_handshake_keep_their_order() -> None:
    async with hosting() as host:
        client = Client(host)
        client.ask(100, "initialize", protocolVersions=["0.3.0"], clientId="x")
        assert (await client.call("listSessions"))["items"] == []
        assert [frame["id"] for frame in client.received] == [100, 1]


@pytest.mark.proves("ahp.channels.subscribe", "ahp.channels.unsubscribe")
async def test_subscribing_shows_the_session_and_then_every_action_after_it() -> None:
    async with hosting() as host:
        maker = await with_session(host)
        watcher = await joined(host, BO, "phone")
        snapshot = (await watcher.call("subscribe", SESSION))["snapshot"]
        assert snapshot["state"]["lifecycle"] == "ready"
        envelope = await maker.act(TITLE)
        assert envelope["serverSeq"] > snapshot["fromSeq"]
        assert envelope["_meta"]["by"] == {"id": "ana", "name": "Ana"}
        assert (await watcher.wait_for_action("session/titleChanged")) == envelope
        received = len(watcher.received)
        watcher.notify("unsubscribe", SESSION)
        await maker.act(TITLE)
        assert len(watcher.received) == received


@pytest.mark.proves("ahp.channels.subscribe-unknown", "ahp.envelope.unknown-channel")
async def test_there_is_nothing_to_subscribe_to_where_there_is_no_channel() -> None:
    async with hosting() as host:
        client = await joined(host)
        assert (await client.call("subscribe", "ahp-session:/none"))["code"] == -32001
        assert (await client.call("fetchTurns", "ahp-session:/none"))["code"] == -32001
        client.dispatch(TITLE, "ahp-session:/none")
        assert await client.call("ping") is None
        assert client.envelopes() == []


@pytest.mark.proves(
    "ahp.envelope.rejection-private", "ahp.envelope.rejection-seq", "design.rules.rejected"
)
async def test_a_refusal_goes_to_its_sender_alone_and_takes_no_place() -> None:
    async with hosting() as host:
        maker = await with_session(host)
        watcher = await joined(host, BO, "phone", SESSION)
        before = host.record(SESSION)
        refused = await watcher.act(TITLE)
        assert host.record(SESSION) is before
        assert refused["rejectionReason"].startswith("You may answer")
        assert refused["_meta"] == {"code": "role"}
        assert refused["action"] == TITLE
        accepted = await maker.act(TITLE)
        assert accepted["serverSeq"] == refused["serverSeq"] + 1
        assert all("rejectionReason" not in f.get("params", {}) for f in maker.received)


async def test_an_action_that_is_not_understood_is_refused_as_it_came() -> None:
    async with hosting() as host:
        client = await with_session(host)
        odd = {"type": "session/levitated", "height": 3}
        envelope = await client.act(odd)
        assert envelope["action"] == odd
        assert "session/levitated" in envelope["rejectionReason"]


@pytest.mark.proves(
    "ahp.channels.create-taken", "ahp.channels.create-provider", "design.names.reserved"
)
@pytest.mark.parametrize(
    ("channel", "params", "code"),
    [
        (SESSION, {"provider": "people"}, -32003),
        ("ahp-session:/2", {"provider": "nobody"}, -32002),
        ("ahp-chat:/2", {"provider": "people"}, -32602),
        ("session-server:tokens", {"provider": "people"}, -32602),
        ("no uri", {"provider": "people"}, -32602),
        (
            "ahp-session:/2",
            {"provider": "people", "fork": {"session": "ahp-session:/9", "turnId": "t"}},
            -32001,
        ),
        (
            "ahp-session:/2",
            {"provider": "people", "fork": {"session": SESSION, "turnId": "t"}},
            -32602,
        ),
    ],
)
async def test_a_session_that_cannot_be_made(
    channel: str, params: dict[str, Any], code: int
) -> None:
    async with hosting() as host:
        client = await with_session(host)
        assert (await client.call("createSession", channel, **params))["code"] == code


@pytest.mark.proves(
    "ahp.channels.any-scheme", "ahp.channels.list", "ahp.channels.root-notifications"
)
async def test_sessions_come_and_go_for_everyone_who_watches_the_root() -> None:
    async with hosting() as host:
        watcher = await joined(host, ANA, "wall", ROOT)
        maker = await joined(host)
        assert await maker.call("createSession", "custom:/x", provider="people") is None
        added = await watcher.wait_for(lambda f: f.get("method") == "root/sessionAdded")
        assert added["params"]["summary"]["resource"] == "custom:/x"
        items = (await watcher.call("listSessions"))["items"]
        assert [item["resource"] for item in items] == ["custom:/x"]
        counted = await watcher.wait_for_action("root/activeSessionsChanged", activeSessions=1)
        watcher.received.clear()
        await maker.call("subscribe", "custom:/x")
        assert await maker.call("disposeSession", "custom:/x") is None
        removed = await watcher.wait_for(lambda f: f.get("method") == "root/sessionRemoved")
        assert removed["params"]["session"] == "custom:/x"
        assert (await maker.call("subscribe", "custom:/x"))["code"] == -32001
        assert (await maker.call("disposeSession", "custom:/x"))["code"] == -32001
        again = await watcher.wait_for_action("root/activeSessionsChanged", activeSessions=0)
        assert again["serverSeq"] > counted["serverSeq"]


@pytest.mark.proves("ahp.channels.subscribe-again")
async def test_a_second_subscribe_brings_no_second_snapshot_until_unsubscribed() -> None:
    async with hosting() as host:
        client = await joined(host, ANA, "laptop", "ahp-root://")
        assert await client.call("subscribe", "ahp-root://") == {}
        await client.call("createSession", SESSION, provider="people")
        assert "snapshot" in await client.call("subscribe", SESSION)
        assert await client.call("subscribe", SESSION) == {}
        await client.act(title_changed("once"))
        client.notify("unsubscribe", SESSION)
        snapshot = (await client.call("subscribe", SESSION))["snapshot"]
        assert snapshot["state"]["summary"]["title"] == "once"
        await client.call("disposeSession", SESSION)
        assert (await client.call("subscribe", SESSION))["code"] == -32001
        await client.call("createSession", SESSION, provider="people")
        assert "snapshot" in await client.call("subscribe", SESSION)


# Coming back


@pytest.mark.proves(
    "ahp.reconnect.first-frame",
    "ahp.reconnect.replay",
    "ahp.reconnect.names-missing",
    "ahp.reconnect.seamless",
)
async def test_a_client_that_comes_back_gets_what_it_missed_and_nothing_twice() -> None:
    async with hosting() as host:
        maker = await with_session(host)
        first = await maker.act(TITLE)
        maker.connection.closed()
        other = await joined(host, ANA, "other", SESSION)
        for number in range(3):
            await other.act(title_changed(str(number)))
        seen = first["serverSeq"]
        back, answer = await back_as(host, "laptop", seen, SESSION, "ahp-session:/gone")
        assert answer["type"] == "replay"
        assert answer["missing"] == ["ahp-session:/gone"]
        assert [e["action"]["title"] for e in answer["actions"]] == ["0", "1", "2"]
        await other.act(TITLE)
        await back.wait_for_action("session/titleChanged")
        seqs = [e["serverSeq"] for e in [*answer["actions"], *back.envelopes()]]
        assert seqs == sorted(set(seqs))


@pytest.mark.proves("ahp.reconnect.unknown-client")
async def test_an_unknown_client_must_initialize_and_can_on_the_same_socket() -> None:
    async with hosting() as host:
        client, error = await back_as(host, "new", 0)
        assert error["code"] == -32008
        assert "protocolVersion" in await client.initialize("new")


@pytest.mark.proves("ahp.reconnect.ahead")
async def test_a_position_ahead_of_the_host_gets_snapshots() -> None:
    async with hosting() as host:
        maker = await with_session(host)
        maker.connection.closed()
        _, answer = await back_as(host, "laptop", 10**6, SESSION)
        assert answer["type"] == "snapshot"
        assert [s["resource"] for s in answer["snapshots"]] == [SESSION]


@pytest.mark.proves("ahp.reconnect.other-epoch")
async def test_a_client_gets_snapshots_after_a_rollback_until_it_has_seen_one(
    tmp_path: Path,
) -> None:
    """An answer that got lost, or another connection of the same client, changes nothing."""
    path = tmp_path / "log.db"

    async def resumed(host: Host, seen: int) -> Any:
        back, answer = await back_as(host, "laptop", seen, SESSION)
        back.connection.closed()
        return answer

    async with hosting(await open_log(f"sqlite:///{path}")) as host:
        await with_session(host)
    backup = path.read_bytes()
    positions = []
    for number in range(3):
        log = await open_log(f"sqlite:///{path}", accept_data_loss=True)
        async with hosting(log) as host:
            if number:
                await joined(host)  # somebody else who is the same client
            for _ in range(10 * number):
                await (await joined(host, ANA, "other", SESSION)).act(TITLE)
            for seen in (0, *positions):
                for _ in range(2):
                    assert (await resumed(host, seen))["type"] == "snapshot"
            shown = (await resumed(host, 0))["snapshots"][0]["fromSeq"]
            maker = await joined(host, ANA, "maker", SESSION)
            lost = (await maker.act(title_changed("Lost")))["serverSeq"]
            replay = await resumed(host, shown)
            assert [e["serverSeq"] for e in replay["actions"]] == [lost]
            positions += [shown, lost]
        path.write_bytes(backup)


@pytest.mark.proves("ahp.reconnect.after-restart")
async def test_a_host_that_starts_again_knows_its_sessions_and_its_clients(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'log.db'}"
    async with hosting(await open_log(store)) as host:
        maker = await with_session(host)
        last = await maker.act(TITLE)
        before = host.record(SESSION)
    async with hosting(await open_log(store)) as host:
        assert host.record(SESSION) == before
        _, answer = await back_as(host, "laptop", last["serverSeq"] - 1, SESSION)
        assert [e["serverSeq"] for e in answer["actions"]] == [last["serverSeq"]]
