"""Which revision of MCP the tools of a server need that speaks both.

A tool that asks on the connection works in 2025-11-25 alone, one that returns its questions in
2026-07-28 alone; which one it is shows when it is first called. What was seen is kept in a file, so
that it is seen once. A server is recognized by its name and by how it is started or reached.
"""

import contextlib
import functools
import hashlib
import logging
import os
import tempfile
from pathlib import Path

import msgspec

from session_server.mcp_client.config import LEGACY, Era, ServerConfig
from session_server.schemas.limits import REMEMBERED_TOOLS

logger = logging.getLogger("session_server.mcp")


class Seen(msgspec.Struct):
    """Of one server; `tools` in the order in which they were seen."""

    of: str
    tools: dict[str, Era] = msgspec.field(default_factory=dict[str, Era])


class Revisions:
    def __init__(self, file: Path | None = None) -> None:
        """Without a file, for this process."""
        self._file = file
        self._servers: dict[str, Seen] = {}
        if file is not None:
            with contextlib.suppress(OSError, msgspec.MsgspecError):
                self._servers = msgspec.json.decode(file.read_bytes(), type=dict[str, Seen])

    def of_tool(self, config: ServerConfig, tool: str) -> Era | None:
        """What this tool needs; if that was not seen, what the server's other tools do."""
        seen = self._of(config)
        return seen.tools.get(tool) or self.of_server(config)

    def of_server(self, config: ServerConfig) -> Era | None:
        """A server with one tool of 2025 was most likely written in that style."""
        return LEGACY if LEGACY in self._of(config).tools.values() else None

    def learn(self, config: ServerConfig, tool: str, era: Era) -> None:
        seen = self._of(config)
        if seen.tools.get(tool) == era:
            return
        seen.tools.pop(tool, None)
        seen.tools[tool] = era
        while len(seen.tools) > REMEMBERED_TOOLS:
            del seen.tools[next(iter(seen.tools))]
        self._servers[config.name] = seen
        self._save()

    def _of(self, config: ServerConfig) -> Seen:
        digest = _digest(config.command, config.args, config.url)
        seen = self._servers.get(config.name)
        return seen if seen is not None and seen.of == digest else Seen(of=digest)

    def _save(self) -> None:
        """Whole or not at all. Where it cannot be written, it is seen once more after a restart."""
        if self._file is None:
            return
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._file.parent, prefix=self._file.name)
            with os.fdopen(handle, "wb") as new:
                new.write(msgspec.json.encode(self._servers))
            Path(name).replace(self._file)
        except OSError as error:
            logger.warning("%s could not be written: %s", self._file, error.strerror)


@functools.cache
def _digest(*how: object) -> str:
    """Of the configured servers, so there are few of them."""
    return hashlib.sha256(msgspec.json.encode(how)).hexdigest()
