"""Several server processes on one store: any client on any node, and any node may die."""

import asyncio
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from session_server.client import RequestClosed, Session, connect
from session_server.schemas.ahp.questions import InputRequest
from tests.ahp.actions import answer_changed, input_completed
from tests.ahp.client import ROOT, SocketClient
from tests.effort import tries
from tests.end_to_end.test_disk_faults import is_ready
from tests.mcp import zoo
from tests.nats import shared_server
from tests.postgres import shared_cluster
from tests.servers import AT_ANY_PACE, ServerProcess, serving, sqlite_store
from tests.waiting import until, wait_until

TALK = "ahp-session:/talk"
BOUND = 60
CALLS = tries(in_ci=100, at_hand=30)
QUESTION = {"kind": "text", "id": "q", "message": "What?"}


def node(store: str, folder: Path, *arguments: str, port: int = 0) -> ServerProcess:
    """All nodes of a host have the same key; here it is in the folder that they share."""
    key = folder / "secret.key"
    if not key.exists():
        key.touch(0o600)
        key.write_text(secrets.token_hex(32))
    shared = ("--shared", "--data-dir", str(folder))
    return ServerProcess(store, *shared, *AT_ANY_PACE, *arguments, port=port)


@contextmanager
def nodes(store: str, folder: Path, *arguments: str) -> Iterator[list[ServerProcess]]:
    """Two of them, which are ready."""
    running: list[ServerProcess] = []
    try:
        running += (node(store, folder, *arguments) for _ in range(2))
        for server in running:
            wait_until(lambda url=f"{server.url}/readyz": httpx2.get(url).is_success, BOUND)
        yield running
    finally:
        for server in running:
            server.kill()


async def until_ready(server: ServerProcess) -> None:
    await until(lambda: is_ready(server))


async def post(
    server: ServerProcess, path: str, body: dict[str, Any], headers: dict[str, str] | None = None
) -> Any:
    async with httpx2.AsyncClient(base_url=server.url, timeout=BOUND) as client:
        answer = await client.post(path, json=body, headers=headers)
        assert answer.is_success, answer.text
        return answer.json()


async def open_talk(server: ServerProcess, uri: str = TALK) -> None:
    await post(server, "/v1/sessions", {"resource": uri, "title": "Talk"})


async def ask(server: ServerProcess) -> str:
    """The id of a new request."""
    wanted = {"message": "Go on?", "questions": [QUESTION]}
    asked = await post(server, f"/v1/sessions/{TALK.rpartition('/')[2]}/requests", wanted)
    return asked["id"]


def is_action(kind: str, **fields: Any) -> Any:
    def fits(frame: dict[str, Any]) -> bool:
        action = frame.get("params", {}).get("action", {})
        return action.get("type") == f"session/{kind}" and fields.items() <= action.items()

    return fits


@pytest.mark.proves("design.nodes.killed")
async def test_the_clients_of_a_killed_node_go_on_at_another_by_position(tmp_path: Path) -> None:
    store = shared_cluster().url("nodes_killed")
    with nodes(store, tmp_path) as (one, other):
        await open_talk(one)
        request = await ask(one)
        here = await SocketClient.joined(one.ahp, "here", TALK)
        there = await SocketClient.joined(other.ahp, "there", TALK)
        seen = [
            (await here.act(answer_changed(f"{n}", request), TALK))["serverSeq"] for n in range(20)
        ]
        one.kill()
        texts = [f"after {n}" for n in range(20)]
        missed = [(await there.act(answer_changed(t, request), TALK))["serverSeq"] for t in texts]
        back = await SocketClient.open(other.ahp)
        answer = await back.call(
            "reconnect", clientId="here", lastSeenServerSeq=seen[-1], subscriptions=[TALK]
        )
        assert answer["type"] == "replay", answer
        assert [action["serverSeq"] for action in answer["actions"]] == missed
        back.client_id = "here"
        await back.act(input_completed(request, q="done"), TALK)
        await there.wait_for(is_action("inputCompleted", requestId=request))
        for client in (there, back):
            await client.close()


