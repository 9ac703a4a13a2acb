"""The configuration of one MCP server. `mcp_json` reads it from a file.

Values are never shown: they hold tokens more often than not.
"""

from typing import Any, Literal, TypeAlias

import msgspec

from session_server.schemas.calls import Answerers
from session_server.schemas.limits import ROUNDS_PER_CALL
from session_server.schemas.mcp import Root
from session_server.schemas.wire import Count, Uri, Wire

START_SECONDS = 60.0
CONNECTIONS, PROCESSES = 4, 1
"""To one 2025-era server, over HTTP and on stdin and stdout."""

MODERN: Literal["2026-07-28"] = "2026-07-28"
LEGACY: Literal["2025-11-25"] = "2025-11-25"
Era: TypeAlias = Literal["2026-07-28", "2025-11-25"]
Protocol: TypeAlias = Literal["auto"] | Era


class ServerConfig(Wire, frozen=True, kw_only=True):
    """One entry of `mcpServers`. `name` is its key there, `problem` why it cannot be used.

    `protocol`: the revision to speak. `connections`: how many at most, if the server is of 2025.
    `answers`: who is asked when the server asks. `session`: where calls through the gateway go.
    `private_arguments`: names of arguments that are shown as •••, for all tools or by tool.
    `answer_within`: seconds that a question stays open; without it, until someone answers.
    """

    name: str = ""
    problem: str | None = None
    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    cwd: str | None = None
    url: Uri | None = None
    headers: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    disabled: bool = False
    protocol: Protocol = "auto"
    answers: Answerers = "session"
    session: str | None = None
    private_arguments: tuple[str, ...] | dict[str, tuple[str, ...]] = ()
    answer_within: float | None = None
    start_timeout: float = START_SECONDS
    max_rounds: Count = ROUNDS_PER_CALL
    connections: Count | None = None
    roots: tuple[Root, ...] | None = None

    def __repr__(self) -> str:
        return f"ServerConfig({'stdio' if self.command else 'http'})"

    def __rich_repr__(self) -> Any:
        yield "stdio" if self.command else "http"

    @property
    def most_connections(self) -> int:
        if self.connections is not None:
            return self.connections
        return PROCESSES if self.url is None else CONNECTIONS

    def private_arguments_of(self, tool: str) -> tuple[str, ...]:
        names = self.private_arguments
        return names.get(tool, ()) if isinstance(names, dict) else names
