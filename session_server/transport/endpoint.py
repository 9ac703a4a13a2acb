"""The WebSocket endpoint: takes the connection over where it can, and is plain ASGI elsewhere."""

import asyncio
from collections import deque

from starlette.websockets import WebSocket, WebSocketDisconnect

from session_server.host.connection import Connection
from session_server.host.delivery import Message
from session_server.host.errors import CloseCode
from session_server.host.host import Host
from session_server.schemas.limits import OUTBOX_BYTES
from session_server.schemas.principals import Principal
from session_server.transport.sink import sink_protocol


async def serve(host: Host, principal: Principal, socket: WebSocket) -> None:
    """Speaks AHP on this socket until it ends."""
    await socket.accept()
    protocol = sink_protocol(socket.scope)
    if protocol is not None:
        connection = Connection(host, principal, protocol.take_over())
        await protocol.feed(connection)
        return
    outbox = QueueOutbox(socket)
    connection = Connection(host, principal, outbox)
    try:
        async with asyncio.TaskGroup() as tasks:
            writer = tasks.create_task(outbox.write())
            await _read(socket, connection, outbox)
            writer.cancel()
    finally:
        connection.closed()


async def _read(socket: WebSocket, connection: Connection, outbox: "QueueOutbox") -> None:
    try:
        while True:
            event = await socket.receive()
            if event["type"] == "websocket.disconnect":
                return
            text = event.get("text")
            if text is None:
                outbox.close(CloseCode.UNSUPPORTED_DATA, "binary frames are not AHP")
            else:
                connection.receive(text.encode())
    except WebSocketDisconnect:
        return


class QueueOutbox:
    """For servers that are not ours: a bounded queue and one task that writes from it."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket
        self._queue: deque[bytes] = deque()
        self._size = 0
        self._wake = asyncio.Event()
        self._closing: tuple[int, str] | None = None

    def send(self, message: Message) -> None:
        if self._closing is not None:
            return
        self._queue.append(message.text)
        self._size += len(message.text)
        if self._size > OUTBOX_BYTES:
            self._queue.clear()
            self.close(CloseCode.TOO_SLOW, "reads too slowly; reconnect to resume")
        self._wake.set()

    def close(self, code: int, reason: str) -> None:
        self._closing = self._closing or (code, reason)
        self._wake.set()

    async def write(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._queue:
                text = self._queue.popleft()
                self._size -= len(text)
                await self._socket.send_text(text.decode())
            if self._closing is not None:
                await self._socket.close(*self._closing)
                return
