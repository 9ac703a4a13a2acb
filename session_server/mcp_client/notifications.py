"""What one server reports by itself: changed lists and resources, and log messages of no call.

A 2025-era server sends these on its connection; one of 2026 has streams for changes. Above it is
the gateway, which notifies its clients; below it is the server's main connection.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any, TypeVar

import anyio
from mcp import MCPError
from mcp.client.session import IncomingMessage
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp_types import (
    INTERNAL_ERROR,
    LoggingMessageNotificationParams,
    PromptListChangedNotification,
    ResourceListChangedNotification,
    ResourceUpdatedNotification,
    ToolListChangedNotification,
)

from session_server.backoff import Backoff
from session_server.mcp_client.connections.connection import Link
from session_server.schemas.errors import UnreachableError
from session_server.schemas.limits import WATCHED_RESOURCES, WATCHED_RESOURCES_PER_PRINCIPAL

TOO_MANY = "{} resources of this server are watched already; stop watching others first."
TOO_MANY_OF_YOURS = "You watch {} resources of this server already; stop watching others first."
GONE = (MCPError, UnreachableError, RuntimeError, OSError, anyio.ClosedResourceError)
"""What the SDK raises when a connection ends under it, or the server refuses."""

RECONNECT = (0.25, 30.0)
"""The first and the longest pause, in seconds."""

LISTS: tuple[ServerEvent, ...] = (
    ToolsListChanged(),
    PromptsListChanged(),
    ResourcesListChanged(),
)

T = TypeVar("T")
LogListener = Callable[[LoggingMessageNotificationParams], None]
Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]


def _subscribed(listeners: dict[object, T], listener: T) -> Callable[[], None]:
    """What unsubscribes it again."""
    token = object()
    listeners[token] = listener

    def unsubscribe() -> None:
        listeners.pop(token, None)

    return unsubscribe


def event_in(message: IncomingMessage) -> ServerEvent | None:
    match message:
        case ToolListChangedNotification():
            return ToolsListChanged()
        case PromptListChangedNotification():
            return PromptsListChanged()
        case ResourceListChangedNotification():
            return ResourcesListChanged()
        case ResourceUpdatedNotification():
            return ResourceUpdated(uri=message.params.uri)
        case _:
            return None


class Watch:
    """One resource that is watched; `users` counts by principal."""

    def __init__(self) -> None:
        self.users: Counter[str] = Counter()
        self.task: asyncio.Task[None] | None = None
        self.began: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def settle(self, error: MCPError | None = None) -> None:
        if self.began.done():
            return
        if error is None:
            self.began.set_result(None)
        else:
            self.began.set_exception(error)


class Notifications:
    """A bus of the SDK's: every listener gets every event."""

    def __init__(self, spawn: Spawn) -> None:
        self._spawn = spawn
        self._listeners: dict[object, Callable[[ServerEvent], None]] = {}
        self._log_listeners: dict[object, LogListener] = {}
        self._watches: dict[str, Watch] = {}
        self._link: Link | None = None
        self._is_known = False

    # Listeners

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        return _subscribed(self._listeners, listener)

    async def publish(self, event: ServerEvent) -> None:
        self.changed(event)

    def changed(self, event: ServerEvent) -> None:
        for listener in tuple(self._listeners.values()):
            listener(event)

    def subscribe_to_log(self, listener: LogListener) -> Callable[[], None]:
        return _subscribed(self._log_listeners, listener)

    def logged(self, message: LoggingMessageNotificationParams) -> None:
        """A message that cannot be attributed to a call."""
        for listener in tuple(self._log_listeners.values()):
            listener(message)

    # Watched resources

    @contextlib.asynccontextmanager
    async def watching(self, uris: tuple[str, ...], principal: str) -> AsyncGenerator[None]:
        with contextlib.ExitStack() as stack:
            for uri in uris:
                self._begin(uri, principal)
                stack.callback(self.unwatch, uri, principal)
            yield

    async def watch(self, uri: str, principal: str) -> None:
        """Once the server has agreed; if it does not, its own error."""
        watch = self._begin(uri, principal)
        try:
            await asyncio.shield(watch.began)
        except BaseException:
            self.unwatch(uri, principal)
            raise

    def unwatch(self, uri: str, principal: str) -> None:
        watch = self._watches[uri]
        watch.users[principal] -= 1
        watch.users += Counter()  # forgets those that are zero
        if not watch.users:
            del self._watches[uri]
            watch.settle()
            if watch.task is not None:
                watch.task.cancel()

    def _begin(self, uri: str, principal: str) -> Watch:
        watch = self._watches.get(uri)
        if watch is None or principal not in watch.users:
            watched = sum(principal in one.users for one in self._watches.values())
            if watched >= WATCHED_RESOURCES_PER_PRINCIPAL:
                raise MCPError(INTERNAL_ERROR, TOO_MANY_OF_YOURS.format(watched))
        if watch is None:
            if len(self._watches) >= WATCHED_RESOURCES:
                raise MCPError(INTERNAL_ERROR, TOO_MANY.format(WATCHED_RESOURCES))
            watch = self._watches[uri] = Watch()
            watch.began.add_done_callback(lambda done: done.exception())  # maybe nobody awaits it
            self._follow(uri, watch)
        watch.users[principal] += 1
        return watch

    def _follow(self, uri: str, watch: Watch) -> None:
        link = self._link
        if link is not None:
            watch.task = self._spawn(self._followed(link, uri, watch))

    # Following the server

    async def follow(self, link: Link) -> None:
        """As long as the connection stands. After a reconnect, everything may have changed."""
        self._link = link
        for event in (*LISTS, *map(ResourceUpdated, self._watches)) if self._is_known else ():
            self.changed(event)
        self._is_known = True
        for uri, watch in self._watches.items():
            self._follow(uri, watch)
        try:
            if link.is_modern:
                with contextlib.suppress(*GONE):
                    await self._lists(link)
            await link.lost.wait()
        finally:
            self._link = None
            for watch in self._watches.values():
                if watch.task is not None:
                    watch.task.cancel()

    async def _lists(self, link: Link) -> None:
        known = link.client.server_capabilities
        wanted = {
            "tools_list_changed": bool(known.tools and known.tools.list_changed),
            "prompts_list_changed": bool(known.prompts and known.prompts.list_changed),
            "resources_list_changed": bool(known.resources and known.resources.list_changed),
        }
        if any(wanted.values()):
            await self._listen(link, lambda: None, LISTS, **wanted)

    async def _followed(self, link: Link, uri: str, watch: Watch) -> None:
        missed = (ResourceUpdated(uri),)
        try:
            if link.is_modern:
                await self._listen(link, watch.settle, missed, resource_subscriptions=(uri,))
            else:
                await self._subscribe(link, uri, watch)
        except MCPError as error:
            watch.settle(error)
        except GONE:
            pass  # followed again on the next connection

    async def _listen(
        self, link: Link, began: Callable[[], None], missed: tuple[ServerEvent, ...], **wanted: Any
    ) -> None:
        """Again whenever the stream ends; what may have been `missed` is announced each time."""
        backoff = Backoff(*RECONNECT)
        while not link.lost.is_set():
            with contextlib.suppress(SubscriptionLost):
                async with link.client.listen(**wanted) as stream:
                    began()
                    async for event in stream:
                        backoff.reset()
                        self.changed(event)
            await backoff.sleep()
            for event in missed:
                self.changed(event)

    async def _subscribe(self, link: Link, uri: str, watch: Watch) -> None:
        await link.request("resources/subscribe", {"uri": uri})
        watch.settle()
        try:
            await link.lost.wait()
        finally:
            if not link.lost.is_set():
                self._spawn(self._unsubscribed(link, uri))

    async def _unsubscribed(self, link: Link, uri: str) -> None:
        if uri not in self._watches:  # otherwise it has just been watched again
            with contextlib.suppress(*GONE):
                await link.request("resources/unsubscribe", {"uri": uri})
