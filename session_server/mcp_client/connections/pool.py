"""The connections of a 2025-era server, by the capabilities that they declare.

Above it `servers` chooses the revision; below it are `shared_connections`, which calls are run on.
"""

import asyncio
import contextlib
import itertools
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from functools import partial
from typing import Any

import msgspec
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import Tool

from session_server.mcp_client.config import ServerConfig
from session_server.mcp_client.connections.connection import Link
from session_server.mcp_client.connections.http_link import HttpLink
from session_server.mcp_client.connections.shared_connections import (
    CallCallbacks,
    RunningCall,
    SharedLink,
    Signal,
    ToolHabits,
)
from session_server.mcp_client.notifications import Notifications, Spawn
from session_server.schemas.errors import UnreachableError
from session_server.schemas.limits import CAPABILITY_SETS, CAPABILITY_SETS_PER_PRINCIPAL

ASKING = ("elicitation", "sampling", "roots")

CANCEL_SECONDS = 3.0
"""What a server gets to answer a call that was cancelled, before its process is replaced."""


@contextlib.contextmanager
def counted(counter: Counter[str], name: str) -> Generator[None]:
    """One more while the block runs."""
    counter[name] += 1
    try:
        yield
    finally:
        counter[name] -= 1
        if not counter[name]:
            del counter[name]


class BorrowedLink:
    """A connection as one leg of a call sees it."""

    def __init__(
        self,
        link: Link | HttpLink,
        tools: Mapping[str, Tool],
        capabilities: Mapping[str, Any] | None = None,
        call: RunningCall | None = None,
    ) -> None:
        self.link = link
        self._tools = tools
        self._capabilities = capabilities
        self._call = call

    @property
    def can_sample(self) -> bool:
        """Whether the client answers what the server asks of a model."""
        return self._capabilities is not None and "sampling" in self._capabilities

    def is_repeatable(self, name: str) -> bool:
        """Whether the server says that running this tool twice is harmless."""
        tool = self._tools.get(name)
        marks = None if tool is None else tool.annotations
        return marks is not None and bool(marks.read_only_hint or marks.idempotent_hint)

    async def request(
        self, method: str, params: Mapping[str, Any], progress: ProgressFnT | None = None
    ) -> dict[str, Any]:
        capabilities = self._capabilities if self.link.is_modern else None
        named = None
        if self._call is not None:
            self._call.was_sent = True
            named = self._call.request_id
        return await self.link.request(method, params, progress, capabilities, named)


