"""What the gateway adds to a tool call that asks nothing: direct, in client mode, in session mode.

Over HTTP and stdio, in both eras, one call at a time and 20 at once; for 2026 over HTTP next to a
proxy that passes on requests and does nothing else. `python -m benchmarks.gateway <port>` is the
MCP server that is called; without a port it is on stdin and stdout; with an address behind the
port it is the proxy to it.
"""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncGenerator, Iterator, Sequence
from itertools import count
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import httpx2
import uvicorn
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.server.mcpserver import MCPServer
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from benchmarks.fanout.peers import host_command
from benchmarks.load import GENERATOR_CORE, Server, free_port, pinned, scratch, serving
from benchmarks.results import Results

GATEWAY, GATEWAY_AT_ONCE = "gateway", "gateway-at-once"
"""The tables that are filled, ms."""

AT_ONCE = 20
DIRECT, PROXY, CLIENT, SESSION = "direct", "bare proxy", "client mode", "session mode"
MODULE = [sys.executable, "-m", "benchmarks.gateway"]


class Case(NamedTuple):
    """How the server is reached, and the revision that it and its client speak."""

    transport: str
    revision: str

    @property
    def name(self) -> str:
        return f"{self.transport}, {self.revision[:4]}"

    @property
    def is_proxied(self) -> bool:
        """Requests that need no session and are answered with JSON are easy to pass on."""
        return self.transport == "HTTP" and self.revision.startswith("2026")

    @property
    def mode(self) -> str:
        return self.revision if self.revision.startswith("2026") else "legacy"

    def entry(self, url: str) -> dict[str, Any]:
        """In the host's configuration."""
        if self.transport == "HTTP":
            return {"url": url, "protocol": self.revision}
        command, *args = pinned(MODULE, GENERATOR_CORE)
        return {"command": command, "args": args, "protocol": self.revision}

    def server(self, url: str) -> Any:
        """For a client that goes there itself."""
        if self.transport == "HTTP":
            return url
        return stdio_client(StdioServerParameters(command=MODULE[0], args=MODULE[1:]))


CASES = tuple(
    Case(transport, revision)
    for transport in ("HTTP", "stdio")
    for revision in ("2026-07-28", "2025-11-25")
)
NUMBERS = count()


async def call(client: Client) -> float:
    """How long it took. No two calls are the same."""
    text = f"hello {next(NUMBERS)}"
    began = perf_counter()
    result = await client.call_tool("echo", {"text": text})
    if text not in str(result):
        raise RuntimeError(f"the tool did not answer: {result}")
    return perf_counter() - began


async def calls_of(client: Client, number: int) -> list[float]:
    return [await call(client) for _ in range(number)]


async def sample(client: Client, number: int, at_once: int, host: Server) -> tuple[float, ...]:
    """p50, p99 and host CPU per call, ms."""
    cpu = host.processor_seconds
    each = await asyncio.gather(*(calls_of(client, number // at_once) for _ in range(at_once)))
    times = sorted(time for times in each for time in times)
    await asyncio.sleep(0.05)  # what follows an answer belongs to its call
    used = (host.processor_seconds - cpu) / len(times)
    return median(times) * 1e3, times[len(times) * 99 // 100] * 1e3, used * 1e3


@contextlib.asynccontextmanager
async def clients_of(
    case: Case, url: str, host: Server, proxy: Server
) -> AsyncGenerator[dict[str, Client]]:
    """Each is the official SDK's, as in an agent."""
    places = {
        DIRECT: case.server(url),
        **({PROXY: f"http://127.0.0.1:{proxy.port}/mcp"} if case.is_proxied else {}),
        CLIENT: f"http://127.0.0.1:{host.port}/mcp/{CASES.index(case)}-client",
        SESSION: f"http://127.0.0.1:{host.port}/mcp/{CASES.index(case)}-session",
    }
    async with contextlib.AsyncExitStack() as stack:
        yield {
            row: await stack.enter_async_context(Client(place, mode=case.mode))
            for row, place in places.items()
        }


class Effort(NamedTuple):
    calls: int = 200
    rounds: int = 3


EFFORT = Effort()


async def measured(
    results: Results, case: Case, url: str, host: Server, proxy: Server, effort: Effort
) -> None:
    """They take turns, so that what else the machine does meets all of them."""
    calls, rounds = effort
    async with clients_of(case, url, host, proxy) as clients:
        for client in clients.values():
            await calls_of(client, calls // 5)
        for table, at_once in ((GATEWAY, 1), (GATEWAY_AT_ONCE, AT_ONCE)):
            for _ in range(rounds):
                direct = 0.0
                for row, client in clients.items():
                    between = proxy if row == PROXY else host
                    p50, p99, cpu = await sample(client, calls, at_once, between)
                    direct = p50 if row == DIRECT else direct
                    name = f"{case.name}: {row}"
                    results.add(table, name, "p50", p50)
                    results.add(table, name, "p50 × direct", p50 / direct)
                    results.add(table, name, "p99", p99)
                    results.add(table, name, "host CPU", cpu)


@contextlib.contextmanager
def on_core(core: int) -> Iterator[None]:
    """This process too: the caller and the called server share a core, the host has the other."""
    before = os.sched_getaffinity(0)
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def run(results: Results, cases: Sequence[Case] = CASES, effort: Effort = EFFORT) -> None:
    print("gateway", flush=True)
    upstream, port, proxied = free_port(), free_port(), free_port()
    url = f"http://127.0.0.1:{upstream}/mcp"
    servers = {
        f"{number}-{answers}": case.entry(url) | {"answers": answers}
        for number, case in enumerate(CASES)
        for answers in ("client", "session")
    }
    with scratch() as folder:
        config = folder / "mcp.json"
        config.write_text(json.dumps({"mcpServers": servers}))
        store = f"sqlite:///{folder / 'bench.db'}"
        host = host_command(port, folder, store, "--mcp-config", str(config))
        command = [*MODULE, str(upstream)]
        with (
            serving(command, upstream, core=GENERATOR_CORE),
            serving([*MODULE, str(proxied), url], proxied) as proxy,
            serving(host, port) as server,
            on_core(GENERATOR_CORE),
        ):
            for case in cases:
                asyncio.run(measured(results, case, url, server, proxy, effort))


def serve(port: int | None) -> None:
    server = MCPServer("bench")

    @server.tool()
    def echo(text: str) -> str:
        return text

    if port is None:
        server.run("stdio")
    else:
        app = server.streamable_http_app(host="127.0.0.1")
        uvicorn.run(app, host="127.0.0.1", port=port, log_level="critical")


def pass_on(port: int, url: str) -> None:
    client = httpx2.AsyncClient()

    async def answer(request: Request) -> Response:
        own = ("host", "content-length", "connection")
        headers = {name: value for name, value in request.headers.items() if name not in own}
        body = await request.body()
        found = await client.request(request.method, url, content=body, headers=headers)
        return Response(found.content, found.status_code, media_type=found.headers["content-type"])

    app = Starlette(routes=[Route("/mcp", answer, methods=["POST"])])
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="critical")


if __name__ == "__main__":
    match sys.argv[1:]:
        case [port, url]:
            pass_on(int(port), url)
        case [port]:
            serve(int(port))
        case _:
            serve(None)
