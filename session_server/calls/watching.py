"""Noticing that the other side has ended, and the failpoints of every message of a call."""

import contextlib
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any

from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse

from session_server.calls.failpoints import hit
from session_server.calls.streams import Incoming, Outgoing, Streams

METHODS = ("tools/call", "prompts/get", "resources/read", "elicitation/create")


@contextlib.asynccontextmanager
async def watched(
    way: AbstractAsyncContextManager[Streams], ended: Callable[[], None]
) -> AsyncGenerator[Streams]:
    """The same streams; `ended` is called when nothing more can come from them."""
    async with way as (read, write):
        watch = _Watch()
        yield _Incoming(read, watch, ended), _Outgoing(write, watch)


class _Watch:
    """Which messages belong to calls: the failpoints are for these."""

    def __init__(self) -> None:
        self._asked: set[Any] = set()
        self._answering: set[Any] = set()

    def is_outgoing(self, item: SessionMessage) -> bool:
        message = item.message
        if isinstance(message, JSONRPCRequest) and message.method in METHODS:
            self._asked.add(message.id)
            return True
        return self._is_answer(message, self._answering)

    def is_incoming(self, item: SessionMessage | Exception) -> bool:
        message = item.message if isinstance(item, SessionMessage) else None
        if isinstance(message, JSONRPCRequest) and message.method in METHODS:
            self._answering.add(message.id)
            return True
        return self._is_answer(message, self._asked)

    def _is_answer(self, message: Any, to: set[Any]) -> bool:
        if not isinstance(message, JSONRPCResponse | JSONRPCError) or message.id not in to:
            return False
        to.discard(message.id)
        return True


class _Incoming(Incoming):
    """Tells when it ends."""

    def __init__(self, stream: Any, watch: _Watch, ended: Callable[[], None]) -> None:
        super().__init__(stream)
        self._watch = watch
        self._ended = ended

    async def __anext__(self) -> Any:
        try:
            return await super().__anext__()
        except StopAsyncIteration:
            self._ended()
            raise

    def changed(self, item: Any) -> Any:
        if self._watch.is_incoming(item):
            hit("mcp.receive")
        return item

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        self._ended()
        return await super().__aexit__(kind, error, trace)


class _Outgoing(Outgoing):
    def __init__(self, stream: Any, watch: _Watch) -> None:
        super().__init__(stream)
        self._watch = watch

    async def send(self, item: SessionMessage, /) -> None:
        is_told = self._watch.is_outgoing(item)
        if is_told:
            hit("mcp.send")
        await super().send(item)
        if is_told:
            hit("mcp.sent")
