"""Declaring less than the SDK would: it offers forms and URLs together, whatever is answered.

What is declared goes into the messages themselves, just before they are sent.
"""

import contextlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Self

from mcp.shared.message import SessionMessage
from mcp_types import CLIENT_CAPABILITIES_META_KEY, JSONRPCRequest

Streams = tuple[Any, Any]


@contextlib.asynccontextmanager
async def narrowed(
    way: AbstractAsyncContextManager[Streams], capabilities: Mapping[str, Any]
) -> AsyncGenerator[Streams]:
    """The same streams; every request declares these capabilities and no others."""
    async with way as (read, write):
        yield read, _Declaring(write, dict(capabilities))


class _Declaring:
    def __init__(self, stream: Any, capabilities: dict[str, Any]) -> None:
        self._stream = stream
        self._capabilities = capabilities

    async def send(self, item: SessionMessage, /) -> None:
        message = item.message
        if isinstance(message, JSONRPCRequest) and message.params is not None:
            self._declare(message.method, message.params)
        await self._stream.send(item)

    def _declare(self, method: str, params: dict[str, Any]) -> None:
        """In the handshake of the 2025 era, or beside every request of the 2026 era."""
        if method == "initialize":
            params["capabilities"] = self._capabilities
        meta = params.get("_meta")
        if isinstance(meta, dict) and CLIENT_CAPABILITIES_META_KEY in meta:
            params["_meta"] = {**meta, CLIENT_CAPABILITIES_META_KEY: self._capabilities}

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        result: bool | None = await self._stream.__aexit__(kind, error, trace)
        return result
