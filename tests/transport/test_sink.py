"""A WebSocket connection after the application has handed it over."""

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI

from session_server.app import create_app
from session_server.http.dependencies import running
from session_server.transport.websocket_protocol import SinkProtocol
from tests.ahp.client import SocketClient
from tests.waiting import until


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


def weakrefs_to(server: uvicorn.Server) -> list[weakref.ref[Any]]:
    """To the one protocol, and to the outbox, which all of the host's side refers to."""
    (protocol,) = server.server_state.connections
    assert isinstance(protocol, SinkProtocol)
    assert protocol.outbox is not None
    return [weakref.ref(protocol), weakref.ref(protocol.outbox)]


async def test_a_connection_keeps_little_and_is_freed_without_the_garbage_collector() -> None:
    """It comes rarely to what has lived for a while."""
    app = create_app("memory:")
    async with served(app) as (server, url):
        host = running(app).host
        gc.disable()
        try:
            client = await SocketClient.open(url)
            await client.initialize("laptop")
            await until(lambda: not server.server_state.tasks)
            assert not any(hasattr(each, "scope") for each in server.server_state.connections)
            assert "code" in await client.call("subscribe", "ahp-session:/nowhere")
            ended = weakrefs_to(server)
            await client.close()
            await until(lambda: not host.connections.number)
            await until(lambda: not any(one() for one in ended))
        finally:
            gc.enable()