class Pool:
    """The connections that declare the same capabilities: the host's own, or those of clients."""

    def __init__(
        self,
        config: ServerConfig,
        signal: Signal,
        spawn: Spawn,
        notifications: Notifications,
        capabilities: Mapping[str, Any] | None = None,
    ) -> None:
        """`notifications` gets what clients' own connections announce; the host has its main one.

        `revive` is called when there is no connection; it may bring one that is kept elsewhere.
        """
        self.revive: Callable[[], Awaitable[object]] | None = None
        self.links: list[SharedLink] = []
        self.users: Counter[str] = Counter()
        self._config = config
        self._signal = signal
        self._spawn = spawn
        self._notifications = notifications
        self._capabilities = capabilities
        self._can_ask = capabilities is None or any(kind in capabilities for kind in ASKING)
        self._opening = 0
        self._ids = itertools.count(1)

    @contextlib.asynccontextmanager
    async def lend(
        self,
        callbacks: CallCallbacks,
        name: str,
        tool: Tool | None,
        habits: ToolHabits,
        principal: str,
    ) -> AsyncGenerator[tuple[SharedLink, RunningCall]]:
        def may_ask() -> bool:
            return self._can_ask and habits.may_ask(name, tool)

        with counted(self.users, principal):
            shared = await self._free_link(may_ask)
            call = RunningCall(callbacks, may_ask=may_ask())
            if self._config.url is None:
                call.request_id = f"call-{next(self._ids)}"
            shared.calls.append(call)
            try:
                yield shared, call
            except BaseException:
                shared.give_up(call)
                raise
            else:
                if call.was_sent and not call.has_asked:
                    habits.ended_without_asking(name)
            finally:
                if call.has_asked:
                    habits.asked(name)
                shared.free(call)
                self._drop_lost()

    async def close(self) -> None:
        await asyncio.gather(*(shared.close() for shared in self.links))

    async def check(self) -> None:
        """Raises why none can be opened."""
        if not any(shared.is_usable for shared in self.links):
            await self._open()

    async def link(self) -> Link:
        """For what asks nobody anything: any connection, whatever calls are on it."""
        await self.check()
        return next(shared.link for shared in self.links if shared.is_usable)

    async def _free_link(self, may_ask: Callable[[], bool]) -> SharedLink:
        """One that is there, one more if there may be, or the next that is free."""
        while True:
            self._drop_lost()
            if not self.links and self.revive is not None:
                await self.revive()
            shared = self._admitting(may_ask=may_ask())
            if shared is not None:
                return shared
            spent = self._spent()
            if spent is not None:
                await self._replace(spent)
            elif self._has_room():
                await self._open()
            else:
                await self._signal.wait_for(
                    lambda: self._admitting(may_ask=may_ask()) or self._spent() or self._has_room()
                )

    def _admitting(self, *, may_ask: bool) -> SharedLink | None:
        return next((shared for shared in self.links if shared.admits(may_ask=may_ask)), None)

    def _has_room(self) -> bool:
        """A process more, which has none of the others' state, only if people keep all waiting."""
        usable = [shared for shared in self.links if shared.is_usable]
        if len(usable) + self._opening >= self._config.most_connections:
            return False
        is_process = self._config.url is None
        return not is_process or (not self._opening and all(shared.is_waiting for shared in usable))

    def _spent(self) -> SharedLink | None:
        for shared in self.links:
            if shared.is_usable and shared.is_spent and not shared.calls:
                return shared
        return None

    async def _replace(self, spent: SharedLink) -> None:
        """Unless the server soon answers what was cancelled: then nothing of it is left."""
        try:
            async with asyncio.timeout(CANCEL_SECONDS):
                await self._signal.wait_for(lambda: not spent.is_spent or not spent.is_usable)
        except TimeoutError:
            spent.link.lost.set()

    def _drop_lost(self) -> None:
        for shared in tuple(self.links):
            if not shared.is_usable and not shared.calls:
                self.links.remove(shared)
                self._signal.notify()

    async def _open(self) -> None:
        self._opening += 1
        shared = SharedLink(
            self._config,
            self._signal,
            self._notifications,
            capabilities=self._capabilities,
            hears_changes=self._capabilities is not None,
        )
        try:
            await shared.open(self._spawn)
            self.links.append(shared)
        finally:
            self._opening -= 1
            self._signal.notify()


class Pools:
    """By capabilities: they are sent to a 2025-era server once, when the connection is opened.

    The host's own pool is always there; of those of clients, the least used makes room.
    """

    def __init__(
        self,
        config: ServerConfig,
        signal: Signal,
        spawn: Spawn,
        notifications: Notifications,
    ) -> None:
        self._new = partial(Pool, config, signal, spawn, notifications)
        self._of_clients: dict[bytes, Pool] = {}
        self.own = self._new()

    async def of(self, capabilities: Mapping[str, Any] | None, principal: str) -> Pool:
        if capabilities is None:
            return self.own
        key = msgspec.json.encode(capabilities, order="deterministic")
        chosen = self._of_clients.pop(key, None)
        if chosen is None:
            used = sum(principal in one.users for one in self._of_clients.values())
            if used >= CAPABILITY_SETS_PER_PRINCIPAL:
                raise UnreachableError(
                    f"clients of yours with {used} different sets of capabilities are using it;"
                    " try again later"
                )
            await self._make_room()
            chosen = self._new(capabilities)
        self._of_clients[key] = chosen  # the latest used stands last
        return chosen

    async def close(self) -> None:
        await asyncio.gather(self.own.close(), *(one.close() for one in self._of_clients.values()))

    async def _make_room(self) -> None:
        if len(self._of_clients) < CAPABILITY_SETS:
            return
        idle = next((key for key, one in self._of_clients.items() if not one.users), None)
        if idle is None:
            raise UnreachableError(
                f"clients with {CAPABILITY_SETS} different sets of capabilities are using it;"
                " try again later"
            )
        await self._of_clients.pop(idle).close()
