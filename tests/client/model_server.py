"""The model host on real sockets, so that a test can decide how connections end."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from session_server.schemas.codec import encode
from tests.client.model_host import ModelHost, ModelSocket


class LiveSocket(ModelSocket):
    """The host's end of a real connection: what is sent goes out by a task of its own."""

    def __init__(self, host: ModelHost, connection: ServerConnection) -> None:
        super().__init__(host)
        self.connection = connection
        self._queue: asyncio.Queue[bytes] = asyncio.Queue()

    def send(self, frame: Any) -> None:
        self._queue.put_nowait(encode(frame))

    async def write(self) -> None:
        while True:
            await self.connection.send(await self._queue.get(), text=True)


class SocketHost:
    """`statuses`: HTTP answers to the next upgrades; `is_mute`: takes connections, says nothing;
    `cuts`: that many frames that hold `cut_at` are not taken, and end their connection.
    """

    def __init__(self, model: ModelHost) -> None:
        self.model = model
        self.url = ""
        self.statuses: list[HTTPStatus] = []
        self.is_mute = False
        self.cut_at = ""
        self.cuts = 0
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.arrived = 0
        self.closings: asyncio.Queue[int | None] = asyncio.Queue()

    async def close(self, code: int, reason: str = "") -> None:
        for socket in tuple(self.model.sockets):
            assert isinstance(socket, LiveSocket)
            await socket.connection.close(code, reason)

    def check(self, connection: ServerConnection, request: Request) -> Response | None:
        self.headers.append(dict(request.headers.raw_items()))
        self.paths.append(request.path)
        if self.statuses:
            return connection.respond(self.statuses.pop(0), "")
        return None

    async def handle(self, connection: ServerConnection) -> None:
        self.arrived += 1
        if self.is_mute:
            await connection.wait_closed()
            return
        socket = LiveSocket(self.model, connection)
        writer = asyncio.create_task(socket.write())
        try:
            async for text in connection:
                assert isinstance(text, str)
                if self.cuts and self.cut_at in text:
                    self.cuts -= 1
                    return
                socket.receive(text.encode())
        except ConnectionClosed:
            pass
        finally:
            socket.close()
            writer.cancel()
            await asyncio.wait((writer,))
            self.closings.put_nowait(connection.close_code)


@asynccontextmanager
async def hosting(model: ModelHost) -> AsyncGenerator[SocketHost, None]:
    host = SocketHost(model)
    async with serve(host.handle, "127.0.0.1", 0, process_request=host.check) as server:
        port = server.sockets[0].getsockname()[1]
        host.url = f"http://127.0.0.1:{port}"
        yield host
