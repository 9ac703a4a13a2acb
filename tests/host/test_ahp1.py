"""Clients of AHP 0.9 and 1.0 next to those of 0.3.0, on one host."""

import json
from pathlib import Path
from typing import Any

import pytest

from session_server.host.channels import ahp1_views, history
from session_server.host.connection import subscriptions
from session_server.host.host import Host
from session_server.log import AppendResult, Batch, NewEntry
from session_server.log.memory import MemoryLog
from session_server.log.opening import open_log
from session_server.reducers.ahp1.uris import chat_uri
from session_server.schemas.ahp.actions import InputRequested, TurnStarted
from session_server.schemas.ahp.questions import InputRequest
from session_server.schemas.codec import encode
from session_server.schemas.limits import (
    FOREIGN_SETTINGS,
    SESSIONS_PER_PAGE,
)
from session_server.schemas.log_entries import Logged
from session_server.schemas.principals import HOST, Stamp
from tests.ahp.actions import (
    answer_changed,
    input_completed,
    input_requested,
    text_question,
    title_changed,
)
from tests.ahp.ahp1_schemas import SHARED, check_frame, with_schemas
from tests.ahp.client import ROOT, SESSION
from tests.host.ahp1 import CHAT, VSCODE, Ahp1Client, opened
from tests.host.clients.test_presence import ROOM, told
from tests.host.harness import AGENT, BO, Client, hosting, joined, record_of, with_session
from tests.log.one_by_one import append_one
from tests.sessions import user_message
from tests.waiting import until

RED = {"id": "red", "label": "Red"}
ASK = input_requested(
    "r1",
    text_question("name"),
    {"id": "how-many", "kind": "integer", "message": "How many?"},
    {"id": "one-of", "kind": "single-select", "message": "Which?", "options": [RED]},
)


async def asked(host: Host) -> Client:
    """An agent that asks, over 0.3.0."""
    agent = await joined(host, AGENT, "agent", SESSION)
    await agent.act(ASK)
    return agent


def chat_input_completed(**answers: str) -> dict[str, Any]:
    return {**input_completed("r1", **answers), "type": "chat/inputCompleted"}


@pytest.mark.proves("ahp.next.codec", "ahp.ahp1.together")
@pytest.mark.parametrize("version", ["1.0.0", "0.9.0", "1.3.7"])
async def test_people_of_both_families_answer_the_same_question(version: str) -> None:
    async with hosting() as host:
        page = await with_session(host)
        editor = await opened(host, "editor", SESSION, CHAT, version=version, principal=BO)
        await asked(host)
        for client in (page, editor):
            await client.call("subscribe", ROOM)
        for client, other in ((page, editor), (editor, page)):
            await told(client, lambda here: {p["by"]["name"] for p in here} == {"Ana", "Bo"})
            client.notify(
                "presence/update", ROOM, editing={"requestId": "r1", "questionId": "name"}
            )
            await told(other, lambda here: any("editing" in p for p in here))
        await page.act(answer_changed("Ad", "r1", "name"))
        await editor.wait_for_action("chat/inputAnswerChanged")
        (part,) = editor.mirrors[CHAT]["activeTurn"]["responseParts"]
        assert part["request"]["answers"]["name"]["value"]["value"] == "Ad"
        assert part["request"]["answers"]["name"]["_meta"]["by"]["name"] == "Ana"
        draft = answer_changed("2", "r1", "how-many")
        editor.dispatch({**draft, "type": "chat/inputAnswerChanged"}, CHAT)
        drafted = await page.wait_for_action("session/inputAnswerChanged", questionId="how-many")
        assert drafted["action"]["answer"]["value"] == {"kind": "number", "value": 2}
        assert drafted["_meta"]["by"]["name"] == "Bo"
        (needed,) = editor.mirrors[SESSION]["inputNeeded"]
        assert (needed["kind"], needed["chat"]) == ("chatInput", CHAT)
        answers = {"name": "Ada", "how-many": "3", "one-of": "red"}
        echo = await editor.act(chat_input_completed(**answers), CHAT)
        assert "rejectionReason" not in echo
        assert echo["action"]["answers"]["how-many"]["value"] == {"kind": "number", "value": 3}
        done = await page.wait_for_action("session/inputCompleted")
        assert done["_meta"]["by"]["name"] == "Bo"
        assert record_of(host).private.outcomes[0].answers is not None
        for channel in (SESSION, CHAT):
            assert editor.mirrors[channel] == await editor.fresh(channel)


