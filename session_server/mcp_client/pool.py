"""The connections of a 2025-era server, by the capabilities that they declare.

Above it `servers` chooses the revision; below it are `shared_connections`, which calls are run on.
"""

import asyncio
import contextlib
import itertools
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from functools import partial
from typing import Any

import msgspec
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import Tool

from session_server.mcp_client.config import ServerConfig
from session_server.mcp_client.connections import Link
from session_server.mcp_client.http_link import HttpLink
from session_server.mcp_client.shared_connections import (
    Asker,
    Listener,
    RunningCall,
    SharedLink,
    Signal,
    Spawn,
    ToolHabits,
)
from session_server.schemas.errors import UnreachableError
from session_server.schemas.limits import CAPABILITY_SETS, CAPABILITY_SETS_PER_PRINCIPAL

ASKING = ("elicitation", "sampling", "roots")
Revive = Callable[[], Coroutine[Any, Any, object]]

CANCEL_SECONDS = 3.0
"""What a server gets to answer a call that was cancelled, before its process is replaced."""


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

    def is_repeatable(self, tool: str) -> bool:
        """Whether the server says that running this tool twice is harmless."""
        return is_repeatable(self._tools.get(tool))

    async def request(
        self, method: str, params: Mapping[str, Any], progress: ProgressFnT | None = None
    ) -> dict[str, Any]:
        capabilities = self._capabilities if self.link.is_modern else None
        named = None
        if self._call is not None:
            self._call.was_sent = True
            named = self._call.request_id
        return await self.link.request(method, params, progress, capabilities, named)


def is_repeatable(tool: Tool | None) -> bool:
    marks = None if tool is None else tool.annotations
    return marks is not None and bool(marks.read_only_hint or marks.idempotent_hint)


class Pool:
    """The connections that declare the same capabilities: the host's own, or those of clients."""

    def __init__(
        self,
        config: ServerConfig,
        signal: Signal,
        spawn: Spawn,
        listener: Listener,
        capabilities: Mapping[str, Any] | None = None,
        revive: Revive | None = None,
    ) -> None:
        """`listener` gets what clients' own connections announce; the host has its main one.

        `revive` is called when there is no connection; it may bring one that is kept elsewhere.
        """
        self.links: list[SharedLink] = []
        self.users: Counter[str] = Counter()
        self._config = config
        self._signal = signal
        self._spawn = spawn
        self._listener = listener
        self._capabilities = capabilities
        self._revive = revive
        self._can_ask = capabilities is None or any(kind in capabilities for kind in ASKING)
        self._opening = 0
        self._ids = itertools.count(1)

    @contextlib.asynccontextmanager
    async def lend(
        self, asker: Asker, name: str, tool: Tool | None, habits: ToolHabits, principal: str
    ) -> AsyncGenerator[tuple[SharedLink, RunningCall]]:
        self.users[principal] += 1
        try:

            def may_ask() -> bool:
                return self._can_ask and habits.may_ask(name, tool)

            shared = await self._free_link(may_ask)
            call = RunningCall(asker, name, may_ask=may_ask())
            if self._config.url is None:
                call.request_id = f"call-{next(self._ids)}"
            shared.add(call)
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
        finally:
            self.users[principal] -= 1
            self.users += Counter()  # forgets those that are zero

    async def close(self) -> None:
        await asyncio.gather(*(shared.task.close() for shared in self.links))

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
            if not self.links and self._revive is not None:
                await self._revive()
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
            self._listener,
            capabilities=self._capabilities,
            hears_changes=self._capabilities is not None,
        )
        try:
            await shared.task.open(self._spawn)
            self.links.append(shared)
        except BaseException:
            await shared.task.close()
            raise
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
        listener: Listener,
        revive: Revive | None = None,
        most: int = CAPABILITY_SETS,
    ) -> None:
        self._new: Callable[[Mapping[str, Any]], Pool] = partial(
            Pool, config, signal, spawn, listener
        )
        self._most = most
        self._of_clients: dict[bytes, Pool] = {}
        self.own = Pool(config, signal, spawn, listener, revive=revive)

    async def of(self, capabilities: Mapping[str, Any] | None, principal: str) -> Pool:
        if capabilities is None:
            return self.own
        key = msgspec.json.encode(capabilities, order="deterministic")
        chosen = self._of_clients.pop(key, None)
        if chosen is None:
            self._check_share(principal)
            await self._make_room()
            chosen = self._new(capabilities)
        self._of_clients[key] = chosen  # the latest used stands last
        return chosen

    async def close(self) -> None:
        await asyncio.gather(self.own.close(), *(one.close() for one in self._of_clients.values()))

    def _check_share(self, principal: str) -> None:
        used = sum(principal in one.users for one in self._of_clients.values())
        if used >= CAPABILITY_SETS_PER_PRINCIPAL:
            raise UnreachableError(
                f"clients of yours with {used} different sets of capabilities are using it;"
                " try again later"
            )

    async def _make_room(self) -> None:
        if len(self._of_clients) < self._most:
            return
        idle = next((key for key, one in self._of_clients.items() if not one.users), None)
        if idle is None:
            raise UnreachableError(
                f"clients with {self._most} different sets of capabilities are using it;"
                " try again later"
            )
        await self._of_clients.pop(idle).close()
