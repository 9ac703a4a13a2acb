"""The whole server as a process of its own, on real sockets and a real file."""

import asyncio
import signal
from pathlib import Path

import httpx2
import pytest
from websockets.exceptions import ConnectionClosed

from tests.ahp.client import SocketClient
from tests.effort import PATIENCE
from tests.servers import ServerProcess, serving, sqlite_store


@pytest.mark.parametrize("path", ["/", "/ahp", ""])
async def test_vs_code_connects_at_the_bare_address(tmp_path: Path, path: str) -> None:
    with serving(sqlite_store(tmp_path)) as server:
        address = server.ahp.removesuffix("/ahp") + path
        client = await SocketClient.open(address, origin="vscode-file://vscode-app")
        result = await client.call(
            "initialize",
            protocolVersions=["1.0.0", "0.10.0", "0.9.0"],
            clientId="window",
            clientInfo={"name": "vscode-agents-window"},
            initialSubscriptions=["ahp-root://"],
        )
        assert result["protocolVersion"] == "1.0.0"
        (snapshot,) = result["snapshots"]
        providers = {agent["provider"]: agent for agent in snapshot["state"]["agents"]}
        assert providers["demo"]["models"]
        await client.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_that_was_asked_for_exits_with_0(tmp_path: Path, number: signal.Signals) -> None:
    with serving(sqlite_store(tmp_path)) as server:
        assert server.stop(number) == 0
        assert "Traceback" not in "".join(server.output)


def test_a_second_server_on_the_same_file_is_refused_with_a_reason(tmp_path: Path) -> None:
    with serving(sqlite_store(tmp_path)) as first:
        with pytest.raises(RuntimeError, match=str(first.pid)) as refused:
            ServerProcess(sqlite_store(tmp_path))
        assert "Traceback" not in str(refused.value)


def test_a_server_whose_database_is_gone_starts_only_if_the_loss_is_accepted(
    tmp_path: Path,
) -> None:
    store = sqlite_store(tmp_path)
    with serving(store) as server:
        httpx2.post(f"{server.url}/v1/sessions", json={}).raise_for_status()
        server.kill()
    (tmp_path / "sessions.db").unlink()
    with pytest.raises(RuntimeError, match="is missing or empty; it had entries") as refused:
        ServerProcess(store)
    assert "--accept-data-loss" in str(refused.value)
    assert "Traceback" not in str(refused.value)
    with serving(store, "--accept-data-loss") as server:
        assert httpx2.get(f"{server.url}/v1/sessions").json()["items"] == []
        server.stop()
        assert "The loss is accepted." in "".join(server.output)
    with serving(store):
        pass


@pytest.mark.proves("design.nodes.drains")
async def test_a_server_that_is_stopped_says_so_and_serves_a_while_longer() -> None:
    """A load balancer stops sending, and clients are told not to keep their connections."""
    with serving("memory:", "--drain-seconds", f"{PATIENCE}") as server:
        watcher = await SocketClient.joined(server.ahp, "laptop")
        async with httpx2.AsyncClient(base_url=server.url, timeout=PATIENCE) as http:
            assert "connection" not in (await http.get("/readyz")).headers
            server.process.send_signal(signal.SIGTERM)
            answer = await http.get("/readyz")
            while answer.is_success:
                answer = await http.get("/readyz")
            assert (answer.status_code, answer.text) == (503, "stopping")
            listed = await http.get("/v1/sessions")
            assert (listed.status_code, listed.headers["connection"]) == (200, "close")
        assert await watcher.call("ping") is None
        late = await SocketClient.joined(server.ahp, "phone")
        await asyncio.to_thread(server.stop, signal.SIGINT)  # the second one: at once
        for client in (watcher, late):
            with pytest.raises(ConnectionClosed) as closed:
                await client.wait_for(lambda _: False)
            assert closed.value.rcvd.code == 1012