@pytest.mark.proves("ahp.next.codec")
async def test_an_action_that_is_refused_is_told_to_its_sender_with_a_later_number() -> None:
    async with hosting() as host:
        await with_session(host)
        await asked(host)
        editor = await opened(host, "editor", CHAT)
        echo = await editor.act(chat_input_completed(**{"how-many": "three"}), CHAT)
        assert "is not a number" in echo["rejectionReason"]
        assert echo["channel"] == CHAT
        assert echo["serverSeq"] == host.position * 1024 + 1023
        for action in ({"type": "chat/turnResume", "turnId": "t"}, {"type": "chat/later"}):
            echo = await editor.echo(editor.dispatch(action, CHAT))
            assert "unknown type" in echo["rejectionReason"]
        echo = await editor.act({"type": "chat/turnCancelled", "turnId": "t"}, SESSION)
        assert echo["rejectionReason"] == "This action is not valid on this channel."
        seen = len(editor.received)
        editor.dispatch({"type": "chat/truncated"}, chat_uri("ahp-session:/none"))
        await editor.call("ping")
        assert len(editor.received) == seen + 1, "an unknown channel is answered with silence"


async def missed_something(host: Host) -> Ahp1Client:
    """A client of VS Code's kind that has lost its connection while a question was open."""
    await with_session(host)
    client = await opened(host, "editor", ROOT, clientInfo=VSCODE, version="0.9.0")
    await client.watch("people:/1")
    await client.watch(chat_uri("people:/1"))
    agent = await asked(host)
    await client.wait_for_action("session/chatUpdated")
    client.connection.closed()
    await agent.act(input_completed("r1", "cancel"))
    return client


@pytest.mark.proves("ahp.next.remembered")
async def test_a_client_that_comes_back_is_sent_what_it_missed_in_its_version() -> None:
    async with hosting() as host:
        first = await missed_something(host)
        again = Ahp1Client(host)
        result = await again.resume(first)
        assert result["type"] == "replay"
        numbers = [envelope["serverSeq"] for envelope in result["actions"]]
        assert numbers == sorted(set(numbers))
        kinds = [envelope["action"]["type"] for envelope in result["actions"]]
        assert kinds[-4:] == [
            "chat/responsePart",
            "chat/inputCompleted",
            "session/inputNeededRemoved",
            "session/chatUpdated",
        ]
        assert await again.is_up_to_date()


@pytest.mark.proves("ahp.next.remembered")
async def test_a_client_that_comes_back_after_a_restart_is_known_by_its_version(
    tmp_path: Path,
) -> None:
    store = f"sqlite:///{tmp_path / 'log.db'}"
    async with hosting(await open_log(store)) as host:
        first = await missed_something(host)
    async with hosting(await open_log(store)) as host:
        again = Ahp1Client(host)
        await again.resume(first)
        assert set(again.mirrors) == set(first.mirrors)
        assert await again.is_up_to_date()


