"""The configured MCP servers: each is kept connected, and lends its connections to calls.

A server that ends or cannot be reached is tried again with growing pauses. Revision 2026-07-28 over
stdio needs one connection for all calls, over HTTP one for each request; `connections` keeps those
of the 2025 era. A server that speaks both is spoken to in the revision that the tool needs.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

from mcp.shared.subscriptions import ServerEvent, ToolsListChanged
from mcp_types import Tool

from session_server.mcp_client.config import LEGACY, MODERN, Era, Protocol, ServerConfig
from session_server.mcp_client.connections import Link
from session_server.mcp_client.errors import UnknownServerError, UnreachableError
from session_server.mcp_client.failures import trouble_of
from session_server.mcp_client.notifications import Tidings
from session_server.mcp_client.pool import (
    Asker,
    Changes,
    Habits,
    Line,
    Pools,
    Slot,
    Spawn,
    declared,
)
from session_server.mcp_client.progress import LEVELS
from session_server.mcp_client.revisions import Revisions
from session_server.mcp_client.sdk import QUIET
from session_server.mcp_client.server_states import state_of, words_of
from session_server.mcp_client.transports import Output
from session_server.schemas.ahp.customizations import (
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

StateChanged = Callable[[str, McpServerState], None]


class Server:
    def __init__(
        self,
        name: str,
        config: ServerConfig,
        spawn: Spawn,
        changed: StateChanged,
        revisions: Revisions,
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
        self._modern: Slot | None = None
        self._moved = Changes()
        self._habits = Habits()
        self._revisions = revisions
        self._started_as: Protocol = "auto"
        self._not_spoken: set[Era] = set()
        self.pools = Pools(name, config, self._moved, spawn, heard=self.tidings.hear)
        self.pools.own.revive = self.ready
        self._log_level: str | None = None
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
        await self.pools.close()
        if self._modern is not None:
            await self._modern.kept.close()
        self._become(McpStopped())

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
            self._become(state_of(self.name, trouble))
            await self._rest(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _connected_once(self) -> UnreachableError:
        """Connects and stays; returns why it is over."""
        slot = self._new_main()
        self._become(McpStarting())
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
        if not slot.link.is_modern:
            self.pools.own.slots.insert(0, slot)
        self._become(McpReady())
        self._reported = None
        following = self._spawn(self.tidings.follow(slot.link))
        await self._until_lost(slot)
        following.cancel()
        self._main = None
        if slot in self.pools.own.slots:
            self.pools.own.slots.remove(slot)
        await slot.kept.close()
        self._output = slot.link.output
        return UnreachableError("the connection ended")

    def _new_main(self) -> Slot:
        """A process is started in the revision that its tools need, so that it stays the only one.

        Where that has just failed, the revision is negotiated.
        """
        was_2025 = self._started_as == LEGACY and isinstance(self.state, McpFailed)
        self._started_as = self.config.protocol
        is_process = self.config.url is None
        if self._can_choose and is_process and not was_2025:
            self._started_as = self._revisions.of_server(self.config) or "auto"
        self._not_spoken.clear()
        return Slot(
            self.name,
            self.config,
            self._moved,
            protocol=self._started_as,
            heard=self.tidings.hear,
        )

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

    def _become(self, state: McpServerState) -> None:
        if state != self.state:
            self.state = state
            self._changed(self.name, state)
        self._moved.notify()

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
            async with asyncio.timeout(seconds):
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
    async def lend(
        self,
        asker: Asker,
        name: str,
        *,
        capabilities: Mapping[str, Any] | None = None,
        principal: str = "",
        era: Era | None = None,
        preferred: Era = MODERN,
    ) -> AsyncGenerator[Line]:
        """A connection for one leg of a call; for all of the call if the server holds it open.

        `name`: of the tool, or the method of a request that is not a tool's. `capabilities`: what
        is declared to the server, if not the host's own. `era` is that of a call that has begun,
        `preferred` the one for a tool of which nothing is known, if the server speaks both.
        """
        main = await self.ready()
        wanted = era or self._revisions.of_tool(self.config, name) or preferred
        if await self._spoken(wanted, main, capabilities, principal) == LEGACY:
            pool = await self.pools.of(capabilities, principal)
            tool = self.tools.get(name)
            async with pool.lend(asker, name, tool, self._habits, principal) as (slot, seat):
                await slot.set_log_level(self._log_level)
                with slot.hearing(asker, principal):
                    yield Line(slot.link, self.tools, capabilities, seat)
        elif self.config.url is None:
            slot = await self._modern_process(main)
            with slot.hearing(asker, principal):
                yield Line(slot.link, self.tools, capabilities)
        else:
            like = main if main.is_modern else None
            async with Link(self.config, declared(self.config, asker)).opened(MODERN, like) as link:
                yield Line(link, self.tools, capabilities)

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        capabilities: Mapping[str, Any] | None = None,
        principal: str = "",
    ) -> dict[str, Any]:
        """A request that asks nobody anything, such as a listing.

        With `capabilities`, as a client that declares these gets it answered.
        """
        link = await self.ready()
        if link.is_modern or capabilities is None:
            return await link.request(method, params, capabilities=capabilities)
        pool = await self.pools.of(capabilities, principal)
        return await (await pool.link()).request(method, params)

    def set_log_level(self, level: str) -> None:
        """Of calls over 2025-11-25: the least severe that any client has asked for."""
        levels = (level, self._log_level or level)
        self._log_level = min(levels, key=LEVELS.index)

    def asked_by_result(self, name: str) -> None:
        """In the 2026 era; so this is what the tool needs."""
        if self._can_choose and name in self.tools:
            self._revisions.learn(self.config, name, MODERN)

    async def needs(self, name: str, era: Era) -> bool:
        """A tool failed and said so: whether the server speaks this revision; then it is kept."""
        if not self._can_choose:
            return False
        try:
            if await self._spoken(era, await self.ready()) != era:
                return False
        except UnreachableError:
            return False
        if name in self.tools:
            self._revisions.learn(self.config, name, era)
        return True

    def unreachable(self) -> None:
        """Somebody found out what an idle connection cannot know."""
        if self._main is not None:
            self._main.link.lost.set()

    @property
    def _can_choose(self) -> bool:
        return self.config.protocol == "auto"

    async def _spoken(
        self,
        wanted: Era,
        main: Link,
        capabilities: Mapping[str, Any] | None = None,
        principal: str = "",
    ) -> Era:
        """The revision that is wanted, or else that of the main connection.

        Discovery does not tell whether a server speaks 2025-11-25 too; opening a connection does,
        and calls nothing. A server that does not is known until it is connected anew.
        """
        of_main = MODERN if main.is_modern else LEGACY
        if wanted == of_main or not self._can_choose or wanted in self._not_spoken:
            return of_main
        if wanted == MODERN and self._started_as == "auto":
            return of_main  # it would have been negotiated
        try:
            if wanted == LEGACY:
                await (await self.pools.of(capabilities, principal)).check()
            else:
                await self._modern_process(main)
        except UnreachableError:
            self._not_spoken.add(wanted)
            return of_main
        return wanted

    async def _modern_process(self, main: Link) -> Slot:
        """The main one, unless that is of the 2025 era."""
        if main.is_modern:
            if self._main is None or self._main.link is not main:
                raise UnreachableError("the connection ended")
            return self._main
        if self._modern is None or not self._modern.is_usable:
            slot = Slot(self.name, self.config, self._moved, protocol=MODERN)
            await slot.kept.open(self._spawn)
            self._modern = slot
        return self._modern


class Servers:
    """By name. `changed` hears of every change of a server's state."""

    def __init__(
        self,
        configs: Mapping[str, ServerConfig],
        spawn: Spawn,
        changed: StateChanged,
        revisions: Revisions | None = None,
    ) -> None:
        known = revisions or Revisions()
        self._servers = {
            name: Server(name, config, spawn, changed, known) for name, config in configs.items()
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
