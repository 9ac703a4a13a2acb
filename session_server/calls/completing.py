"""A result that does not name its type is complete: MCP says so, but the SDK refuses it."""

import contextlib
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from typing import Any

from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCResponse

from session_server.calls.streams import Incoming, Streams

COMPLETE = {"resultType": "complete"}


@contextlib.asynccontextmanager
async def completing(way: AbstractAsyncContextManager[Streams]) -> AsyncGenerator[Streams]:
    """On a connection of the 2025 era it is dropped again."""
    async with way as (read, write):
        yield _Completing(read), write


class _Completing(Incoming):
    def changed(self, item: Any) -> Any:
        message = item.message if isinstance(item, SessionMessage) else None
        if isinstance(message, JSONRPCResponse):
            message.result = COMPLETE | message.result
        return item