async def raced(http: httpx2.AsyncClient, devices: tuple[Session, Session], number: int) -> None:
    """A call of its own, completed by two devices at the same moment."""
    wanted = {"server": "zoo", "tool": "weather"}
    key = {"Idempotency-Key": f"race-{number}"}
    call = (await http.post("/v1/sessions/race/calls", json=wanted, headers=key)).json()

    def is_its(request: InputRequest) -> bool:
        return request.meta is not None and request.meta.call == call["id"]

    requests = [await device.wait_for_request(is_its, BOUND) for device in devices]
    ends = await asyncio.gather(
        *(
            device.complete(requests[0].id, answers={"city": f"{city}-{number}"})
            for device, city in zip(devices, ("Oslo", "Bergen"), strict=True)
        ),
        return_exceptions=True,
    )
    lost = [end for end in ends if isinstance(end, BaseException)]
    assert [type(end) for end in lost] == [RequestClosed]
    winner = "Bergen" if ends[0] is lost[0] else "Oslo"
    view = (await http.get(f"/v1/calls/{call['id']}?wait={BOUND}")).json()
    assert zoo.text_of(view["result"]) == f"Sunny in {winner}-{number}"


@pytest.mark.proves("design.nodes.one-retry", "design.nodes.one-winner")
async def test_a_call_that_is_completed_on_two_nodes_is_sent_again_once(
    engine: str, tmp_path: Path
) -> None:
    """One of the two devices completes it; the call and its result are the same on both nodes."""
    file = tmp_path / "effects"
    store = (shared_server() if engine == "nats" else shared_cluster()).url("nodes_calls")
    with zoo.http_server("modern", "--effects", str(file)) as server:
        config = zoo.mcp_json(tmp_path, {"zoo": {"url": server.url}})
        with nodes(store, tmp_path, "--mcp-config", str(config)) as (one, other):
            await post(one, "/v1/sessions", {"resource": "ahp-session:/race"})
            async with (
                httpx2.AsyncClient(base_url=one.url, timeout=BOUND) as first,
                httpx2.AsyncClient(base_url=other.url, timeout=BOUND) as second,
                connect(one.ahp) as laptop,
                connect(other.ahp) as phone,
                laptop.session("ahp-session:/race") as here,
                phone.session("ahp-session:/race") as there,
            ):
                for number in range(0, CALLS, 10):
                    races = (
                        raced((first, second)[n % 2], (here, there), n)
                        for n in range(number, number + 10)
                    )
                    await asyncio.gather(*races)
    cities = [row["city"] for row in zoo.effects(file, "weather")]
    assert len(cities) == CALLS
    assert {int(city.partition("-")[2]) for city in cities} == set(range(CALLS))


@pytest.mark.proves("design.nodes.one-winner")
async def test_a_name_that_two_nodes_take_at_once_is_one_session(tmp_path: Path) -> None:
    store = shared_cluster().url("nodes_names")
    with nodes(store, tmp_path) as running:
        clients = [
            await SocketClient.joined(server.ahp, f"c{n}", ROOT) for n, server in enumerate(running)
        ]
        for number in range(20):
            uri = f"ahp-session:/n{number}"
            answers = await asyncio.gather(
                *(client.call("createSession", uri, provider="people") for client in clients)
            )
            assert sum(answer is None for answer in answers) == 1, answers
        for client in clients:
            sessions = (await client.call("listSessions"))["items"]
            assert len({session["resource"] for session in sessions}) == 20
            await client.close()


@pytest.mark.proves("design.nodes.alone")
async def test_a_store_that_one_host_has_for_itself_is_not_shared(tmp_path: Path) -> None:
    store = shared_cluster().url("nodes_alone")
    with (
        serving(store, "--data-dir", str(tmp_path)),
        pytest.raises(RuntimeError, match="in use by a host that does not share it"),
    ):
        node(store, tmp_path)
    with nodes(store, tmp_path), pytest.raises(RuntimeError, match="is in use by"):
        ServerProcess(store, "--data-dir", str(tmp_path))
    with pytest.raises(RuntimeError, match="cannot be shared by several nodes; use"):
        node(sqlite_store(tmp_path), tmp_path)


@pytest.mark.proves("design.nodes.alone")
def test_nodes_need_a_key_in_common(tmp_path: Path) -> None:
    store = shared_cluster().url("nodes_key")
    with pytest.raises(RuntimeError, match="need the same key: set secret"):
        ServerProcess(store, "--shared", "--data-dir", str(tmp_path))
