"""The whole server as a process of its own, on real sockets and a real file."""

import asyncio
import random
import urllib.request
from pathlib import Path
from typing import Any

import msgspec
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from session_server.schemas.limits import FRAME_BYTES
from tests.end_to_end.wire import ROOT, WireClient
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
        await client.call("ping")


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
        assert "kyoto" in said["params"]["action"]["part"]["content"]
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


def test_a_second_server_on_the_same_file_is_refused_in_words(tmp_path: Path) -> None:
    with serving(sqlite_store(tmp_path)) as first:
        with pytest.raises(RuntimeError, match=str(first.pid)) as refused:
            ServerProcess(sqlite_store(tmp_path))
        assert "Traceback" not in str(refused.value)


def fetch(url: str, body: bytes | None = None) -> tuple[int, Any]:
    request = urllib.request.Request(url, data=body)
    with urllib.request.urlopen(request, timeout=10) as response:
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


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"nonsense", 400), (b'{"provider": "nobody"}', 422), (b'{"resource": "ahp-x:/1"}', 422)],
)
def test_a_bad_request_over_http_gets_a_problem(body: bytes, status: int) -> None:
    with serving("memory:") as server:
        request = urllib.request.Request(f"{server.url}/v1/sessions", data=body)
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=10)
        with refused.value as error:
            assert error.code == status
            assert msgspec.json.decode(error.read())["status"] == status


@pytest.mark.proves("ahp.frames.text-only")
@run
async def test_bad_frames_close_or_fail_and_disturb_nobody() -> None:
    with serving("memory:") as server:
        other = await WireClient.open(server.ahp)
        await other.initialize("other")
        async with connect(server.ahp) as socket:
            await socket.send(b"\x00binary")
            with pytest.raises(ConnectionClosed) as closed:
                await socket.recv()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1003
        async with connect(server.ahp) as socket:
            await socket.send("x" * (FRAME_BYTES + 1))
            with pytest.raises(ConnectionClosed) as closed:
                await socket.recv()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1009
        dice = random.Random(7)
        async with connect(server.ahp, max_queue=None) as socket:
            for _ in range(10_000):
                await socket.send(rubbish(dice))
            await socket.send(
                '{"jsonrpc":"2.0","id":9,"method":"ping","params":{"channel":"ahp-root://"}}'
            )
            async with asyncio.timeout(30):
                while '"id":9,"result"' not in str(await socket.recv()):
                    pass
        assert await other.call("ping") is None


async def end_of(socket: ClientConnection) -> int | None:
    """Reads to the end; the close code, if it still came through."""
    try:
        async with asyncio.timeout(30):
            while True:
                await socket.recv()
    except ConnectionClosed as closed:
        return closed.rcvd.code if closed.rcvd is not None else None


def rubbish(dice: random.Random) -> str:
    alphabet = '{}[]":,0123456789.-eE tfn\\u"jsonrpcmethodid\u00e9\U0001f642'
    if dice.random() < 0.5:
        return "".join(dice.choices(alphabet, k=dice.randrange(1, 60)))
    frame = {
        "jsonrpc": dice.choice(["2.0", "1.0", 2, None]),
        "id": dice.choice([1, -1, "x", None, 1.5, [], 10**30]),
        "method": dice.choice(["initialise", "subscribe", "dispatchAction", 5, None, ""]),
        "params": dice.choice([{}, [], None, {"channel": 5}, {"channel": ROOT}, "x"]),
    }
    return msgspec.json.encode(frame).decode()


@pytest.mark.proves("design.deliver.no-waiting", "ahp.reconnect.too-old")
@run
async def test_a_subscriber_that_stops_reading_is_let_go_and_the_others_never_notice() -> None:
    with serving("memory:") as server:
        writer = await WireClient.open(server.ahp)
        await writer.initialize("writer")
        uri = "ahp-session:/busy"
        await writer.call("createSession", uri, provider="people")
        await writer.call("subscribe", uri)
        stalled = await connect(server.ahp, max_queue=1, compression=None)
        idle = WireClient(stalled)
        await idle.initialize("stalled", uri)
        title = {"type": "session/titleChanged", "title": "x" * 400}
        meta_free = 0
        for number in range(60_000):
            await writer.dispatch(uri, {**title, "title": f"{number:0400d}"})
            if number % 200 == 199:
                await writer.until(
                    lambda f, seq=number + 1: (
                        f.get("params", {}).get("origin", {}).get("clientSeq") == seq
                    )
                )
                meta_free += 200
        assert meta_free == 60_000
        assert await end_of(stalled) in (4000, None)
        back = await WireClient.open(server.ahp)
        answer = await back.call(
            "reconnect", clientId="stalled", lastSeenServerSeq=1, subscriptions=[uri]
        )
        assert answer["type"] == "snapshot"
