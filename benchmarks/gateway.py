"""What the gateway adds to a tool call that asks nothing: direct, in client mode, in session mode.

`python -m benchmarks.gateway <port>` is the MCP server that is called.
"""

import asyncio
import contextlib
import json
import sys
from statistics import median
from time import perf_counter

import uvicorn
from mcp import Client
from mcp.server.mcpserver import MCPServer

from benchmarks.fanout.peers import host_command
from benchmarks.load import GENERATOR_CORE, Server, free_port, scratch, serving
from benchmarks.results import Results

GATEWAY = "gateway"
"""The table that is filled, ms."""


async def call(client: Client) -> float:
    """How long it took."""
    began = perf_counter()
    result = await client.call_tool("echo", {"text": "hello"})
    if "hello" not in str(result):
        raise RuntimeError(f"the tool did not answer: {result}")
    return perf_counter() - began


async def measured(
    results: Results, urls: dict[str, str], host: Server, calls: int, rounds: int
) -> None:
    """The three take turns; each client is the official SDK's, as in an agent."""
    async with contextlib.AsyncExitStack() as stack:
        clients = {}
        for row, url in urls.items():
            clients[row] = await stack.enter_async_context(Client(url, mode="2026-07-28"))
            await call(clients[row])
        for _ in range(rounds):
            for row, client in clients.items():
                cpu = host.processor_seconds
                times = sorted([await call(client) for _ in range(calls)])
                used = (host.processor_seconds - cpu) / calls
                results.add(GATEWAY, row, "p50", median(times) * 1e3)
                results.add(GATEWAY, row, "p99", times[len(times) * 99 // 100] * 1e3)
                results.add(GATEWAY, row, "host CPU", used * 1e3)


def run(results: Results, calls: int = 200, rounds: int = 3) -> None:
    upstream, port = free_port(), free_port()
    url = f"http://127.0.0.1:{upstream}/mcp"
    servers = {"asked": {"url": url}, "passing": {"url": url, "answers": "client"}}
    command = [sys.executable, "-m", "benchmarks.gateway", str(upstream)]
    with scratch() as folder:
        config = folder / "mcp.json"
        config.write_text(json.dumps({"mcpServers": servers}))
        store = f"sqlite:///{folder / 'bench.db'}"
        host = host_command(port, folder, store, "--mcp-config", str(config))
        # The called server and the caller share a core; the host has the other.
        with serving(command, upstream, core=GENERATOR_CORE), serving(host, port) as server:
            urls = {
                "direct": url,
                "client mode": f"http://127.0.0.1:{port}/mcp/passing",
                "session mode": f"http://127.0.0.1:{port}/mcp/asked",
            }
            asyncio.run(measured(results, urls, server, calls, rounds))


def serve(port: int) -> None:
    server = MCPServer("bench")

    @server.tool()
    def echo(text: str) -> str:
        return text

    app = server.streamable_http_app(host="127.0.0.1")
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="critical")


if __name__ == "__main__":
    serve(int(sys.argv[1]))