@pytest.mark.proves("ahp.ahp1.numbers")
async def test_a_client_that_saw_part_of_an_entry_is_sent_the_rest() -> None:
    async with hosting() as host:
        await with_session(host)
        first = await opened(host, "editor", SESSION, CHAT)
        before = dict(first.mirrors), first.last_number
        await asked(host)
        await first.wait_for_action("session/chatUpdated")
        first.connection.closed()
        envelopes = first.envelopes()
        for cut in range(len(envelopes) + 1):
            half = Ahp1Client(host)
            half.client_id = "editor"
            half.mirrors, half.last_number = dict(before[0]), before[1]
            for envelope in envelopes[:cut]:
                half.reduce(envelope)
            again = Ahp1Client(host)
            result = await again.resume(half)
            assert result["type"] == "replay"
            assert [e["serverSeq"] for e in result["actions"]] == [
                e["serverSeq"] for e in envelopes[cut:]
            ]
            assert await again.is_up_to_date()
            again.connection.closed()


async def test_a_position_of_another_history_leads_to_snapshots() -> None:
    async with hosting() as host:
        await with_session(host)
        first = await opened(host, "editor", SESSION, CHAT)
        first.last_number += 10_000_000
        result = await Ahp1Client(host).resume(first)
        assert result["type"] == "snapshot"
        assert {s["resource"] for s in result["snapshots"]} == {SESSION, CHAT}


async def test_reconnect_without_a_channel_by_an_unknown_client_is_not_found() -> None:
    async with hosting() as host:
        client = Ahp1Client(host)
        params = {"clientId": "new", "lastSeenServerSeq": 38, "subscriptions": [ROOT]}
        client.say({"jsonrpc": "2.0", "id": 99, "method": "reconnect", "params": params})
        assert (await client.answer(99))["error"]["code"] == -32008
        await client.open_with("new", ROOT, clientInfo=VSCODE, version="0.9.0")
        assert client.mirrors[ROOT]["agents"]


async def test_each_connection_sees_one_spelling() -> None:
    async with hosting() as host:
        await with_session(host)
        for params, session in (
            ({"clientInfo": VSCODE}, "people:/1"),
            ({"clientInfo": VSCODE, "_meta": {"vscode.ahpSessionUris": True}}, SESSION),
            ({"clientInfo": {"name": "other"}}, SESSION),
        ):
            client = await opened(host, f"c{len(host.sessions)}{session}{len(params)}", **params)
            listed = (await client.call("listSessions"))["items"]
            assert [item["resource"] for item in listed] == [session]
            assert listed[0]["defaultChat"] == chat_uri(session)
            for name in (SESSION, "people:/1"):
                shown = (await client.call("subscribe", name)).get("snapshot")
                if shown is not None:
                    assert shown["resource"] == session
                    assert shown["state"]["defaultChat"] == chat_uri(session)
                    assert shown["state"]["chats"][0]["resource"] == chat_uri(session)
            for name in (chat_uri("people:/1"), "ahp-chat:/1", CHAT):
                shown = (await client.call("subscribe", name)).get("snapshot")
                if shown is not None:
                    assert shown["resource"] == shown["state"]["resource"] == chat_uri(session)


async def test_those_who_watch_the_list_hear_of_sessions_in_their_spelling() -> None:
    async with hosting() as host:
        page = await joined(host)
        editor = await opened(host, "editor", ROOT, clientInfo=VSCODE)
        old = await opened(host, "old", ROOT, version="0.9.0")
        assert await page.call("createSession", SESSION, provider="people") is None
        added = await editor.wait_for(lambda f: f.get("method") == "root/sessionAdded")
        assert added["params"]["summary"]["resource"] == "people:/1"
        assert added["params"]["summary"]["chats"][0]["resource"] == chat_uri("people:/1")
        added = await old.wait_for(lambda f: f.get("method") == "root/sessionAdded")
        assert added["params"]["summary"]["resource"] == SESSION
        assert "chats" not in added["params"]["summary"]
        await page.call("subscribe", SESSION)
        await page.act(title_changed("New"))
        changed = await editor.wait_for(lambda f: f.get("method") == "root/sessionSummaryChanged")
        assert changed["params"]["session"] == "people:/1"
        assert changed["params"]["changes"] == {"title": "New"}
        assert await page.call("disposeSession", SESSION) is None
        removed = await editor.wait_for(lambda f: f.get("method") == "root/sessionRemoved")
        assert removed["params"]["session"] == "people:/1"
        counted = await editor.wait_for_action("root/activeSessionsChanged")
        assert counted["serverSeq"] % 1024 == 0


