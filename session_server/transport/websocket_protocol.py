"""A uvicorn WebSocket protocol that hands whole text frames to a sink, past the ASGI queue.

An endpoint accepts the connection as usual and then takes it over. From there on no task and no
queue stands between the socket and the host: frames come in by a call, and all that was sent
during one turn of the event loop leaves in one write.
"""

import asyncio
import logging
from collections import deque
from typing import Any, Protocol

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Opcode
from websockets.protocol import State

from session_server.host.errors import CloseCode
from session_server.host.open_connections import AUTHENTICATED
from session_server.schemas.limits import FRAGMENTS_PER_MESSAGE
from session_server.transport.admission import Slot
from session_server.transport.outbox import FrameOutbox

logger = logging.getLogger("session_server.transport")

EXTENSION = "session-server.sink"
"""Under this name the ASGI scope's `extensions` hold the protocol itself."""

CLOSE_SECONDS = 5.0
"""How long a connection that ends may take to read its rest and say goodbye."""

STOP_SECONDS = 2.0
"""The same when the whole server stops."""

READ_BYTES = 8_192
"""What is parsed in one go: thousands of the smallest frames. Then it is someone else's turn."""

BYTES_AFTER_CLOSE = 65_536
"""So much is looked through for the answer to our goodbye; the rest is read and dropped."""

TOO_MANY_FRAGMENTS = f"a message comes in at most {FRAGMENTS_PER_MESSAGE} fragments"
NOT_TEXT = "binary frames are not AHP"
NOT_UTF8 = "text frames are UTF-8"
BROKEN = "something went wrong here; reconnect to resume"
RESTARTING = "the server stops; reconnect to resume"


class _Nowhere(asyncio.Queue[Any]):
    """Takes the events for an application that no longer listens."""

    def put_nowait(self, item: Any) -> None: ...


NOWHERE = _Nowhere()
NOBODY_WAITS = asyncio.Event()
"""Shared by all connections that were taken over, which have no use for their own."""


class Sink(Protocol):
    """`is_busy` while it cannot take the next frame; it sends something when it can again."""

    @property
    def is_busy(self) -> bool: ...

    def receive(self, text: bytes) -> None: ...

    def charge(self, messages: int, size: int) -> bool:
        """For frames that are no message: a ping, a pong, a fragment that another follows."""
        ...

    def closed(self) -> None: ...


