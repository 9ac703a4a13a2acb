"""The gateway: one MCP server of ours for each configured one, and one with the ask tools."""

import asyncio
from collections.abc import Callable
from typing import Any

from session_server.calls.service import Calls
from session_server.gateway.ask_tools import AskTools
from session_server.gateway.holding import Patience
from session_server.gateway.list_changes import Announcements
from session_server.gateway.mcp_callers import Context, visitor_of
from session_server.gateway.mcp_server import Served
from session_server.gateway.parked_calls import ParkedCalls
from session_server.gateway.proxy import Perform, offer
from session_server.gateway.session_choice import Places
from session_server.gateway.state_codec import sealing
from session_server.host.acting import StateWaiters
from session_server.host.host import Host
from session_server.mcp_client.connections import Link
from session_server.mcp_client.servers import Server
from session_server.schemas.mcp import CallMethod


class Gateway:
    """`key` is asked for when the first state is sealed."""

    def __init__(
        self,
        host: Host,
        waiting: StateWaiters,
        calls: Calls,
        key: Callable[[], bytes],
        patience: Patience,
    ) -> None:
        self._host = host
        self._waiting = waiting
        self._calls = calls
        self._key = key
        self._patience = patience
        self._places = Places(host)
        self._served: dict[str, Served] = {}
        self._building = asyncio.Lock()
        ask = AskTools(host, waiting, self._places, self._patience)
        self.ask_tools = Served(host, ask.server(key), waiting.over)

    async def served(self, name: str) -> Served:
        """Built when it is first asked for, when what the server offers is known."""
        known = self._served.get(name)
        if known is not None:
            return known
        server = self._calls.servers[name]
        main = await server.ready()
        async with self._building:
            if name not in self._served:
                self._served[name] = self._built(name, server, main)
        return self._served[name]

    def _built(self, name: str, server: Server, main: Link) -> Served:
        news = Announcements(server, main.client.server_capabilities, self._host.spawn)
        offered = offer(self._calls.servers, name, main, self._perform(name), news)
        sealed = sealing(self._key, f"gateway:{name}")
        offered.middleware[:] = [news.introduced, sealed, offered.unchanged]
        return Served(self._host, offered, self._waiting.over, news.close)

    def _perform(self, name: str) -> Perform:
        calls = ParkedCalls(self._calls, self._waiting, self._places, name, self._patience)

        async def perform(ctx: Context, method: CallMethod) -> dict[str, Any]:
            return await calls.perform(ctx, visitor_of(ctx), method)

        return perform
