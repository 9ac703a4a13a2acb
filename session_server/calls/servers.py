"""The configured MCP servers: each is kept connected, and lends its connections to calls.

A server that ends or cannot be reached is tried again with growing pauses. Revision 2026-07-28 over
stdio needs one connection for all calls, over HTTP one for each request; a 2025-era server asks on
the connection itself, without naming the call, and so serves one call at a time on each of a few.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from typing import Any

from mcp.shared.subscriptions import ServerEvent, ToolsListChanged
from mcp_types import Tool

from session_server.calls.config import ServerConfig
from session_server.calls.errors import UnknownServerError, UnreachableError
from session_server.calls.links import QUIET, Link
from session_server.calls.slots import Asker, Line, NotYet, Slot, declared
from session_server.calls.states import state_of, words_of
from session_server.calls.tidings import Tidings
from session_server.calls.transports import Output
from session_server.calls.troubles import trouble_of
from session_server.schemas.customizations import (
    McpAuthRequired,
    McpFailed,
    McpReady,
    McpServerState,
    McpStarting,
    McpStopped,
)

logger = logging.getLogger("session_server.mcp")

FIRST_PAUSE, LONGEST_PAUSE = 0.25, 30.0
STEADY_SECONDS = 10.0
"""A connection that held this long was not part of a series of failures."""

Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
StateChanged = Callable[[str, McpServerState], None]


class Server:
    def __init__(
        self, name: str, config: ServerConfig, spawn: Spawn, changed: StateChanged
    ) -> None:
        self.name = name
        self.config = config
        self.state: McpServerState = McpStopped()
        self.tools: dict[str, Tool] = {}
        self._is_stale = False
        self._listing: asyncio.Task[None] | None = None
        self.tidings = Tidings(spawn)
        self.tidings.subscribe(self._heard)
        self._spawn = spawn
        self._changed = changed
        self._main: Slot | None = None
        self._slots: list[Slot] = []
        self._moved = asyncio.Condition()
        self._hurry = asyncio.Event()
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._output: Output | None = None
        self._reported: str | None = None

    # Life

    def start(self) -> None:
        if self.config.disabled:
            return
        if self.config.problem is not None:
            self.state = state_of(self.name, UnreachableError(self.config.problem))
            self._changed(self.name, self.state)
        else:
            self._task = self._spawn(self._keep_connected())

    async def stop(self) -> None:
        self._stopping.set()
        self._hurry.set()
        if self._task is not None:
            if isinstance(self.state, McpStarting):
                self._task.cancel()
            await asyncio.wait([self._task])
        await asyncio.gather(*(slot.kept.close() for slot in self._slots))
        await self._become(McpStopped())

    async def _keep_connected(self) -> None:
        pause = FIRST_PAUSE
        while not self._stopping.is_set():
            began = asyncio.get_running_loop().time()
            trouble = await self._connected_once()
            if self._stopping.is_set():
                return
            if asyncio.get_running_loop().time() - began > STEADY_SECONDS:
                pause = FIRST_PAUSE
            self._report(trouble)
            await self._become(state_of(self.name, trouble))
            await self._rest(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _connected_once(self) -> UnreachableError:
        """Connects and stays; returns why it is over."""
        await self._become(McpStarting())
        slot = Slot(self.name, self.config, self.tidings.hear)
        try:
            await slot.kept.open(self._spawn)
            async with asyncio.timeout(self.config.start_timeout):
                self.tools = await slot.link.tools()
        except Exception as error:  # noqa: BLE001 - whatever it answered, it cannot be used
            await slot.kept.close()
            self._output = slot.link.output
            return trouble_of(error, self.config, slot.link.heard)
        except BaseException:
            await slot.kept.close()
            raise
        self._main = slot
        self._slots.append(slot)
        await self._become(McpReady())
        self._reported = None
        following = self._spawn(self.tidings.follow(slot.link))
        await self._until_lost(slot)
        following.cancel()
        self._main = None
        self._slots.remove(slot)
        await slot.kept.close()
        self._output = slot.link.output
        return UnreachableError("the connection ended")

    def _report(self, trouble: UnreachableError) -> None:
        """Once for each reason, however often it is tried."""
        if str(trouble) == self._reported:
            return
        self._reported = str(trouble)
        lines = "" if self._output is None else "".join(f"\n  {t}" for t in self._output.lines)
        logger.warning("the MCP server %s cannot be used: %s%s", self.name, trouble, lines)

    async def _until_lost(self, slot: Slot) -> None:
        ends = [asyncio.ensure_future(e.wait()) for e in (slot.link.lost, self._stopping)]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()

    async def _rest(self, seconds: float) -> None:
        """The pause before the next attempt, unless somebody is waiting for it."""
        self._hurry.clear()
        if not self._stopping.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), seconds)

    async def _become(self, state: McpServerState) -> None:
        if state != self.state:
            self.state = state
            self._changed(self.name, state)
        async with self._moved:
            self._moved.notify_all()

    def _heard(self, event: ServerEvent) -> None:
        if isinstance(event, ToolsListChanged):
            self._is_stale = True
            if self._listing is None or self._listing.done():
                self._listing = self._spawn(self._relist())

    async def _relist(self) -> None:
        """One listing at a time, however often a server says that its tools have changed."""
        while self._is_stale and self._main is not None:
            self._is_stale = False
            with contextlib.suppress(Exception):
                self.tools = await self._main.link.tools()

    async def started(self, seconds: float) -> None:
        """Returns when it is not starting, or no longer; or when this takes too long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds), self._moved:
                await self._moved.wait_for(lambda: not isinstance(self.state, McpStarting))

    # Lending

    async def ready(self) -> Link:
        """The main connection, once it stands; an attempt that fails while waiting is the end."""
        if self.config.disabled:
            raise UnreachableError("it is disabled")
        if self.config.problem is not None:
            raise UnreachableError(self.config.problem)
        tried = False

        def is_settled() -> bool:
            nonlocal tried
            tried = tried or isinstance(self.state, McpStarting)
            has_failed = tried and isinstance(self.state, McpFailed | McpAuthRequired)
            return self._standing() is not None or has_failed or self._stopping.is_set()

        self._hurry.set()
        async with self._moved:
            await self._moved.wait_for(is_settled)
        standing = self._standing()
        if standing is not None:
            return standing
        raise UnreachableError(words_of(self.state))

    def _standing(self) -> Link | None:
        """The main connection, unless it has just ended and nobody has noticed yet."""
        link = None if self._main is None else self._main.link
        return None if link is None or link.lost.is_set() else link

    @contextlib.asynccontextmanager
    async def lend(self, asker: Asker) -> AsyncGenerator[Line]:
        """A connection for one leg of a call; for all of the call if the server holds it open."""
        main = await self.ready()
        if not main.is_modern:
            slot = await self._taken(asker)
            try:
                yield Line(slot.link, self.tools)
            except BaseException:
                if slot.has_asked:  # and may ask again for a call that is no longer there
                    slot.link.lost.set()
                raise
            finally:
                await self._returned(slot)
        elif self.config.url is None:
            yield Line(main, self.tools)
        else:
            async with Link(self.config, declared(self.config)).opened(like=main) as link:
                yield Line(link, self.tools)

    def unreachable(self) -> None:
        """Somebody found out what an idle connection cannot know."""
        if self._main is not None:
            self._main.link.lost.set()

    async def _taken(self, asker: Asker) -> Slot:
        """A free connection: one that is there, one more if there may be, or the next returned."""
        while True:
            slot = self._free()
            if slot is not None:
                slot.asker = asker
                return slot
            if len(self._slots) < self.config.connections:
                await self._one_more()
                continue
            async with self._moved:
                await self._moved.wait_for(self._has_room)
            if not self._slots:
                await self.ready()

    def _free(self) -> Slot | None:
        usable = (s for s in self._slots if s.asker is None and not s.link.lost.is_set())
        return next(usable, None)

    def _has_room(self) -> bool:
        return self._free() is not None or len(self._slots) < self.config.connections

    async def _one_more(self) -> None:
        slot = Slot(self.name, self.config)
        self._slots.append(slot)
        slot.asker = NotYet()
        try:
            await slot.kept.open(self._spawn)
        except BaseException:
            await self._returned(slot)
            raise
        slot.asker = None

    async def _returned(self, slot: Slot) -> None:
        slot.asker = None
        if slot is not self._main and slot.link.lost.is_set() and slot in self._slots:
            self._slots.remove(slot)
        async with self._moved:
            self._moved.notify_all()


class Servers:
    """By name. `changed` hears of every change of a server's state."""

    def __init__(
        self, configs: Mapping[str, ServerConfig], spawn: Spawn, changed: StateChanged
    ) -> None:
        self._servers = {
            name: Server(name, config, spawn, changed) for name, config in configs.items()
        }

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._servers)

    def __getitem__(self, name: str) -> Server:
        try:
            return self._servers[name]
        except KeyError:
            raise UnknownServerError(name, self.names) from None

    def start(self) -> None:
        for logger_name, level in QUIET.items():
            logging.getLogger(logger_name).setLevel(level)
        for server in self._servers.values():
            server.start()

    async def stop(self) -> None:
        await asyncio.gather(*(server.stop() for server in self._servers.values()))

    async def request(self, name: str, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """A request that asks nobody anything, such as a listing, on the main connection."""
        return await (await self[name].ready()).request(method, params)
