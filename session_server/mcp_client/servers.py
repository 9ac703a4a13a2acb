"""A configured MCP server: it lends its connections to calls, in the revision they need.

Revision 2026-07-28 over stdio needs one connection for all calls, over HTTP one for each request;
`pool` has those of the 2025 era. A server that speaks both is spoken to in the revision that the
tool needs. `main_connection` keeps each server connected.
"""

import contextlib
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from session_server.mcp_client.config import LEGACY, MODERN, Era, ServerConfig
from session_server.mcp_client.connections.connection import Link, callbacks_for_one_request
from session_server.mcp_client.connections.http_link import HttpLink, HttpPosts
from session_server.mcp_client.connections.main_connection import (
    MainConnection,
    StateChanged,
)
from session_server.mcp_client.connections.pool import BorrowedLink, Pools
from session_server.mcp_client.connections.shared_connections import (
    CallCallbacks,
    SharedLink,
    Signal,
    ToolHabits,
)
from session_server.mcp_client.notifications import Notifications, Spawn
from session_server.mcp_client.progress import LEVELS
from session_server.mcp_client.revisions import Revisions
from session_server.schemas.errors import UnreachableError


class Server:
    def __init__(
        self, config: ServerConfig, spawn: Spawn, changed: StateChanged, revisions: Revisions
    ) -> None:
        self.config = config
        self.notifications = Notifications(spawn)
        self._spawn = spawn
        self._revisions = revisions
        self._signal = Signal()
        self.pools = Pools(config, self._signal, spawn, self.notifications)
        self.main = MainConnection(
            config, self.pools.own, self.notifications, self._signal, spawn, changed, revisions
        )
        self._modern: SharedLink | None = None
        self._posts: HttpPosts | None = None
        self._habits = ToolHabits()
        self._log_level: str | None = None

    async def stop(self) -> None:
        await self.main.stop()
        await self.pools.close()
        if self._posts is not None:
            self._posts.connections.close()
        if self._modern is not None:
            await self._modern.close()

    @contextlib.asynccontextmanager
    async def lend(
        self,
        callbacks: CallCallbacks,
        name: str,
        *,
        capabilities: Mapping[str, Any] | None = None,
        principal: str = "",
        era: Era | None = None,
        preferred: Era = MODERN,
    ) -> AsyncGenerator[BorrowedLink]:
        """A connection for one leg of a call; for all of the call if the server holds it open.

        `name`: of the tool, or the method of a request that is not a tool's. `capabilities`: what
        is declared to the server, if not the host's own. `era` is that of a call that has begun,
        `preferred` the one for a tool of which nothing is known, if the server speaks both.
        """
        main = await self.main.ready()
        wanted = era or self._wanted(name, preferred)
        if await self._spoken(wanted, main, capabilities, principal) == LEGACY:
            pool = await self.pools.of(capabilities, principal)
            tool = self.main.tools.get(name)
            async with pool.lend(callbacks, name, tool, self._habits, principal) as (shared, call):
                await shared.set_log_level(self._log_level)
                with shared.logging_to(callbacks, principal):
                    yield BorrowedLink(shared.link, self.main.tools, capabilities, call)
        elif self.config.url is None:
            shared = await self._modern_process(main)
            with shared.logging_to(callbacks, principal):
                yield BorrowedLink(shared.link, self.main.tools, capabilities)
        elif not (posts := self._http_posts()).is_for_sdk:
            link = HttpLink(posts, main, callbacks.logged)
            yield BorrowedLink(link, self.main.tools, capabilities)
        else:
            own = callbacks_for_one_request(self.config, callbacks.logged)
            async with Link(self.config, own).opened(MODERN, main) as opened:
                yield BorrowedLink(opened, self.main.tools, capabilities)

    def is_at_hand(self, name: str, preferred: Era) -> bool:
        """Whether a connection is lent at once: calls over 2026-07-28 do not wait for others.

        Where the main connection is of the 2025 era, none is.
        """
        main = self.main.standing
        if main is None:
            return False
        return self._known_revision(self._wanted(name, preferred), main) == MODERN

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        capabilities: Mapping[str, Any] | None = None,
        principal: str = "",
    ) -> dict[str, Any]:
        """A request during which the server asks nothing, such as a listing.

        With `capabilities`, as a client that declares these gets it answered.
        """
        link = await self.main.ready()
        if link.is_modern or capabilities is None:
            return await link.request(method, params, capabilities=capabilities)
        pool = await self.pools.of(capabilities, principal)
        return await (await pool.link()).request(method, params)

    def set_log_level(self, level: str) -> None:
        """Of calls over 2025-11-25: the least severe that any client has asked for."""
        levels = (level, self._log_level or level)
        self._log_level = min(levels, key=LEVELS.index)

    def asked_by_result(self, name: str) -> None:
        """The tool returned its questions: remembers that it needs 2026-07-28."""
        if self._can_choose and name in self.main.tools:
            self._revisions.learn(self.config, name, MODERN)

    async def remember_if_spoken(self, name: str, era: Era) -> bool:
        """If the server speaks this revision, remembers that the tool needs it; whether it does."""
        if not self._can_choose:
            return False
        try:
            if await self._spoken(era, await self.main.ready()) != era:
                return False
        except UnreachableError:
            return False
        if name in self.main.tools:
            self._revisions.learn(self.config, name, era)
        return True

    @property
    def _can_choose(self) -> bool:
        return self.config.protocol == "auto"

    def _wanted(self, name: str, preferred: Era) -> Era:
        return self._revisions.of_tool(self.config, name) or preferred

    def _known_revision(self, wanted: Era, main: Link) -> Era | None:
        """The revision that is spoken if this one is wanted; `None` if that has to be tried."""
        of_main = MODERN if main.is_modern else LEGACY
        if wanted == of_main or not self._can_choose or wanted in self.main.not_spoken:
            return of_main
        if wanted == MODERN and self.main.started_as == "auto":
            return of_main  # it would have been negotiated
        return None

    async def _spoken(
        self,
        wanted: Era,
        main: Link,
        capabilities: Mapping[str, Any] | None = None,
        principal: str = "",
    ) -> Era:
        """The revision that is wanted, or else that of the main connection.

        Discovery does not tell whether a server speaks 2025-11-25 too; opening a connection does,
        and calls nothing. A server that does not is known until it is reconnected.
        """
        known = self._known_revision(wanted, main)
        if known is not None:
            return known
        try:
            if wanted == LEGACY:
                await (await self.pools.of(capabilities, principal)).check()
            else:
                await self._modern_process(main)
        except UnreachableError:
            self.main.not_spoken.add(wanted)
            return MODERN if main.is_modern else LEGACY
        return wanted

    def _http_posts(self) -> HttpPosts:
        if self._posts is None:
            self._posts = HttpPosts(self.config)
        return self._posts

    async def _modern_process(self, main: Link) -> SharedLink:
        """The main one, unless that is of the 2025 era."""
        if main.is_modern:
            shared = self.main.shared
            if shared is None or shared.link is not main:
                raise UnreachableError("the connection ended")
            return shared
        if self._modern is None or not self._modern.is_usable:
            shared = SharedLink(
                self.config, self._signal, self.notifications, protocol=MODERN, hears_changes=False
            )
            await shared.open(self._spawn)
            self._modern = shared
        return self._modern
