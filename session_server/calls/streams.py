"""What streams are made of that do something to each message: what the SDK cannot be told to do.

Each of `watching`, `completing`, `credentials`, `numbering` and `narrowing` puts one of these
around a transport.
"""

from types import TracebackType
from typing import Any, Self

from mcp.shared.message import SessionMessage

Streams = tuple[Any, Any]


class Passing:
    """A stream that is another one."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

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


class Outgoing(Passing):
    async def send(self, item: SessionMessage, /) -> None:
        await self._stream.send(self.changed(item))

    def changed(self, item: SessionMessage) -> SessionMessage:
        return item


class Incoming(Passing):
    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        return self.changed(await self._stream.receive())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        return self.changed(await self._stream.__anext__())

    def changed(self, item: Any) -> Any:
        return item
