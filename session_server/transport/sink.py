"""A uvicorn WebSocket protocol that hands whole text frames to a sink, past the ASGI queue.

An endpoint accepts the connection as usual and then takes it over. From there on no task and no
queue stands between the socket and the host: frames come in by a call, and all that was sent
during one turn of the event loop leaves in one write.
"""

import asyncio
from typing import Any, Protocol

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame, Opcode

from session_server.host.delivery import Message
from session_server.host.errors import CloseCode
from session_server.schemas.limits import OUTBOX_BYTES

EXTENSION = "session-server.sink"
"""Under this name the ASGI scope's `extensions` hold the protocol itself."""


class Sink(Protocol):
    def receive(self, text: bytes) -> None: ...

    def closed(self) -> None: ...


class SinkProtocol(WebSocketsSansIOProtocol):
    sink: Sink | None = None
    outbox: "FrameOutbox | None" = None
    _ended: asyncio.Future[None]

    def handle_connect(self, event: Any) -> None:
        super().handle_connect(event)
        if hasattr(self, "scope"):
            self.scope["extensions"][EXTENSION] = self  # type: ignore[assignment]

    def take_over(self) -> "FrameOutbox":
        """From now on messages go out through this, past ASGI."""
        self.outbox = FrameOutbox(self)
        return self.outbox

    async def feed(self, sink: Sink) -> None:
        """Gives every frame to the sink, until the connection ends."""
        self.sink = sink
        self._ended = self.loop.create_future()
        while not self.queue.empty():
            event = self.queue.get_nowait()
            if event["type"] == "websocket.receive":
                self._take(event.get("text"))
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()
        try:
            if not self.disconnected:
                await self._ended
        finally:
            self.sink = None
            sink.closed()

    def send_receive_event_to_app(self) -> None:
        if self.sink is None:
            super().send_receive_event_to_app()
            return
        data, self.frames = b"".join(self.frames), []
        if self.close_sent:
            return
        if self.curr_msg_data_type == "text":
            self.sink.receive(data)
        else:
            self._take(None)

    def _take(self, text: str | None) -> None:
        assert self.sink is not None
        assert self.outbox is not None
        if text is None:
            self.outbox.close(CloseCode.UNSUPPORTED_DATA, "binary frames are not AHP")
        else:
            self.sink.receive(text.encode())

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.sink is not None and not self._ended.done():
            self._ended.set_result(None)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self.outbox is not None:
            self.outbox.pause()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.outbox is not None:
            self.outbox.resume()


class FrameOutbox:
    """`send` never waits. Who reads too slowly is let go, and may come back and resume."""

    def __init__(self, protocol: SinkProtocol) -> None:
        self._protocol = protocol
        self._write = protocol.transport.write
        self._call_soon = protocol.loop.call_soon
        self._ready: list[bytes] = []
        self._backlog = 0
        self._paused = False
        self._scheduled = False
        self._open = True

    def send(self, message: Message) -> None:
        framed = message.framed
        if framed is None:
            framed = message.framed = text_frame(message.text)
        self._ready.append(framed)
        if not self._scheduled:
            if self._paused:
                self._keep(len(framed))
            else:
                self._scheduled = True
                self._call_soon(self._flush)

    def _keep(self, size: int) -> None:
        self._backlog += size
        if self._backlog > OUTBOX_BYTES and self._open:
            self._ready.clear()
            self.close(CloseCode.TOO_SLOW, "reads too slowly; reconnect to resume")

    def _flush(self) -> None:
        self._scheduled = False
        frames, self._ready = self._ready, []
        if self._open and frames:
            self._write(frames[0] if len(frames) == 1 else b"".join(frames))

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused, self._backlog = False, 0
        self._flush()

    def close(self, code: int, reason: str) -> None:
        """Says why, and does not wait for the other side to agree."""
        protocol = self._protocol
        if not self._open or protocol.close_sent or protocol.disconnected:
            return
        self._flush()
        self._open = False
        protocol.close_sent = True
        protocol.conn.send_close(code, reason)
        self._write(b"".join(protocol.conn.data_to_send()))
        protocol.transport.close()


def text_frame(text: bytes) -> bytes:
    return Frame(Opcode.TEXT, text).serialize(mask=False, extensions=[])


def sink_protocol(scope: Any) -> SinkProtocol | None:
    """The protocol under this connection, if it is ours."""
    found = scope.get("extensions", {}).get(EXTENSION)
    return found if isinstance(found, SinkProtocol) else None
