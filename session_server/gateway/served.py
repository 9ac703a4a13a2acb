"""One MCP server of ours over streamable HTTP, in both eras, for as long as the host runs."""

import asyncio
from collections.abc import Callable
from typing import Any

from mcp.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Receive, Scope, Send

from session_server.calls.deliveries import Delivery
from session_server.host.host import Host
from session_server.schemas.limits import MCP_BODY_BYTES, MCP_SESSION_IDLE_SECONDS, MCP_SESSIONS

FAREWELL_SECONDS = 1.0
"""What is being held is answered in this time when the host stops."""


class Served:
    """The SDK's scopes are entered and left by one task, which ends with the host."""

    def __init__(
        self,
        host: Host,
        server: Server[Any],
        over: asyncio.Event,
        farewell: Callable[[], None] | None = None,
    ) -> None:
        self._host = host
        self._over = over
        self._farewell = farewell
        self._manager = StreamableHTTPSessionManager(
            app=server,
            session_idle_timeout=MCP_SESSION_IDLE_SECONDS,
            max_sessions=MCP_SESSIONS,
            max_request_body_size=MCP_BODY_BYTES,
        )
        self._ready = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._task is None:
            self._task = self._host.spawn(self._run())
        await self._ready.wait()
        async with Delivery(scope, receive, send) as delivery:
            await self._manager.handle_request(scope, delivery.receive, delivery.send)

    async def _run(self) -> None:
        async with self._manager.run():
            self._ready.set()
            await self._over.wait()
            if self._farewell is not None:
                self._farewell()
            await asyncio.sleep(FAREWELL_SECONDS)  # then streams that are only listened to end
