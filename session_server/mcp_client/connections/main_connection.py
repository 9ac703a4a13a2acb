"""The connection to a server that the host keeps: its state, its tools and what it announces.

A server that ends or cannot be reached is connected to again, with growing pauses. `servers` above
lends connections to calls, this one among them where the revision allows it.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable

from mcp.shared.subscriptions import ServerEvent, ToolsListChanged
from mcp_types import Tool

from session_server.backoff import Backoff
from session_server.mcp_client.config import LEGACY, Era, Protocol, ServerConfig
from session_server.mcp_client.connections.connection import Link
from session_server.mcp_client.connections.pool import Pool
from session_server.mcp_client.connections.shared_connections import SharedLink, Signal
from session_server.mcp_client.connections.transports import Output
from session_server.mcp_client.failures import unreachable_error
from session_server.mcp_client.notifications import Notifications, Spawn
from session_server.mcp_client.revisions import Revisions
from session_server.mcp_client.server_states import reason_of, state_of
from session_server.schemas.ahp.customizations import (
    McpAuthRequired,
    McpFailed,
    McpReady,
    McpServerState,
    McpStarting,
    McpStopped,
)
from session_server.schemas.errors import UnreachableError

logger = logging.getLogger("session_server.mcp")

RECONNECT = (0.25, 30.0)
"""The first and the longest pause, in seconds."""

STEADY_SECONDS = 10.0
"""A connection that held this long was not part of a series of failures."""

StateChanged = Callable[[str, McpServerState], None]


class MainConnection:
    """`shared` is the link while it stands; one of the 2025 era is in `pool` then.

    `not_spoken`: revisions that this connection's server turned out not to speak. `signal` is
    notified of every change of the state.
    """

    def __init__(
        self,
        config: ServerConfig,
        pool: Pool,
        notifications: Notifications,
        signal: Signal,
        spawn: Spawn,
        changed: StateChanged,
        revisions: Revisions,
    ) -> None:
        self.state: McpServerState = McpStopped()
        self.tools: dict[str, Tool] = {}
        self.shared: SharedLink | None = None
        self.started_as: Protocol = "auto"
        self.not_spoken: set[Era] = set()
        self._config = config
        self._pool = pool
        self._pool.revive = self.ready
        self._notifications = notifications
        self._notifications.subscribe(self._announced)
        self._signal = signal
        self._spawn = spawn
        self._changed = changed
        self._revisions = revisions
        self._is_stale = False
        self._listing: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._output: Output | None = None
        self._reported: str | None = None

    def start(self) -> None:
        if self._config.disabled:
            return
        if self._config.problem is not None:
            self.state = state_of(self._config.name, UnreachableError(self._config.problem))
            self._changed(self._config.name, self.state)
        else:
            self._task = self._spawn(self._keep_connected())

    async def stop(self) -> None:
        self._stopping.set()
        self._hurry.set()
        self.lose()
        if self._task is not None:
            if isinstance(self.state, McpStarting):
                self._task.cancel()
            await asyncio.wait([self._task])
        self._become(McpStopped())

    async def _keep_connected(self) -> None:
        backoff = Backoff(*RECONNECT)
        while not self._stopping.is_set():
            began = asyncio.get_running_loop().time()
            error = await self._connected_once()
            if self._stopping.is_set():
                return
            if asyncio.get_running_loop().time() - began > STEADY_SECONDS:
                backoff.reset()
            self._report(error)
            self._become(state_of(self._config.name, error))
            self._hurry.clear()
            with contextlib.suppress(TimeoutError):  # a call that waits for it ends the pause
                await asyncio.wait_for(self._hurry.wait(), backoff.pause())

    async def _connected_once(self) -> UnreachableError:
        """Connects and stays connected; returns why that ended."""
        shared = self._new_link()
        self._become(McpStarting())
        try:
            await shared.open(self._spawn)
            async with asyncio.timeout(self._config.start_timeout):
                self.tools = await shared.link.tools()
        except Exception as error:  # noqa: BLE001 - whatever it answered, it cannot be used
            return unreachable_error(error, self._config, shared.link.latest_response)
        else:
            self.shared = shared
            if not shared.link.is_modern:
                self._pool.links.insert(0, shared)
            self._become(McpReady())
            self._reported = None
            following = self._spawn(self._notifications.follow(shared.link))
            await shared.link.lost.wait()
            following.cancel()
            self.shared = None
            if shared in self._pool.links:
                self._pool.links.remove(shared)
            return UnreachableError("the connection ended")
        finally:
            await shared.close()
            self._output = shared.link.output

    def _new_link(self) -> SharedLink:
        """A process is started in the revision that its tools need, so that it stays the only one.

        Where that has just failed, the revision is negotiated.
        """
        was_2025 = self.started_as == LEGACY and isinstance(self.state, McpFailed)
        self.started_as = self._config.protocol
        is_process = self._config.url is None
        if self._config.protocol == "auto" and is_process and not was_2025:
            self.started_as = self._revisions.of_server(self._config) or "auto"
        self.not_spoken.clear()
        return SharedLink(self._config, self._signal, self._notifications, protocol=self.started_as)

    def _report(self, error: UnreachableError) -> None:
        """Once for each reason, however often it is tried."""
        if str(error) == self._reported:
            return
        self._reported = str(error)
        lines = "" if self._output is None else "".join(f"\n  {t}" for t in self._output.lines)
        logger.warning("the MCP server %s cannot be used: %s%s", self._config.name, error, lines)

    def _become(self, state: McpServerState) -> None:
        if state != self.state:
            self.state = state
            self._changed(self._config.name, state)
        self._signal.notify()

    def _announced(self, event: ServerEvent) -> None:
        if isinstance(event, ToolsListChanged):
            self._is_stale = True
            if self._listing is None or self._listing.done():
                self._listing = self._spawn(self._relist())

    async def _relist(self) -> None:
        """One listing at a time, however often a server says that its tools have changed."""
        while self._is_stale and self.shared is not None:
            self._is_stale = False
            with contextlib.suppress(Exception):
                self.tools = await self.shared.link.tools()

    async def started(self, seconds: float) -> None:
        """Returns when it is not starting any more, or after this time."""
        if not isinstance(self.state, McpStarting):
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._signal.wait_for(lambda: not isinstance(self.state, McpStarting))

    async def ready(self) -> Link:
        """The connection, once it stands; an attempt that fails while waiting raises its reason."""
        problem = "it is disabled" if self._config.disabled else self._config.problem
        if problem is not None:
            raise UnreachableError(problem)
        standing = self.standing
        if standing is not None:
            return standing
        tried = False

        def is_settled() -> bool:
            nonlocal tried
            tried = tried or isinstance(self.state, McpStarting)
            has_failed = tried and isinstance(self.state, McpFailed | McpAuthRequired)
            return self.standing is not None or has_failed or self._stopping.is_set()

        self._hurry.set()
        await self._signal.wait_for(is_settled)
        standing = self.standing
        if standing is not None:
            return standing
        raise UnreachableError(reason_of(self.state))

    def lose(self) -> None:
        """A call found out what an idle connection cannot know."""
        if self.shared is not None:
            self.shared.link.lost.set()

    @property
    def standing(self) -> Link | None:
        """The link, unless it has just ended and that was not noticed yet."""
        link = None if self.shared is None else self.shared.link
        return None if link is None or link.lost.is_set() else link
