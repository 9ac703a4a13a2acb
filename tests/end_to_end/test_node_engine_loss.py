"""The database or the NATS servers go away under two nodes with clients, and come back."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import nats, postgres
from tests.ahp.actions import answer_changed, input_completed
from tests.ahp.client import SocketClient
from tests.end_to_end.test_disk_faults import ready
from tests.end_to_end.test_node_consistency import get, store_on
from tests.end_to_end.test_nodes import (
    TALK,
    ask,
    is_action,
    nodes,
    open_talk,
    post,
    until_ready,
)
from tests.nats import NatsServer
from tests.postgres import Cluster
from tests.servers import ServerProcess
from tests.waiting import until


@contextmanager
def own_store(engine: str) -> Iterator[Cluster | NatsServer]:
    own = postgres.own_cluster() if engine == "postgres" else nats.own_server()
    with own as store:
        yield store


async def is_read_only(server: ServerProcess) -> bool:
    return (await ready(server))[1].startswith("read-only: ")


@pytest.mark.proves("design.nodes.engine")
async def test_without_their_store_nodes_are_read_only_and_go_on_when_it_is_back(
    engine: str, tmp_path: Path
) -> None:
    with own_store(engine) as store, nodes(store.url(), tmp_path) as running:
        await open_talk(running[0])
        request = await ask(running[0])
        clients = [
            await SocketClient.joined(server.ahp, f"c{n}", TALK) for n, server in enumerate(running)
        ]
        for client in clients:
            assert "rejectionReason" not in await client.act(answer_changed("a", request), TALK)
        await asyncio.to_thread(store.kill)
        # Nobody has to write for a node to notice.
        for server in running:
            await until(lambda server=server: is_read_only(server))
        for server, client in zip(running, clients, strict=True):
            refused = await client.act(answer_changed("lost", request), TALK)
            assert refused["rejectionReason"], refused
            view = await get(server, f"/v1/sessions/talk/requests/{request}")
            assert view["request"]["answers"]["q"]["value"]["value"] == "a"
            late = await SocketClient.joined(server.ahp, f"late-{server.port}", TALK)
            await late.close()
        await asyncio.to_thread(store.start)
        for server in running:
            await until_ready(server)
        for client, text in zip(clients, ("b", "c"), strict=True):
            assert "rejectionReason" not in await client.act(answer_changed(text, request), TALK)
        await clients[1].act(input_completed(request, q="done"), TALK)
        for client in clients:
            await client.wait_for(is_action("inputCompleted", requestId=request))
            assert not client.socket.close_code
        seqs = [
            [e["serverSeq"] for e in client.envelopes() if "rejectionReason" not in e]
            for client in clients
        ]
        assert seqs[0] == seqs[1]
        for server in running:
            assert "Traceback" not in "".join(server.output)
        for client in clients:
            await client.close()


@pytest.mark.proves("design.nodes.one-client")
async def test_a_client_id_that_two_principals_take_at_two_nodes_belongs_to_one(
    engine: str, tmp_path: Path
) -> None:
    with nodes(store_on(engine, "nodes_client_ids"), tmp_path) as running:
        tokens = [
            (await post(running[0], "/v1/tokens", {"role": "answerer", "name": name}))["token"]
            for name in ("Ada", "Bo")
        ]
        urls = [f"{s.ahp}?tkn={token}" for s, token in zip(running, tokens, strict=True)]
        for number in range(10):
            clients = [await SocketClient.open(url) for url in urls]
            params: dict[str, Any] = {"clientId": f"id-{number}", "protocolVersions": ["0.3.0"]}
            answers = await asyncio.gather(*(c.call("initialize", **params) for c in clients))
            codes = [answer.get("code") for answer in answers]
            assert sorted(codes, key=str) == [-32009, None], answers
            for client in clients:
                await client.close()
            loser = urls[codes.index(-32009)]
            again = await SocketClient.open(loser)
            assert (await again.call("initialize", **params))["code"] == -32009
            await again.close()
