"""Passes on what a server says has changed: to 2026-era clients that listen, and to all of 2025.

Only what the server itself offers is offered, in the era of whoever asks.
"""

from collections.abc import Callable
from typing import Any

from mcp.server.connection import Connection
from mcp.server.context import CallNext
from mcp.server.subscriptions import ListenHandler
from mcp.shared.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
    event_to_notification,
)
from mcp_types import (
    EmptyResult,
    ServerCapabilities,
    SubscribeRequestParams,
    SubscriptionFilter,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    UnsubscribeRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from session_server.gateway.mcp_callers import Context, principal_id
from session_server.gateway.mcp_errors import told_in_mcp
from session_server.mcp_client.pool import Spawn
from session_server.mcp_client.servers import Server
from session_server.schemas.limits import MCP_LISTENERS

_LISTENER = "session_server.listener"


class Announcements:
    def __init__(self, server: Server, offered: ServerCapabilities, spawn: Spawn) -> None:
        self._server = server
        self._spawn = spawn
        self.tools = bool(offered.tools and offered.tools.list_changed)
        self.prompts = bool(offered.prompts and offered.prompts.list_changed)
        self.resources = bool(offered.resources and offered.resources.list_changed)
        self.watching = bool(offered.resources and offered.resources.subscribe)
        self._streams = ListenHandler(server.tidings, max_subscriptions=MCP_LISTENERS)

    @property
    def are_any(self) -> bool:
        return self.tools or self.prompts or self.resources or self.watching

    def close(self) -> None:
        """Streams end in words when the host stops."""
        self._streams.close()

    # For clients of 2026

    async def listen(
        self, ctx: Context, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        granted = self._granted(params.notifications)
        uris = tuple(dict.fromkeys(granted.resource_subscriptions or ()))
        asked = params.model_copy(update={"notifications": granted})
        async with self._server.tidings.watching(uris, principal_id(ctx)):
            return await self._streams(ctx, asked)

    def _granted(self, wanted: SubscriptionFilter) -> SubscriptionFilter:
        uris = wanted.resource_subscriptions if self.watching else None
        return SubscriptionFilter(
            tools_list_changed=(self.tools and wanted.tools_list_changed) or None,
            prompts_list_changed=(self.prompts and wanted.prompts_list_changed) or None,
            resources_list_changed=(self.resources and wanted.resources_list_changed) or None,
            resource_subscriptions=uris or None,
        )

    # For clients of 2025

    async def introduced(self, ctx: Context, call_next: CallNext) -> Any:
        """A middleware: whoever has said hello hears of changes until it leaves."""
        is_hello = ctx.method == "notifications/initialized"
        if is_hello and ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            self._listener(ctx)
        return await call_next(ctx)

    async def subscribe(self, ctx: Context, params: SubscribeRequestParams) -> EmptyResult:
        with told_in_mcp():
            await self._server.ready()
            await self._listener(ctx).watch(params.uri)
        return EmptyResult()

    async def unsubscribe(self, ctx: Context, params: UnsubscribeRequestParams) -> EmptyResult:
        self._listener(ctx).unwatch(params.uri)
        return EmptyResult()

    def _listener(self, ctx: Context) -> "_Listener":
        connection = ctx.session._connection  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        known: _Listener | None = connection.state.get(_LISTENER)
        if known is None:
            principal = principal_id(ctx)
            known = _Listener(self._server, connection, principal, self._spawn, self._announces)
            connection.state[_LISTENER] = known
            connection.exit_stack.callback(known.close)
        return known

    def _announces(self, event: ServerEvent) -> bool:
        match event:
            case ToolsListChanged():
                return self.tools
            case PromptsListChanged():
                return self.prompts
            case ResourcesListChanged():
                return self.resources
            case ResourceUpdated():
                return self.watching


class _Listener:
    """One 2025-era connection, on the stream that it keeps open for what nobody asked for.

    What it has not read yet is told once, however often it happens meanwhile.
    """

    def __init__(
        self,
        server: Server,
        connection: Connection,
        principal: str,
        spawn: Spawn,
        announces: Callable[[ServerEvent], bool],
    ) -> None:
        self._tidings = server.tidings
        self._connection = connection
        self._principal = principal
        self._spawn = spawn
        self._announces = announces
        self._watched: set[str] = set()
        self._due: dict[ServerEvent, None] = {}
        self._is_telling = False
        self._leave = self._tidings.subscribe(self._heard)

    async def watch(self, uri: str) -> None:
        if uri not in self._watched:
            await self._tidings.watch(uri, self._principal)
            if uri in self._watched:
                self._tidings.unwatch(uri, self._principal)  # asked for twice at once
            self._watched.add(uri)

    def unwatch(self, uri: str) -> None:
        if uri in self._watched:
            self._watched.discard(uri)
            self._tidings.unwatch(uri, self._principal)

    def close(self) -> None:
        self._leave()
        self._due.clear()
        for uri in tuple(self._watched):
            self.unwatch(uri)

    def _heard(self, event: ServerEvent) -> None:
        is_other = isinstance(event, ResourceUpdated) and event.uri not in self._watched
        if self._announces(event) and not is_other:
            self._due[event] = None
            if not self._is_telling:
                self._is_telling = True
                self._spawn(self._tell())

    async def _tell(self) -> None:
        try:
            while self._due:
                event = next(iter(self._due))
                del self._due[event]
                notice = event_to_notification(event, {})
                told = notice.model_dump(by_alias=True, mode="json", exclude_none=True)
                await self._connection.notify(told["method"], told.get("params"))
        finally:
            self._is_telling = False
