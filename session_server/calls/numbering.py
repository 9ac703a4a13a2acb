"""Ids of requests that no other connection uses: a retry may go out on a new one.

The SDK counts from 1 on every connection, and MCP wants a new id for every retry.
"""

import contextlib
import uuid
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from typing import Any

from mcp.shared.message import SessionMessage
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types import (
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

from session_server.calls.streams import Incoming, Outgoing, Streams

CANCELLED = "notifications/cancelled"


@contextlib.asynccontextmanager
async def numbered(way: AbstractAsyncContextManager[Streams]) -> AsyncGenerator[Streams]:
    prefix = f"{uuid.uuid4().hex[:12]}-"
    async with way as (read, write):
        yield _Answers(read, prefix), _Requests(write, prefix)


class _Requests(Outgoing):
    def __init__(self, stream: Any, prefix: str) -> None:
        super().__init__(stream)
        self._prefix = prefix

    def changed(self, item: SessionMessage) -> SessionMessage:
        message = item.message
        if isinstance(message, JSONRPCRequest):
            message.id = f"{self._prefix}{message.id}"
        elif isinstance(message, JSONRPCNotification) and message.method == CANCELLED:
            told = message.params or {}
            message.params = {**told, "requestId": f"{self._prefix}{told.get('requestId')}"}
        return item


class _Answers(Incoming):
    def __init__(self, stream: Any, prefix: str) -> None:
        super().__init__(stream)
        self._prefix = prefix

    def changed(self, item: Any) -> Any:
        message = item.message if isinstance(item, SessionMessage) else None
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            message.id = self._plain(message.id)
        if isinstance(message, JSONRPCResponse):
            message.result = self._with_plain_subscription(message.result)
        elif isinstance(message, JSONRPCNotification) and message.params is not None:
            message.params = self._with_plain_subscription(message.params)
        return item

    def _with_plain_subscription(self, told: dict[str, Any]) -> dict[str, Any]:
        """A subscription is named by the id of the request that listens."""
        meta = told.get("_meta")
        if not isinstance(meta, dict) or SUBSCRIPTION_ID_META_KEY not in meta:
            return told
        plain = self._plain(meta[SUBSCRIPTION_ID_META_KEY])
        return {**told, "_meta": {**meta, SUBSCRIPTION_ID_META_KEY: plain}}

    def _plain(self, request_id: Any) -> RequestId:
        number = str(request_id).removeprefix(self._prefix)
        return int(number) if number.isdecimal() else number