async def test_nothing_open_is_disposed_of() -> None:
    async with hosting() as host:
        await with_session(host)
        agent = await asked(host)
        editor = await opened(host)
        error = await editor.call("disposeSession", SESSION)
        assert error["code"] == -32009
        assert "open" in error["message"]
        await agent.act(input_completed("r1", "cancel"))
        assert await editor.call("disposeSession", "people:/1") is None
        assert SESSION not in host.sessions


async def test_pages_of_sessions_begin_with_the_latest() -> None:
    async with hosting() as host:
        editor = await opened(host)
        for name in "abc":
            assert await editor.call("createSession", f"demo:/{name}", provider="demo") is None
        assert set(host.sessions) == {f"ahp-session:/{name}" for name in "abc"}
        found: list[str] = []
        cursor: dict[str, str] = {}
        while True:
            page = await editor.call("listSessions", limit=2, **cursor)
            found += [item["resource"] for item in page["items"]]
            if "nextCursor" not in page:
                break
            cursor = {"cursor": page["nextCursor"]}
        assert sorted(found) == sorted(host.sessions)
        for wrong in ("x", "", "5"):
            assert (await editor.call("listSessions", cursor=wrong))["code"] == -32602
        assert len(found) < SESSIONS_PER_PAGE


async def test_what_is_not_offered_is_answered_cleanly() -> None:
    async with hosting() as host:
        await with_session(host)
        editor = await opened(host)
        config = await editor.call("resolveSessionConfig", provider="demo")
        assert config == {"schema": {"type": "object", "properties": {}}, "values": {}}
        completions = {"kind": "userMessage", "text": "x", "offset": 1}
        assert await editor.call("completions", SESSION, **completions) == {"items": []}
        assert await editor.call("fetchTurns", CHAT) == {}
        assert (await editor.call("fetchTurns", CHAT, cursor="x"))["code"] == -32602
        assert (await editor.call("fetchTurns", SESSION))["code"] == -32008
        assert (await editor.call("subscribe", chat_uri("demo:/9")))["code"] == -32008
        assert (await editor.call("subscribe", "demo:/9"))["code"] == -32001
        for method in ("createChat", "createTerminal", "resourceRead", "authenticate"):
            assert (await editor.call(method))["code"] == -32601
        assert await editor.call("unsubscribe", CHAT) is None


async def test_settings_that_the_host_does_not_have_are_echoed_and_cost_nothing() -> None:
    async with hosting() as host:
        editor = await opened(host, "editor", ROOT)
        action = {"type": "root/configChanged", "config": {"telemetryLevel": "off"}}
        position = host.position
        for _ in range(FOREIGN_SETTINGS + 1):
            editor.notify("dispatchAction", ROOT, clientSeq=0, action=action)
        echoes = [e for e in editor.envelopes() if e["action"] == action]
        assert len(echoes) == FOREIGN_SETTINGS + 1
        assert host.position == position
        answer = await editor.call("dispatchAction", clientSeq=1, action=action)
        assert answer is None
        assert host.allowances.of(editor.connection.peer.principal.id).unsettled.bytes == 0
        other = await editor.act(title_changed("x"), ROOT)
        assert other["rejectionReason"] == "This action is not valid on this channel."


