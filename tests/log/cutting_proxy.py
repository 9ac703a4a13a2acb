"""A proxy on loopback between a log and its server, which can cut their connections."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress


class CuttingProxy:
    """`cut_at` is asked for every piece of a request or an answer: cut, or pass it on."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._writers: set[asyncio.StreamWriter] = set()
        self.cut_at: Callable[[str, bytes], bool] = lambda _kind, _piece: False
        self.is_refusing = False
        self.cuts = self.passed = 0
        self.port = 0

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_refusing:
            writer.transport.abort()
            return
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, back}
        try:
            await asyncio.gather(
                self._pass(reader, back, "request"),
                self._pass(there, writer, "answer"),
            )
        finally:
            self._writers -= {writer, back}
            writer.transport.abort()
            back.transport.abort()

    async def _pass(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        kind: str,
    ) -> None:
        with suppress(OSError):
            while piece := await reader.read(65_536):
                if self.cut_at(kind, piece):
                    self.cuts += 1
                    self.cut()
                    return
                writer.write(piece)
                await writer.drain()
                self.passed += 1
        writer.transport.abort()

    def cut(self) -> None:
        """All connections, at once and without a goodbye."""
        for writer in tuple(self._writers):
            writer.transport.abort()


@asynccontextmanager
async def cutting(target: int) -> AsyncIterator[CuttingProxy]:
    proxy = CuttingProxy(target)
    server = await asyncio.start_server(proxy._connected, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        proxy.cut()