class SinkProtocol(WebSocketsSansIOProtocol):
    outbox: FrameOutbox | None = None
    _sink: Sink
    _is_fed = False
    _slot: Slot | None = None

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._unread = bytearray()
        self._events: deque[Any] = deque()
        self._is_going_on = False
        self._bytes_after_close = 0

    def handle_connect(self, event: Any) -> None:
        super().handle_connect(event)
        if hasattr(self, "scope"):
            self.scope["extensions"][EXTENSION] = self  # type: ignore[assignment]

    async def send(self, message: Any) -> None:
        await super().send(message)
        if self.initial_response is not None and self.close_sent:
            self.handshake_complete = True  # a refusal in words is an answer, and no mishap

    async def receive(self) -> Any:
        """Only for an application that does not take over; it too gets what came early."""
        if self._unread and self.handshake_complete:
            data, self._unread = bytes(self._unread), bytearray()
            super().data_received(data)
        return await super().receive()

    def follow(self, slot: Slot, http_version: str) -> None:
        """The HTTP connection that this was: its place, and the version that its request had."""
        self._slot = slot
        if hasattr(self, "scope"):
            self.scope["extensions"][AUTHENTICATED] = slot.authenticated  # type: ignore[assignment]
            self.scope["http_version"] = http_version

    # Being taken over

    def take_over(self) -> FrameOutbox:
        """From now on messages go out through this, past ASGI."""
        self.outbox = FrameOutbox(self.transport.write, self.loop.call_soon, self.part)
        return self.outbox

    def feed(self, sink: Sink) -> None:
        """Gives every frame to the sink, until the connection ends or is about to."""
        self._sink = sink
        self._is_fed = True
        if self.disconnected or self.close_sent:
            self._end()
        else:
            self._go_on_soon()

    async def run_asgi(self) -> None:
        """As in uvicorn, but a connection that was taken over outlives the application's part in
        it. Most of what an idle connection would keep is that: its call chain, scope and headers.
        """
        try:
            await self.app(self.scope, self.receive, self.send)
        except ClientDisconnected:
            pass
        except BaseException:
            self.logger.exception("Exception in ASGI application")
            self.send_500_response()
        else:
            if self._is_fed:
                self._keep_little()
                return
        if self.close_timer is None:
            self.transport.close()

    def _keep_little(self) -> None:
        """Nobody waits at the queue or reads the request any more."""
        self.queue = NOWHERE
        self.writable = NOBODY_WAITS
        del self.scope, self.request, self.response

    # Coming in

    def data_received(self, data: bytes) -> None:
        if self.outbox is None:
            self._receive_before(data)
        elif self.read_paused:
            self._unread += data
        elif len(data) <= READ_BYTES:
            self._read(data)
        else:
            self._unread += data
            self._read_next()

    def _receive_before(self, data: bytes) -> None:
        """Whoever is not let in yet may have its request looked at, and nothing else."""
        if self.handshake_initiated and not self.handshake_complete:
            self._unread += data
            self._stop_reading()
        else:
            super().data_received(data)

    def _read(self, data: bytes) -> None:
        if self.close_sent:
            self._bytes_after_close += len(data)
            if self._bytes_after_close > BYTES_AFTER_CLOSE:
                data = b""
        self.conn.receive_data(data)
        self._events.extend(self.conn.events_received())
        self._handle_events()

    def _read_next(self) -> None:
        data = bytes(self._unread[:READ_BYTES])
        del self._unread[:READ_BYTES]
        self._read(data)

    def _handle_events(self) -> None:
        """What came before a broken frame still counts."""
        assert self.outbox is not None
        events = self._events
        while events:
            if (self.outbox.is_full or self._sink.is_busy) and not self.close_sent:
                self._stop_reading()
                self.outbox.wake = self._go_on
                return
            self._handle(events.popleft())
        if self.conn.parser_exc is not None:
            self._unread.clear()
            self.handle_parser_exception()
        if self._unread:
            self._stop_reading()
            self._go_on_soon()
        elif self.read_paused and not self.transport.is_closing():
            self.read_paused = False
            self.transport.resume_reading()

    def _stop_reading(self) -> None:
        if not self.read_paused:
            self.read_paused = True
            self.transport.pause_reading()

    def _go_on_soon(self) -> None:
        """After everyone else had a turn."""
        if not self._is_going_on:
            self._is_going_on = True
            self.loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        self._is_going_on = False
        if self.disconnected:
            return
        if self._events or not self._unread:
            self._handle_events()
        else:
            self._read_next()

    def _handle(self, frame: Any) -> None:
        opcode = frame.opcode
        if opcode is Opcode.TEXT:
            self.handle_text(frame)
        elif opcode is Opcode.CLOSE:
            self.handle_close(frame)
        elif opcode is Opcode.BINARY:
            self.handle_bytes(frame)
        elif opcode is Opcode.CONT:
            self.handle_cont(frame)
        elif opcode is Opcode.PONG:
            self._sink.charge(1, len(frame.data))
            self.handle_pong(frame)
        elif self._sink.charge(1, len(frame.data)):
            self.handle_ping()
        else:
            self.conn.data_to_send()  # the library's answers to pings, which are not sent

    def handle_text(self, event: Any) -> None:
        """A message in one frame, as nearly all are, need not be put together."""
        if event.fin and self.outbox is not None:
            self._take(bytes(event.data))
        else:
            super().handle_text(event)
            self._begin_message()

    def handle_bytes(self, event: Any) -> None:
        super().handle_bytes(event)
        if not event.fin:
            self._begin_message()

    def _begin_message(self) -> None:
        if self.outbox is not None:
            self._sink.charge(1, 0)

    def handle_cont(self, event: Any) -> None:
        if self.outbox is None:
            super().handle_cont(event)
        elif not self.close_sent:
            if not event.fin:
                self._sink.charge(1, 0)
            if len(self.frames) >= FRAGMENTS_PER_MESSAGE:
                self.frames = []
                self.part(CloseCode.TOO_BIG, TOO_MANY_FRAGMENTS)
            else:
                super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        if self.outbox is None:
            super().send_receive_event_to_app()
            return
        data, self.frames = b"".join(self.frames), []
        self._take(data if self.curr_msg_data_type == "text" else None)

    def _take(self, text: bytes | None) -> None:
        if self.close_sent:
            return
        if text is None:
            self.part(CloseCode.UNSUPPORTED_DATA, NOT_TEXT)
        elif not is_utf8(text):
            self.part(CloseCode.INVALID_DATA, NOT_UTF8)
        else:
            self._give(text)

    def _give(self, text: bytes) -> None:
        """A frame that the sink stumbles over costs its sender the connection, and nobody else."""
        try:
            self._sink.receive(text)
        except Exception:
            logger.exception("a frame could not be dealt with")
            self.part(CloseCode.INTERNAL_ERROR, BROKEN)

    def handle_ping(self) -> None:
        if self.outbox is not None and self.outbox.is_paused:
            self.conn.data_to_send()  # who does not read needs no answer
            return
        super().handle_ping()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self.outbox is not None:
            self.outbox.pause()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.outbox is not None:
            self.outbox.resume()

    # Coming to an end

    def part(self, code: int, reason: str) -> None:
        """Says why, and listens no longer than a grace for the other side to agree.

        It must be listened to: closing a socket with something unread resets it, and what was said
        last would be lost.
        """
        assert self.outbox is not None
        if self.close_sent or self.disconnected:
            return
        self.outbox.finish()
        self.outbox.closed_with = code
        self.close_sent = True
        if self.read_paused:
            self._go_on_soon()
        if self.conn.state is State.OPEN:
            self.conn.send_close(code, reason)
        self._write_out()
        self._let_go(CLOSE_SECONDS)

    def handle_close(self, event: Any) -> None:
        if self.outbox is None:
            super().handle_close(event)
            return
        self.outbox.finish()
        self.close_sent = True
        self._write_out()
        self.transport.close()
        self._let_go(CLOSE_SECONDS)

    def handle_parser_exception(self) -> None:
        """Frames that are none. The rest of them is still read, so that the reason gets through."""
        if self.outbox is None:
            super().handle_parser_exception()
            return
        if self.close_sent:
            return
        self.outbox.finish()
        self.close_sent = True
        self._write_out()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        else:
            self.transport.close()
        self._let_go(CLOSE_SECONDS)

    def eof_received(self) -> None:
        if self.outbox is not None:
            self.outbox.finish()
            self._let_go(CLOSE_SECONDS)

    def keepalive_timeout(self) -> None:
        if self.outbox is not None and self.read_paused and self._sink.is_busy:
            # Its answer may be there, but it is we who do not read.
            assert self.ping_timeout is not None
            self.pong_timer = self.loop.call_later(self.ping_timeout, self.keepalive_timeout)
            return
        super().keepalive_timeout()
        if self.outbox is not None:
            self.outbox.drop()
            self._let_go(CLOSE_SECONDS)

    def shutdown(self) -> None:
        if self.outbox is None:
            super().shutdown()
            return
        self.stop_keepalive()
        self.part(CloseCode.RESTARTING, RESTARTING)
        self._let_go(STOP_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._slot is not None:
            self._slot.leave()
        self._events.clear()
        self._unread.clear()
        if self.outbox is not None:
            self.outbox.drop()
            self._end()

    def _write_out(self) -> None:
        """What the library has to say."""
        data = b"".join(self.conn.data_to_send())
        if data:
            self.transport.write(data)

    def _let_go(self, seconds: float) -> None:
        """However the connection ends, it does so within this time."""
        self._end()
        timer = self.close_timer
        if self.disconnected or (timer is not None and timer.when() <= self.loop.time() + seconds):
            return
        if timer is not None:
            timer.cancel()
        self.close_timer = self.loop.call_later(seconds, self.transport.abort)

    def _end(self) -> None:
        """The sink is told once, and never from within a call of its own."""
        if self._is_fed:
            self._is_fed = False
            self.loop.call_soon(self._sink.closed)


def is_utf8(text: bytes) -> bool:
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def sink_protocol(scope: Any) -> SinkProtocol | None:
    """The protocol under this connection, if it is ours."""
    found = scope.get("extensions", {}).get(EXTENSION)
    return found if isinstance(found, SinkProtocol) else None
