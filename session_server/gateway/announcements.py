"""Passes on what a server reports by itself: changes, and log messages that belong to no call.

2026-era clients get changes on the streams that they open, 2025-era ones as notifications. Only
what the server itself offers is offered. Log messages exist outside of requests in the 2025 era
alone; they may be about anybody's calls, so they go to owners.
"""

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
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
    ServerCapabilities,
    ServerNotification,
    SubscribeRequestParams,
    SubscriptionFilter,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    UnsubscribeRequestParams,
)

from session_server.gateway.mcp_callers import Context, log_level_in, principal_id, principal_of
from session_server.gateway.mcp_errors import as_mcp_errors
from session_server.mcp_client.notifications import Spawn
from session_server.mcp_client.progress import LEVELS, Log
from session_server.mcp_client.sdk import connection_of, is_modern, plain
from session_server.mcp_client.servers import Server
from session_server.schemas.limits import MCP_LISTENERS
from session_server.schemas.principals import Principal, Role

_LISTENER = "session_server.listener"


class Announcements:
    def __init__(self, server: Server, offered: ServerCapabilities, spawn: Spawn) -> None:
        self.notifications = server.notifications
        self.spawn = spawn
        self._server_name = server.config.name
        self._main = server.main
        self.tools = bool(offered.tools and offered.tools.list_changed)
        self.prompts = bool(offered.prompts and offered.prompts.list_changed)
        self.resources = bool(offered.resources and offered.resources.list_changed)
        self.watching = bool(offered.resources and offered.resources.subscribe)
        self._streams = ListenHandler(self.notifications, max_subscriptions=MCP_LISTENERS)

    @property
    def are_any(self) -> bool:
        return self.tools or self.prompts or self.resources or self.watching

    def close(self) -> None:
        """Streams end with a result when the host stops."""
        self._streams.close()

    # For clients of 2026

    async def listen(
        self, ctx: Context, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        wanted = params.notifications
        granted = SubscriptionFilter(
            tools_list_changed=(self.tools and wanted.tools_list_changed) or None,
            prompts_list_changed=(self.prompts and wanted.prompts_list_changed) or None,
            resources_list_changed=(self.resources and wanted.resources_list_changed) or None,
            resource_subscriptions=(self.watching and wanted.resource_subscriptions) or None,
        )
        uris = tuple(dict.fromkeys(granted.resource_subscriptions or ()))
        asked = params.model_copy(update={"notifications": granted})
        async with self.notifications.watching(uris, principal_id(ctx)):
            return await self._streams(ctx, asked)

    # For clients of 2025

    async def introduced(self, ctx: Context, call_next: CallNext) -> Any:
        """A middleware: a client that is initialized is sent changes until its session ends."""
        is_hello = ctx.method == "notifications/initialized"
        if is_hello and not is_modern(ctx.protocol_version):
            self._listener(ctx)
        return await call_next(ctx)

    async def subscribe(self, ctx: Context, params: SubscribeRequestParams) -> EmptyResult:
        with as_mcp_errors(self._server_name):
            await self._main.ready()
            await self._listener(ctx).watch(params.uri)
        return EmptyResult()

    async def unsubscribe(self, ctx: Context, params: UnsubscribeRequestParams) -> EmptyResult:
        self._listener(ctx).unwatch(params.uri)
        return EmptyResult()

    def _listener(self, ctx: Context) -> "_Listener":
        connection = connection_of(ctx)
        known: _Listener | None = connection.state.get(_LISTENER)
        if known is None:
            known = _Listener(self, connection, principal_of(ctx))
            connection.state[_LISTENER] = known
            connection.exit_stack.callback(known.close)
        return known

    def announces(self, event: ServerEvent) -> bool:
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

    A change is sent once, however often it happens before the client has read it.
    """

    def __init__(
        self, announcements: Announcements, connection: Connection, principal: Principal
    ) -> None:
        self._announcements = announcements
        self._notifications = announcements.notifications
        self._connection = connection
        self._principal = principal.id
        self._watched: set[str] = set()
        self._due: dict[ServerEvent, None] = {}
        self._log = Log()
        self._is_sending = False
        self._unsubscribe = [self._notifications.subscribe(self._changed)]
        if principal.role is Role.OWNER:
            self._unsubscribe.append(self._notifications.subscribe_to_log(self._logged))

    async def watch(self, uri: str) -> None:
        if uri not in self._watched:
            await self._notifications.watch(uri, self._principal)
            if uri in self._watched:
                self._notifications.unwatch(uri, self._principal)  # asked for twice at once
            self._watched.add(uri)

    def unwatch(self, uri: str) -> None:
        if uri in self._watched:
            self._watched.discard(uri)
            self._notifications.unwatch(uri, self._principal)

    def close(self) -> None:
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        self._due.clear()
        for uri in tuple(self._watched):
            self.unwatch(uri)

    def _changed(self, event: ServerEvent) -> None:
        is_other = isinstance(event, ResourceUpdated) and event.uri not in self._watched
        if self._announcements.announces(event) and not is_other:
            self._due[event] = None
            self._send_soon()

    def _logged(self, message: LoggingMessageNotificationParams) -> None:
        """To a client that has set a level, and from that level on."""
        level = log_level_in(self._connection)
        if level is not None and LEVELS.index(message.level) >= LEVELS.index(level):
            self._log.add(message)
            self._send_soon()

    def _send_soon(self) -> None:
        if not self._is_sending:
            self._is_sending = True
            self._announcements.spawn(self._send())

    async def _send(self) -> None:
        try:
            while True:
                messages = self._log.taken() or []
                notices: list[ServerNotification] = [
                    *(LoggingMessageNotification(params=message) for message in messages),
                    *(event_to_notification(event, {}) for event in self._due),
                ]
                self._due.clear()
                if not notices:
                    return
                for notice in notices:
                    sent = plain(notice)
                    await self._connection.notify(sent["method"], sent.get("params"))
        finally:
            self._is_sending = False
