"""What a call borrows of a server: a connection, and with it the server's questions.

Above it `servers` decides how many there are and who gets which.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Protocol

from mcp.client.session import ClientRequestContext, IncomingMessage
from mcp.shared.subscriptions import ServerEvent
from mcp_types import (
    INTERNAL_ERROR,
    ElicitCompleteNotification,
    ElicitRequestParams,
    ElicitResult,
    ErrorData,
    ListRootsResult,
    Tool,
)
from mcp_types import Root as McpRoot
from pydantic import FileUrl

from session_server.calls.config import ServerConfig
from session_server.calls.links import Answering, KeptLink, Link
from session_server.calls.tidings import tidings_in

NO_CALL = ErrorData(code=INTERNAL_ERROR, message="No call is under way here.")

logger = logging.getLogger("session_server.calls")


class Asker(Protocol):
    """Whom the server's questions on a connection are for, while a call has it."""

    async def elicit(self, params: ElicitRequestParams) -> ElicitResult | ErrorData: ...

    async def visited(self, elicitation_id: str) -> None:
        """The server says that a URL it sent people to is done with."""
        ...


class Line:
    """A link as a call sees it; a 2025-era one is its own while it has it."""

    def __init__(self, link: Link, tools: Mapping[str, Tool]) -> None:
        self.link = link
        self._tools = tools

    def is_repeatable(self, tool: str) -> bool:
        """Whether the server says that running this tool twice is harmless."""
        known = self._tools.get(tool)
        marks = None if known is None else known.annotations
        return marks is not None and bool(marks.read_only_hint or marks.idempotent_hint)


class Slot:
    """A kept link, and who has it. `has_asked`: its server has put questions on it."""

    def __init__(
        self, name: str, config: ServerConfig, heard: Callable[[ServerEvent], None] | None = None
    ) -> None:
        self.asker: Asker | None = None
        self.has_asked = False
        self._name = name
        self._heard = heard
        answering = Answering(
            elicit=self._elicit,
            list_roots=None if config.roots is None else self._list_roots,
            notified=self._notified,
        )
        self.link = Link(config, answering)
        self.kept = KeptLink(self.link, config.start_timeout)

    async def _elicit(
        self, context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult | ErrorData:
        del context
        self.has_asked = True
        if self.asker is None:
            return NO_CALL
        return await self.asker.elicit(params)

    async def _list_roots(self, context: ClientRequestContext) -> ListRootsResult:
        del context
        roots = self.link.config.roots or ()
        return ListRootsResult(roots=[McpRoot(uri=FileUrl(r.uri), name=r.name) for r in roots])

    async def _notified(self, message: IncomingMessage) -> None:
        tidings = tidings_in(message)
        if tidings is not None and self._heard is not None and not self.link.is_modern:
            self._heard(tidings)
        elif isinstance(message, ElicitCompleteNotification) and self.asker is not None:
            await self.asker.visited(message.params.elicitation_id)
        elif isinstance(message, Exception):
            logger.warning("the MCP server %s sent something that is not MCP", self._name)


class NotYet:
    """Holds a place among the connections while one is being opened."""

    async def elicit(self, params: ElicitRequestParams) -> ErrorData:
        del params
        return NO_CALL

    async def visited(self, elicitation_id: str) -> None:
        """Nobody has been sent anywhere yet."""


def declared(config: ServerConfig) -> Answering:
    """What a connection for one request declares; revision 2026-07-28 asks nothing on it."""

    async def elicit(context: ClientRequestContext, params: ElicitRequestParams) -> ErrorData:
        del context, params
        return ErrorData(code=INTERNAL_ERROR, message="Ask by input_required.")

    async def list_roots(context: ClientRequestContext) -> ErrorData:
        del context
        return ErrorData(code=INTERNAL_ERROR, message="Ask by input_required.")

    return Answering(elicit=elicit, list_roots=None if config.roots is None else list_roots)