async def test_an_active_client_that_leaves_loses_its_entry() -> None:
    async with hosting() as host:
        await with_session(host)
        editors = [await opened(host, name, SESSION) for name in ("one", "two")]
        for editor in editors:
            entry = {"clientId": editor.client_id, "tools": []}
            echo = await editor.act(
                {"type": "session/activeClientSet", "activeClient": entry}, SESSION
            )
            assert "rejectionReason" not in echo
        first, second = editors
        await first.wait_for(
            lambda f: f.get("params", {}).get("origin", {}).get("clientId") == "two"
        )
        clients = [entry["clientId"] for entry in first.mirrors[SESSION]["activeClients"]]
        assert clients == ["one", "two"]
        active = record_of(host).public.active_client
        assert active.client_id == "one"
        host.active_clients._release("two")  # while it is connected: it is back
        second.connection.closed()
        host.active_clients._release("two")
        await first.wait_for_action("session/activeClientRemoved")
        assert first.mirrors[SESSION] == await first.fresh(SESSION)


@with_schemas
async def test_everything_that_vs_code_sends_gets_an_answer() -> None:
    """In the order of the trace: a result or a clean refusal, and nothing is lost or throttled."""
    requests = json.loads((SHARED / "vscode-trace.json").read_text())["requests"]
    async with hosting() as host:
        editor = Ahp1Client(host)
        refused: dict[str, int] = {}
        watched = {ROOT}
        for request in requests:
            frame = {"jsonrpc": "2.0", "method": request["method"], "params": request["params"]}
            if "id" not in request:
                editor.say(frame)
                if request["method"] == "unsubscribe":
                    watched.discard(request["params"]["channel"])
                elif request["params"]["channel"] in watched:
                    action = request["params"]["action"]
                    if action["type"] != "session/titleChanged":  # it is echoed on the session
                        await editor.echo(request["params"]["clientSeq"], action["type"])
                continue
            wanted = request["id"]
            editor.client_id = request["params"].get("clientId", editor.client_id)
            editor.say({**frame, "id": wanted})
            answer = await editor.answer(wanted)
            if "error" in answer:
                refused[request["method"]] = answer["error"]["code"]
                continue
            if request["method"] == "subscribe":
                watched.add(request["params"]["channel"])
        assert editor.closed is None
        asked = {request["id"]: request["method"] for request in requests if "id" in request}
        for frame in editor.received:
            check_frame(frame, asked, "0.9.0")
        assert refused == {
            "reconnect": -32008,
            "createResourceWatch": -32601,
            "resourceRead": -32601,
            "resourceResolve": -32601,
            "resourceList": -32601,
            "createTerminal": -32601,
            "disposeTerminal": -32601,
            "subscribe": -32001,
            "createChat": -32601,
        }
        assert host.counts.refusals["limit"] == 0


async def test_what_another_process_wrote_reaches_ahp1_clients_too() -> None:
    log = MemoryLog()
    async with hosting(log) as host:
        page = await with_session(host)
        editor = await opened(host, "editor", SESSION, CHAT)
        start = TurnStarted(turn_id="t", message=user_message())
        ask = InputRequested(request=InputRequest(id="r", message="Who?"))
        stamp = Stamp(at=1, by=HOST)
        entries = tuple(
            NewEntry(f"x{i}", encode(Logged(action=action, stamp=stamp)))
            for i, action in enumerate((start, ask))
        )
        settled: list[AppendResult] = []
        append_one(log, Batch(SESSION, host.sessions[SESSION].last_seq, entries), settled.append)
        await page.act(title_changed("mine"))
        await editor.wait_for_action("session/titleChanged")
        assert editor.mirrors[SESSION]["inputNeeded"][0]["request"] == {
            "id": "r",
            "message": "Who?",
        }
        assert await editor.is_up_to_date()


KEPT = 160
"""Envelopes, in these tests."""


@pytest.fixture
def few_envelopes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahp1_views, "ENVELOPES_KEPT", KEPT)


