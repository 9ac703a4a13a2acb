"""A WebSocket connection after the application has handed it over."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI

from session_server.app import create_app
from session_server.transport.websocket_protocol import SinkProtocol
from tests.end_to_end.wire import WireClient
from tests.host.harness import run

PATIENCE = 30.0


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@asynccontextmanager
async def served(app: FastAPI) -> AsyncIterator[tuple[uvicorn.Server, str]]:
    """A server in this loop, and the address of its WebSocket."""
    config = uvicorn.Config(app, port=0, ws=SinkProtocol, log_level="error", lifespan="on")
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    await until(lambda: server.started)
    try:
        port = server.servers[0].sockets[0].getsockname()[1]
        yield server, f"ws://127.0.0.1:{port}/ahp"
    finally:
        server.should_exit = True
        await serving


@run
async def test_an_idle_connection_keeps_nothing_of_the_application() -> None:
    app = create_app("memory:")
    async with served(app) as (server, url):
        client = await WireClient.open(url)
        await client.initialize("laptop")
        await until(lambda: not server.server_state.tasks)
        (protocol,) = server.server_state.connections
        assert not hasattr(protocol, "scope")
        assert await client.call("ping") is None
        await client.close()
        await until(lambda: not app.state.host.connections.number)
