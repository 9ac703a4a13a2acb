"""A proxy on loopback between a log and its server, which can cut their connections."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress


class CuttingProxy:
    """`cut_at` is asked for every piece of a request or an answer: cut, or pass it on."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Future[None]] = set()
        self.cut_at: Callable[[str, bytes], bool] = lambda _kind, _piece: False
        self.is_refusing = False
        self.cuts = self.passed = 0
        self.port = 0

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """In a task of its own: one that asyncio makes is reported when the test ends before it."""
        task = asyncio.ensure_future(self._connected(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = {writer}
        try:
            if self.is_refusing:
                return
            there, back = await asyncio.open_connection("127.0.0.1", self._target)
            ends.add(back)
            self._writers |= ends
            await asyncio.gather(
                self._pass(reader, back, "request"),
                self._pass(there, writer, "answer"),
            )
        except OSError:
            return
        finally:
            self._writers -= ends
            for end in ends:
                end.transport.abort()

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
    server = await asyncio.start_server(proxy._accepted, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        for task in proxy._tasks:
            task.cancel()
        await asyncio.gather(*proxy._tasks, return_exceptions=True)
