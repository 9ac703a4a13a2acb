"""What one node has acknowledged counts on every other node at once: nothing waits for news."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.exceptions import InvalidStatus

from tests.ahp.actions import title_changed
from tests.ahp.client import ROOT, SocketClient
from tests.end_to_end.test_nodes import (
    BOUND,
    QUESTION,
    node,
    nodes,
    post,
    until_ready,
)
from tests.log.cutting_proxy import cutting
from tests.mcp import zoo
from tests.nats import shared_server
from tests.postgres import shared_cluster
from tests.servers import ServerProcess
from tests.waiting import until

ROUNDS = 10


def store_on(engine: str, name: str) -> str:
    return (shared_cluster() if engine == "postgres" else shared_server()).url(name)


async def get(server: ServerProcess, path: str, **options: Any) -> Any:
    async with httpx2.AsyncClient(base_url=server.url, timeout=BOUND) as client:
        answer = await client.get(path, **options)
        assert answer.is_success, answer.text
        return answer.json()


async def is_opened(server: ServerProcess, name: str) -> bool:
    return (await get(server, f"/v1/sessions/{name}"))["lifecycle"] == "ready"


async def both_ways(
    running: list[ServerProcess],
    work: Callable[[ServerProcess, ServerProcess, str], Awaitable[None]],
) -> None:
    """Several times from each node to the other, under a name of its own."""
    for number in range(ROUNDS):
        here, there = running if number % 2 else reversed(running)
        await work(here, there, f"n{number}")


@pytest.mark.proves("design.nodes.acknowledged")
async def test_what_one_node_has_acknowledged_is_found_on_the_other(
    engine: str, tmp_path: Path
) -> None:
    with nodes(store_on(engine, "nodes_found"), tmp_path) as running:
        clients = {
            server.url: await SocketClient.joined(server.ahp, f"c{n}", ROOT)
            for n, server in enumerate(running)
        }

        async def by_http(here: ServerProcess, there: ServerProcess, name: str) -> None:
            await post(here, "/v1/sessions", {"resource": f"ahp-session:/{name}"})
            wanted = {"message": "Go on?", "questions": [QUESTION]}
            asked = await post(there, f"/v1/sessions/{name}/requests", wanted)
            await get(here, f"/v1/sessions/{name}/requests/{asked['id']}")

        async def by_socket(here: ServerProcess, there: ServerProcess, name: str) -> None:
            uri = f"ahp-session:/s{name}"
            one, other = clients[here.url], clients[there.url]
            assert await one.call("createSession", uri, provider="people") is None
            assert "snapshot" in await other.call("subscribe", uri)
            assert (await one.call("createSession", uri, provider="people"))["code"] == -32003
            assert await other.call("disposeSession", uri) is None
            async with httpx2.AsyncClient(base_url=here.url, timeout=BOUND) as http:
                assert (await http.get(f"/v1/sessions/s{name}")).status_code == 404

        await both_ways(running, by_http)
        await both_ways(running, by_socket)
        for client in clients.values():
            await client.close()


@pytest.mark.proves("design.nodes.acknowledged")
async def test_a_client_that_moves_has_seen_nothing_that_its_new_node_does_not_know(
    engine: str, tmp_path: Path
) -> None:
    with nodes(store_on(engine, "nodes_moves"), tmp_path) as running:
        uri = "ahp-session:/moves"
        await post(running[0], "/v1/sessions", {"resource": uri})
        await until(lambda: is_opened(running[0], "moves"))  # `session/ready` follows the answer

        async def moves(here: ServerProcess, there: ServerProcess, name: str) -> None:
            client = await SocketClient.joined(here.ahp, name, uri)
            seen = (await client.act(title_changed(name), uri))["serverSeq"]
            moved = await SocketClient.open(there.ahp)
            answer = await moved.call(
                "reconnect", clientId=name, lastSeenServerSeq=seen, subscriptions=[uri]
            )
            assert answer == {"type": "replay", "actions": [], "missing": []}, answer
            await client.close()
            await moved.close()

        await both_ways(running, moves)


@pytest.mark.proves("design.nodes.acknowledged", "design.nodes.tokens")
async def test_tokens_and_links_count_and_end_on_every_node_at_once(
    engine: str, tmp_path: Path
) -> None:
    with nodes(store_on(engine, "nodes_links"), tmp_path) as running:

        async def token(here: ServerProcess, there: ServerProcess, name: str) -> None:
            await post(here, "/v1/sessions", {"resource": f"ahp-session:/{name}"})
            paths = ("/v1/tokens", f"/v1/sessions/{name}/shares")
            made = await post(here, paths[0], {"role": "answerer", "name": name})
            shared = await post(here, paths[1], {"role": "answerer"})
            for path, issued in zip(paths, (made, shared), strict=True):
                url = f"{there.ahp}?tkn={issued['token']}"
                guest = await SocketClient.open(url)
                async with httpx2.AsyncClient(base_url=here.url, timeout=BOUND) as http:
                    token_id = (await http.get(path)).json()["items"][-1]["id"]
                    assert (await http.delete(f"{path}/{token_id}")).is_success
                with pytest.raises(InvalidStatus, match="403"):
                    await SocketClient.open(url)
                async with asyncio.timeout(BOUND):
                    await guest.socket.wait_closed()

        await both_ways(running, token)


@pytest.mark.proves("design.nodes.acknowledged")
async def test_a_call_and_its_key_are_known_on_every_node_at_once(
    engine: str, tmp_path: Path
) -> None:
    with zoo.http_server("modern") as server:
        config = zoo.mcp_json(tmp_path, {"zoo": {"url": server.url}})
        store = store_on(engine, "nodes_known_calls")
        with nodes(store, tmp_path, "--mcp-config", str(config)) as running:
            await post(running[0], "/v1/sessions", {"resource": "ahp-session:/talk"})

            async def call(here: ServerProcess, there: ServerProcess, name: str) -> None:
                made = [
                    await post(
                        server,
                        "/v1/sessions/talk/calls",
                        {"server": "zoo", "tool": "weather"},
                        {"Idempotency-Key": name},
                    )
                    for server in (here, there)
                ]
                assert made[0]["id"] == made[1]["id"]
                assert (await get(there, f"/v1/calls/{made[0]['id']}"))["id"] == made[0]["id"]

            await both_ways(running, call)


@pytest.mark.proves("design.nodes.not-denied")
async def test_a_node_that_cannot_read_what_others_wrote_does_not_deny_it(
    engine: str, tmp_path: Path
) -> None:
    """It is told apart from what is known not to be there."""
    store = shared_cluster() if engine == "postgres" else shared_server()
    name = "nodes_denied"
    async with cutting(store.port) as proxy:
        one = await asyncio.to_thread(node, store.url(name), tmp_path)
        other = await asyncio.to_thread(node, store.url(name, port=proxy.port), tmp_path)
        try:
            await until_ready(other)
            async with httpx2.AsyncClient(base_url=other.url, timeout=BOUND) as http:
                assert (await http.get("/v1/sessions/made")).status_code == 404
                proxy.is_refusing = True
                proxy.cut()
                await post(one, "/v1/sessions", {"resource": "ahp-session:/made"})
                answer = await http.get("/v1/sessions/made")
                assert (answer.status_code, answer.json()["code"]) == (503, "logUnavailable")
                proxy.is_refusing = False
                async with asyncio.timeout(BOUND):
                    for path, known in ("/v1/sessions/made", 200), ("/v1/sessions/never", 404):
                        while (answer := await http.get(path)).status_code != known:
                            assert answer.status_code == 503
        finally:
            one.kill()
            other.kill()