@pytest.mark.usefixtures("few_envelopes")
async def test_replays_are_bounded_and_go_on_with_snapshots() -> None:
    """The oldest entries are forgotten, a segment at a time."""
    async with hosting() as host:
        page = await with_session(host)
        first = await opened(host, "editor", SESSION, CHAT)
        await asked(host)
        await first.wait_for_action("session/chatUpdated")
        first.connection.closed()
        change = answer_changed("a", "r1", "name")
        recent: Ahp1Client | None = None
        for number in range(KEPT + 10):
            page.dispatch(change)
            if number == KEPT - 50:
                await page.act(change)
                recent = await opened(host, "late", SESSION, CHAT)
                recent.connection.closed()
        for _ in range(2):
            await page.act(change)
        assert recent is not None
        for lost, how in ((first, "snapshot"), (recent, "replay")):
            again = Ahp1Client(host)
            result = await again.resume(lost)
            assert result["type"] == how
            assert await again.is_up_to_date()


async def test_what_is_kept_for_replays_counts_as_memory_of_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with hosting() as host:
        page = await with_session(host)
        editor = await opened(host, "editor", SESSION, CHAT)
        before = host.envelopes.bytes
        await page.act(title_changed("x" * 200))
        await editor.wait_for_action("session/titleChanged")
        assert host.envelopes.bytes - before > 400, "the history's, and that for later versions"
        editor.connection.closed()
        await page.act(title_changed("missed"))
        monkeypatch.setattr(history, "ENVELOPE_BYTES_PER_HOST", 100)
        await page.act(title_changed("too much"))
        assert host.envelopes.bytes == 0
        again = Ahp1Client(host)
        assert (await again.resume(editor))["type"] == "snapshot"
        assert again.mirrors[SESSION]["title"] == "too much"
        assert await again.is_up_to_date()


@pytest.mark.usefixtures("few_envelopes")
async def test_a_session_keeps_no_views_when_nobody_can_be_caught_up_any_more() -> None:
    async with hosting() as host:
        page = await with_session(host)
        await asked(host)
        editor = await opened(host, "editor", SESSION, CHAT)
        channel = host.sessions[SESSION]
        change = answer_changed("a", "r1", "name")
        for is_watched in (True, False):
            for _ in range(KEPT + 1):
                page.dispatch(change)
            await page.act(change)
            assert (channel.publisher.views is not None) is is_watched
            editor.connection.closed()
        again = Ahp1Client(host)
        assert (await again.resume(editor))["type"] == "snapshot"
        assert await again.is_up_to_date()


async def test_a_session_that_was_quiet_for_long_keeps_no_views() -> None:
    async with hosting() as host:
        await with_session(host)
        editor = await opened(host, "editor", SESSION, CHAT)
        channel = host.sessions[SESSION]
        await editor.act(title_changed("x"), SESSION)
        assert channel.publisher.free_idle(2**53)
        assert channel.publisher.views is not None, "somebody watches"
        await editor.act(title_changed("y"), SESSION)
        editor.connection.closed()
        assert channel.publisher.free_idle(2**53)
        assert channel.publisher.views is None
        again = Ahp1Client(host)
        assert (await again.resume(editor))["type"] == "snapshot"
        assert await again.is_up_to_date()


HOSTILE: tuple[dict[str, Any], ...] = (
    {"type": "chat/turnStarted", "turnId": 1, "startedAt": "x", "message": None},
    {"type": "chat/truncated", "turnId": None},
    {"type": "chat/inputCompleted", "requestId": "r1", "response": "maybe"},
    {"type": "chat/inputCompleted", "requestId": "r1", "response": "accept", "answers": []},
    {"type": "chat/inputAnswerChanged", "requestId": "r1", "questionId": "name", "answer": {}},
    {"type": "chat/pendingMessageSet", "kind": "other", "id": "m", "message": {}},
    {"type": "session/activeClientSet", "activeClient": {"clientId": "someone-else", "tools": []}},
    {"type": "session/activeClientSet", "activeClient": {}},
    {"type": "session/customizationToggled", "id": "p", "enablement": []},
    {"type": "session/inputNeededRemoved", "id": "input:r1"},
    {"type": "session/chatUpdated", "chat": CHAT, "changes": {"status": 1}},
    {"type": "chat/inputRequested", "request": {"id": "forged"}},
    {"type": "chat/delta", "turnId": "t", "partId": "p", "content": "x"},
    {"type": "private/messageDrafted", "draft": None},
    {"type": "private/clientJoined", "client": {"clientId": "x", "tools": []}},
    {"type": "session/modelChanged", "model": {"id": "m"}},
    {"type": 5},
    {},
)


