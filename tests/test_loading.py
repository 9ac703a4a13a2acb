"""What is loaded when: a start is short, and the MCP SDK would be a third of it."""

import re
import subprocess
import sys

import httpx2
import pytest

from tests.effort import PATIENCE
from tests.gateway.requests_2026 import rpc
from tests.servers import READY, ServerProcess, serving

LISTING_IMPORTS = (sys.executable, "-X", "importtime", "-m", "session_server")
SDK = re.compile(r"\| +(?:mcp|mcp_types)\b")


def test_a_server_without_mcp_servers_starts_and_serves_without_the_mcp_sdk() -> None:
    with serving("memory:", command=(*LISTING_IMPORTS, "serve")) as server:
        assert httpx2.get(f"{server.url}/v1/sessions", timeout=PATIENCE).is_success
        assert server.stop() == 0
        assert "session_server.app" in "".join(server.output)
        assert SDK.search("".join(server.output)) is None


def test_the_first_mcp_request_loads_the_mcp_sdk() -> None:
    with serving("memory:", command=(*LISTING_IMPORTS, "serve")) as server:
        assert "result" in rpc(f"{server.url}/mcp", "tools/list", {})
        assert server.stop() == 0
        before, _, after = "".join(server.output).partition(" MCP ")
        assert READY.search(before)
        assert SDK.search(before) is None
        assert SDK.search(after)


@pytest.fixture(scope="module")
def server():
    with serving("memory:") as server:
        yield server


@pytest.mark.parametrize("arguments", [["--version"], ["sessions"], ["ask", "Ready?", "--no-wait"]])
def test_commands_load_neither_the_mcp_sdk_nor_the_server(
    server: ServerProcess, arguments: list[str]
) -> None:
    url = {"SESSION_SERVER_URL": server.url}
    done = subprocess.run(
        [*LISTING_IMPORTS, *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=url,
        check=True,
    )
    assert "session_server.cli.program" in done.stderr
    assert SDK.search(done.stderr) is None
    assert "session_server.app" not in done.stderr
