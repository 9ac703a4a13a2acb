"""The routes of our MCP servers. What serves them (`endpoints`), and the MCP SDK with it, is loaded
when the application starts if MCP servers are configured, otherwise with the first request.
"""

import asyncio
import gc
from collections.abc import Callable
from importlib import import_module

from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from session_server.calls.service import Calls
from session_server.host.async_api import StateWaiters
from session_server.host.host import Host
from session_server.identity.credentials import PrincipalOf
from session_server.settings import Settings

Make = Callable[[], ASGIApp]


class McpRoutes:
    """One ASGI application for both routes. `opened` is called when the application starts."""

    def __init__(self, principal_of: PrincipalOf) -> None:
        self._principal_of = principal_of
        self._start_loading: Callable[[], asyncio.Task[None]] | None = None
        self._loading: asyncio.Task[None] | None = None
        self._endpoints: ASGIApp | None = None

    def routes(self) -> tuple[Route, ...]:
        return Route("/mcp", self), Route("/mcp/{server}", self)

    def opened(
        self,
        host: Host,
        waiting: StateWaiters,
        calls: Calls,
        key: Callable[[], bytes],
        settings: Settings,
    ) -> None:
        """`key` is asked for when the first state is sealed."""

        def make() -> ASGIApp:
            from session_server.gateway.endpoints import Gateway, McpEndpoints  # noqa: PLC0415
            from session_server.gateway.long_polling import HoldLimits  # noqa: PLC0415

            limits = HoldLimits(settings.mcp_hold_seconds, settings.mcp_lease_seconds, waiting.over)
            return McpEndpoints(self._principal_of, Gateway(host, waiting, calls, key, limits))

        self._start_loading = lambda: host.spawn(self._import_and_make(make))
        self._loading = self._endpoints = None

    async def load(self) -> ASGIApp:
        """Once for all that wait for it; if it fails, the next request tries again."""
        if self._loading is None:
            assert self._start_loading is not None  # `opened` was called
            self._loading = self._start_loading()
        await asyncio.shield(self._loading)
        assert self._endpoints is not None
        return self._endpoints

    async def _import_and_make(self, make: Make) -> None:
        """In a thread, so that others are served meanwhile: it takes a third of a start."""
        try:
            await asyncio.to_thread(import_module, "session_server.gateway.endpoints")
            self._endpoints = make()
        except BaseException:
            self._loading = None
            raise
        if gc.get_freeze_count():
            gc.freeze()  # as at the start: full collections do not walk all that was loaded

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoints = self._endpoints or await self.load()
        await endpoints(scope, receive, send)