@pytest.mark.parametrize("channel", [SESSION, CHAT, ROOT])
async def test_hostile_actions_are_rejected_and_change_nothing(channel: str) -> None:
    async with hosting() as host:
        await with_session(host)
        await asked(host)
        editor = await opened(host, "editor", SESSION, CHAT, ROOT)
        before, position = encode(host.sessions[SESSION].committed), host.position
        for action in HOSTILE:
            echo = await editor.echo(editor.dispatch(action, channel))
            assert echo["rejectionReason"], action
            assert echo["action"] == action
        assert (encode(host.sessions[SESSION].committed), host.position) == (before, position)
        assert await editor.call("ping") is None


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("subscribe", {"channel": "ahp-chat://default/%%%"}),
        ("subscribe", {"channel": ""}),
        ("subscribe", {"channel": "ahp-chat://default/" + "A" * 4_000}),
        ("createSession", {"channel": CHAT, "provider": "demo"}),
        ("createSession", {"channel": "ahp-root://", "provider": "demo"}),
        ("createSession", {"channel": "ahp-chat:/x/", "provider": "demo"}),
        ("createSession", {"channel": "demo:/new", "provider": "nobody"}),
        ("disposeSession", {"channel": CHAT + "x"}),
        ("disposeSession", {"channel": ROOT}),
        ("listSessions", {"channel": ROOT, "limit": -1}),
        ("fetchTurns", {"channel": "ahp-chat://default/"}),
        ("reconnect", {"clientId": "editor", "lastSeenServerSeq": 0, "subscriptions": []}),
        ("initialize", {"channel": ROOT, "protocolVersions": ["1.0.0"], "clientId": "again"}),
    ],
)
async def test_hostile_commands_get_an_error(method: str, params: dict[str, Any]) -> None:
    async with hosting() as host:
        await with_session(host)
        editor = await opened(host, "editor", ROOT)
        editor.say({"jsonrpc": "2.0", "id": 77, "method": method, "params": params})
        answer = await editor.answer(77)
        assert answer["error"]["code"] in {-32001, -32002, -32008, -32601, -32602}
        assert set(host.sessions) == {SESSION}
        assert await editor.call("ping") is None


async def test_the_number_of_channels_that_one_client_watches_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subscriptions, "SUBSCRIPTIONS_PER_CONNECTION", 4)
    async with hosting() as host:
        editor = await opened(host)
        for number in range(2):
            await editor.call("createSession", f"people:/{number}", provider="people")
            await editor.watch(f"ahp-session:/{number}")
            await editor.watch(chat_uri(f"ahp-session:/{number}"))
        error = await editor.call("subscribe", ROOT)
        assert error["code"] == -32011
        await editor.call("unsubscribe", "ahp-session:/0")
        assert "snapshot" in await editor.call("subscribe", ROOT)


async def test_what_nodes_tell_each_other_in_the_root_reaches_no_client() -> None:
    async with hosting(is_shared=True) as host:
        page = await with_session(host)
        editor = await opened(host, "editor", ROOT)
        assert await page.call("disposeSession", SESSION) is None
        root = host.root
        await until(lambda: root.committed is not None and root.committed.active_sessions == 0)
        await editor.wait_for_action("root/activeSessionsChanged", activeSessions=0)
        kinds = {envelope["action"]["type"] for envelope in editor.envelopes()}
        assert kinds == {"root/activeSessionsChanged"}
