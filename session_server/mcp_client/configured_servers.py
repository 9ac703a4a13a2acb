"""All configured MCP servers, by name. The MCP SDK is loaded with the first of them (`servers`)."""

import asyncio
import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from session_server.mcp_client.config import QUIET, ServerConfig
from session_server.mcp_client.revisions import Revisions
from session_server.schemas.errors import UnknownServerError

if TYPE_CHECKING:
    from session_server.mcp_client.connections.main_connection import StateChanged
    from session_server.mcp_client.notifications import Spawn
    from session_server.mcp_client.servers import Server


class Servers:
    """`changed` gets every change of a server's state."""

    def __init__(
        self,
        configs: Mapping[str, ServerConfig],
        spawn: "Spawn",
        changed: "StateChanged",
        revisions: Revisions | None = None,
    ) -> None:
        known = revisions or Revisions()
        self._servers = dict(_made(configs, spawn, changed, known))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._servers)

    def __getitem__(self, name: str) -> "Server":
        try:
            return self._servers[name]
        except KeyError:
            raise UnknownServerError(name, self.names) from None

    def start(self) -> None:
        for logger_name, level in QUIET.items():
            logging.getLogger(logger_name).setLevel(level)
        for server in self._servers.values():
            server.main.start()

    async def stop(self) -> None:
        await asyncio.gather(*(server.stop() for server in self._servers.values()))


def _made(
    configs: Mapping[str, ServerConfig],
    spawn: "Spawn",
    changed: "StateChanged",
    revisions: Revisions,
) -> Iterator[tuple[str, "Server"]]:
    if not configs:
        return
    # Imported here: a host without MCP servers does not load the MCP SDK, which takes a third of
    # the time of a start.
    from session_server.mcp_client.servers import Server  # noqa: PLC0415

    for name, config in configs.items():
        named = msgspec.structs.replace(config, name=name)
        yield name, Server(named, spawn, changed, revisions)
