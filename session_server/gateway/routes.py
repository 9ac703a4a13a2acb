"""The routes of our MCP servers: what serves them (`endpoints`) is loaded for the first request."""

import asyncio
from collections.abc import Awaitable, Callable
from importlib import import_module

from starlette.requests import HTTPConnection
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from session_server.calls.service import Calls
from session_server.host.awaiting import StateWaiters
from session_server.host.host import Host
from session_server.schemas.principals import Principal
from session_server.settings import Settings

PrincipalOf = Callable[[HTTPConnection], Awaitable[Principal]]


class McpRoutes:
    """One ASGI application for both routes. `opened` is called when the application starts."""

    def __init__(self, principal_of: PrincipalOf) -> None:
        self._principal_of = principal_of
        self._made: Callable[[], ASGIApp] | None = None
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

        def made() -> ASGIApp:
            from session_server.gateway.endpoints import Gateway, McpEndpoints  # noqa: PLC0415
            from session_server.gateway.long_requests import HoldLimits  # noqa: PLC0415

            limits = HoldLimits(settings.mcp_hold_seconds, settings.mcp_lease_seconds, waiting.over)
            return McpEndpoints(self._principal_of, Gateway(host, waiting, calls, key, limits))

        self._made, self._endpoints = made, None

    async def load(self) -> ASGIApp:
        """The MCP SDK takes a third of the time in which a host starts, and many hosts do without
        it; a thread loads it, so that others are served meanwhile.
        """
        await asyncio.to_thread(import_module, "session_server.gateway.endpoints")
        assert self._made is not None
        if self._endpoints is None:
            self._endpoints = self._made()
        return self._endpoints

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoints = self._endpoints or await self.load()
        await endpoints(scope, receive, send)
