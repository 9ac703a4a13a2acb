"""The whole server as a process of its own, on real sockets and a real file."""

import asyncio
import os
import signal
import urllib.request
from pathlib import Path
from typing import Any

import msgspec
import pytest
from websockets.exceptions import ConnectionClosed

from tests.end_to_end.wire import WireClient
from tests.host.harness import run
from tests.servers import ServerProcess, serving, sqlite_store

DEMO = "ahp-session:/demo"


def draft(text: str) -> dict[str, Any]:
    return {
        "type": "session/inputAnswerChanged",
        "requestId": "first:trip",
        "questionId": "name",
        "answer": {"state": "draft", "value": {"kind": "text", "value": text}},
    }


async def demo_question(client: WireClient) -> dict[str, Any]:
    """The demo's open request; it may still be on its way when the server is."""
    while True:
        snapshot = (await client.call("subscribe", DEMO)).get("snapshot")
        for request in (snapshot or {}).get("state", {}).get("inputRequests", ()):
            found: dict[str, Any] = request
            return found
        leave = {"method": "unsubscribe", "params": {"channel": DEMO}}
        await client.send({"jsonrpc": "2.0", **leave})


@run
async def test_a_draft_on_one_device_shows_on_the_other() -> None:
    with serving("memory:", "--demo") as server:
        laptop, phone = await WireClient.open(server.ahp), await WireClient.open(server.ahp)
        await laptop.initialize("laptop")
        await phone.initialize("phone")
        await demo_question(laptop)
        await demo_question(phone)
        await laptop.dispatch(DEMO, draft("Summer in"))
        for client in (laptop, phone):
            frame = await client.until(lambda f: f.get("method") == "action")
            assert frame["params"]["action"]["answer"]["value"]["value"] == "Summer in"
            assert frame["params"]["origin"]["clientId"] == "laptop"


@run
async def test_a_killed_server_comes_back_with_its_questions_and_drafts(tmp_path: Path) -> None:
    store = sqlite_store(tmp_path)
    with serving(store, "--demo") as server:
        client = await WireClient.open(server.ahp)
        await client.initialize("laptop")
        await demo_question(client)
        await client.dispatch(DEMO, draft("Winter"))
        seen = await client.until(lambda f: f.get("method") == "action")
        server.kill()
    with serving(store, "--demo") as server:
        client = await WireClient.open(server.ahp)
        answer = await client.call(
            "reconnect",
            clientId="laptop",
            lastSeenServerSeq=seen["params"]["serverSeq"] - 1,
            subscriptions=[DEMO],
        )
        assert [e["serverSeq"] for e in answer["actions"]] == [seen["params"]["serverSeq"]]
        request = await demo_question(client)
        assert request["answers"]["name"]["value"]["value"] == "Winter"
        answers = {
            "name": {"state": "submitted", "value": {"kind": "text", "value": "Winter"}},
            "city": {"state": "submitted", "value": {"kind": "selected", "value": "kyoto"}},
        }
        await client.dispatch(
            DEMO,
            {
                "type": "session/inputCompleted",
                "requestId": "first:trip",
                "response": "accept",
                "answers": answers,
            },
        )
        said = await client.until(
            lambda f: (
                f.get("params", {}).get("action", {}).get("part", {}).get("id") == "first:answer"
            )
        )
        assert "Kyoto" in said["params"]["action"]["part"]["content"]
        await client.until(
            lambda f: f.get("params", {}).get("action", {}).get("type") == "session/turnComplete"
        )


@run
async def test_stopping_tells_clients_to_come_back(tmp_path: Path) -> None:
    with serving(sqlite_store(tmp_path)) as server:
        client = await WireClient.open(server.ahp)
        await client.initialize("laptop")
        await asyncio.to_thread(server.stop)
        with pytest.raises(ConnectionClosed) as closed:
            await client.socket.recv()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1012


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_that_was_asked_for_exits_with_0(tmp_path: Path, number: signal.Signals) -> None:
    with serving(sqlite_store(tmp_path)) as server:
        assert server.stop(number) == 0
        assert "Traceback" not in "".join(server.output)


def test_a_second_server_on_the_same_file_is_refused_in_words(tmp_path: Path) -> None:
    with serving(sqlite_store(tmp_path)) as first:
        with pytest.raises(RuntimeError, match=str(first.pid)) as refused:
            ServerProcess(sqlite_store(tmp_path))
        assert "Traceback" not in str(refused.value)


def test_a_second_server_by_another_name_of_the_file_is_refused(tmp_path: Path) -> None:
    with serving(sqlite_store(tmp_path)):
        (tmp_path / "linked").mkdir()
        os.link(tmp_path / "sessions.db", tmp_path / "linked" / "sessions.db")
        for claim in tmp_path.rglob("*-claim"):
            claim.unlink()
        for folder in (tmp_path, tmp_path / "linked"):
            with pytest.raises(RuntimeError, match="in use by another process") as refused:
                ServerProcess(sqlite_store(folder))
            assert "Traceback" not in str(refused.value)


def test_a_server_whose_database_is_gone_starts_only_if_the_loss_is_accepted(
    tmp_path: Path,
) -> None:
    store = sqlite_store(tmp_path)
    with serving(store) as server:
        fetch(f"{server.url}/v1/sessions", b'{"title": "Deploy"}')
        server.kill()
    (tmp_path / "sessions.db").unlink()
    with pytest.raises(RuntimeError, match="is missing or empty; it had entries") as refused:
        ServerProcess(store)
    assert "--accept-data-loss" in str(refused.value)
    assert "Traceback" not in str(refused.value)
    with serving(store, "--accept-data-loss") as server:
        assert fetch(f"{server.url}/v1/sessions")[1]["items"] == []
        server.stop()
        assert "The loss is accepted." in "".join(server.output)
    with serving(store):
        pass


def fetch(url: str, body: bytes | None = None) -> tuple[int, Any]:
    request = urllib.request.Request(url, body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as response:
        text = response.read()
        is_json = "json" in response.headers["content-type"]
        return response.status, msgspec.json.decode(text) if is_json else text


def test_sessions_can_be_made_and_listed_over_http() -> None:
    with serving("memory:") as server:
        assert fetch(f"{server.url}/healthz") == (200, b"ok")
        assert fetch(f"{server.url}/readyz") == (200, b"ready")
        status, made = fetch(f"{server.url}/v1/sessions", b'{"title": "Deploy"}')
        assert status == 201
        assert (made["title"], made["provider"]) == ("Deploy", "people")
        _, listed = fetch(f"{server.url}/v1/sessions")
        assert [item["resource"] for item in listed["items"]] == [made["resource"]]
