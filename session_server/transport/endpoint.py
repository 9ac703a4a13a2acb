"""The WebSocket endpoint: takes the connection over where it can, and is plain ASGI elsewhere."""

import asyncio
import logging
from collections import deque

from starlette.websockets import WebSocket, WebSocketDisconnect

from session_server.host.channels.messages import BROKEN, Message, Outbox
from session_server.host.connection.protocol import Connection
from session_server.host.host import Host
from session_server.schemas.errors import CloseCode
from session_server.schemas.limits import FRAME_BYTES, OUTBOX_BYTES, OUTBOX_PAUSE_BYTES
from session_server.schemas.principals import Principal
from session_server.transport.outbox import TOO_SLOW
from session_server.transport.websocket_protocol import (
    CLOSE_SECONDS,
    NOT_TEXT,
    sink_protocol,
)

logger = logging.getLogger("session_server.transport")

TOO_BIG = f"a frame has at most {FRAME_BYTES} bytes"


async def serve(
    host: Host, principal: Principal, socket: WebSocket, subprotocol: str | None = None
) -> None:
    """Speaks AHP on this socket until it ends; over our own protocol that goes on after this."""
    await socket.accept(subprotocol)
    protocol = sink_protocol(socket.scope)
    if protocol is not None:
        connection = Connection(host, principal, protocol.take_over(host.turns))
        protocol.feed(connection)
        return
    outbox = QueueOutbox(socket)
    connection = Connection(host, principal, outbox)
    async with asyncio.TaskGroup() as tasks:
        writer = tasks.create_task(outbox.write())
        reader = tasks.create_task(_read(socket, connection, outbox))
        try:
            await outbox.over.wait()
        finally:
            connection.closed()
        reader.cancel()
        await asyncio.wait([writer], timeout=CLOSE_SECONDS)
        writer.cancel()


async def _read(socket: WebSocket, connection: Connection, outbox: "QueueOutbox") -> None:
    try:
        while not outbox.over.is_set():
            await outbox.room.wait()
            event = await socket.receive()
            if event["type"] == "websocket.disconnect":
                break
            text = event.get("text")
            if text is None:
                outbox.close(CloseCode.UNSUPPORTED_DATA, NOT_TEXT)
            elif len(data := text.encode()) > FRAME_BYTES:
                outbox.close(CloseCode.TOO_BIG, TOO_BIG)
            else:
                try:
                    connection.receive(data)
                except Exception:
                    logger.exception("a frame could not be dealt with")
                    outbox.close(CloseCode.INTERNAL_ERROR, BROKEN)
    except WebSocketDisconnect:
        pass
    outbox.drop()


class QueueOutbox(Outbox):
    """For servers that are not ours: a bounded queue and one task that writes from it.

    `over` is set as soon as the connection is about to end, or has ended. `room` is cleared while
    so much waits to be written that no more is read.
    """

    def __init__(self, socket: WebSocket) -> None:
        self.over = asyncio.Event()
        self.room = asyncio.Event()
        self.room.set()
        self.closed_with: int | None = None
        self._socket = socket
        self._queue: deque[bytes] = deque()
        self._size = 0
        self._wake = asyncio.Event()
        self._closing: tuple[int, str] | None = None

    def send(self, message: Message) -> None:
        if self.over.is_set():
            return
        if self._size > OUTBOX_BYTES:
            self._queue.clear()
            self.close(CloseCode.TOO_SLOW, TOO_SLOW)
            return
        self._queue.append(message.text)
        self._size += len(message.text)
        if self._size > OUTBOX_PAUSE_BYTES:
            self.room.clear()
        self._wake.set()

    def close(self, code: int, reason: str) -> None:
        """Says why, after what was sent before."""
        self._closing = self._closing or (code, reason)
        self.closed_with = self._closing[0]
        self.over.set()
        self._wake.set()

    def drop(self) -> None:
        """The socket is gone, and nothing can be written to it."""
        self._queue.clear()
        self.over.set()
        self._wake.set()

    async def write(self) -> None:
        try:
            while not self.over.is_set():
                await self._wake.wait()
                self._wake.clear()
                while self._queue:
                    text = self._queue.popleft()
                    await self._socket.send_text(text.decode())
                    self._size -= len(text)
                    if self._size <= OUTBOX_PAUSE_BYTES:
                        self.room.set()
            if self._closing is not None:
                await self._socket.close(*self._closing)
        except (WebSocketDisconnect, OSError, RuntimeError):
            self.drop()  # servers differ in how they say that nobody is there any more
