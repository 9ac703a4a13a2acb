"""Declaring less than the SDK would: it offers forms and URLs together, whatever is answered.

What is declared goes into the messages themselves, just before they are sent.
"""

import contextlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from mcp.shared.message import SessionMessage
from mcp_types import CLIENT_CAPABILITIES_META_KEY, JSONRPCRequest

from session_server.calls.streams import Outgoing, Streams


@contextlib.asynccontextmanager
async def narrowed(
    way: AbstractAsyncContextManager[Streams], capabilities: Mapping[str, Any]
) -> AsyncGenerator[Streams]:
    """The same streams; every request declares these capabilities and no others."""
    async with way as (read, write):
        yield read, _Declaring(write, capabilities)


class _Declaring(Outgoing):
    def __init__(self, stream: Any, capabilities: Mapping[str, Any]) -> None:
        super().__init__(stream)
        self._capabilities = dict(capabilities)

    def changed(self, item: SessionMessage) -> SessionMessage:
        message = item.message
        if isinstance(message, JSONRPCRequest) and message.params is not None:
            self._declare(message.method, message.params)
        return item

    def _declare(self, method: str, params: dict[str, Any]) -> None:
        """In the handshake of the 2025 era, or beside every request of the 2026 era."""
        if method == "initialize":
            params["capabilities"] = self._capabilities
        meta = params.get("_meta")
        if isinstance(meta, dict) and CLIENT_CAPABILITIES_META_KEY in meta:
            params["_meta"] = {**meta, CLIENT_CAPABILITIES_META_KEY: self._capabilities}
