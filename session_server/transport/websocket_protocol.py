"""A uvicorn WebSocket protocol that hands whole text frames to a sink, past the ASGI queue.

An endpoint accepts the connection as usual and then takes it over. From there on no task and no
queue stands between the socket and the host: frames come in by a call, and what is sent leaves at
once or, after the first message of a turn of the event loop, with all others of that turn.
"""

import asyncio
import logging
from typing import Any, Protocol

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Opcode
from websockets.protocol import State

from session_server.host.channels.messages import BROKEN, LoopTurns
from session_server.host.clients.open_connections import AUTHENTICATED
from session_server.schemas.errors import CloseCode
from session_server.schemas.limits import FRAGMENTS_PER_MESSAGE, FRAME_BYTES
from session_server.transport.admission import Slot
from session_server.transport.outbox import FrameOutbox

try:
    from websockets.speedups import apply_mask
except ImportError:  # where websockets has no compiled part
    from websockets.utils import apply_mask

logger = logging.getLogger("session_server.transport")

EXTENSION = "session-server.sink"
"""Under this name the ASGI scope's `extensions` hold the protocol itself."""

CLOSE_SECONDS = 5.0
"""How long a connection that ends may take to read the rest and to send its close frame."""

STOP_SECONDS = 2.0
"""The same when the whole server stops."""

UNREAD_SECONDS = 0.01
"""How long after a deadline something still counts that may have come before: if this process was
stopped for a while, timers run before what has arrived meanwhile is read.
"""

READ_BYTES = 8_192
"""What is parsed in one go: thousands of the smallest frames. Then it is someone else's turn."""

BYTES_AFTER_CLOSE = 65_536
"""So much is looked through for the answer to our close frame; the rest is read and dropped."""

TEXT_FRAME = 0x81
"""The first byte of a text message in one frame."""

MASKED = 0x80
"""In the second byte: every frame of a client is masked. The rest of that byte is its length."""

REGULAR = frozenset({0x00, 0x01, 0x02, 0x08, 0x09, 0x0A})
"""First bytes of frames without extensions, but for the mark of a message's last frame."""

TOO_MANY_FRAGMENTS = f"a message comes in at most {FRAGMENTS_PER_MESSAGE} fragments"
NOT_TEXT = "binary frames are not AHP"
NOT_UTF8 = "text frames are UTF-8"
RESTARTING = "the server stops; reconnect to resume"


class _Nowhere(asyncio.Queue[Any]):
    """Takes the events for an application that no longer listens."""

    def put_nowait(self, item: Any) -> None: ...


NOWHERE = _Nowhere()
NOBODY_WAITS = asyncio.Event()
"""Shared by all connections that were taken over, which have no use for their own."""


class Sink(Protocol):
    """`is_busy` while it cannot take the next frame. When it can again it must send something: that
    is what resumes reading (`FrameOutbox.flush`).
    """

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
        self._is_going_on = False
        self._is_irregular = False
        self._bytes_after_close = 0

    def handle_connect(self, event: Any) -> None:
        super().handle_connect(event)
        if hasattr(self, "scope"):
            self.scope["extensions"][EXTENSION] = self  # type: ignore[assignment]

    async def send(self, message: Any) -> None:
        await super().send(message)
        if self.initial_response is not None and self.close_sent:
            self.handshake_complete = True  # a refusal with a body is an answer, not a failure

    async def receive(self) -> Any:
        """Only for an application that does not take over; it too gets what came early."""
        if self._unread and self.handshake_complete:
            data, self._unread = bytes(self._unread), bytearray()
            super().data_received(data)
        return await super().receive()

    def inherit(self, slot: Slot, http_version: str) -> None:
        """The HTTP connection that this was: its place, and the version that its request had."""
        self._slot = slot
        if hasattr(self, "scope"):
            self.scope["extensions"][AUTHENTICATED] = slot.authenticated  # type: ignore[assignment]
            self.scope["http_version"] = http_version

    # Being taken over

    def take_over(self, turns: LoopTurns) -> FrameOutbox:
        """From now on messages go out through this, past ASGI."""
        self.outbox = FrameOutbox(self.transport.write, turns, self.close)
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
        elif self.read_paused or self._unread:
            self._unread += data
            if not self.read_paused:
                self._read_unread()
        else:
            read = self._read(data)
            if read < len(data):
                self._unread += memoryview(data)[read:]

    def _receive_before(self, data: bytes) -> None:
        """Before the connection is accepted, only its request is parsed."""
        if self.handshake_initiated and not self.handshake_complete:
            self._unread += data
            self._stop_reading()
        else:
            super().data_received(data)

    def _read(self, data: bytes | bytearray) -> int:
        """Handles the whole frames at the start of the data; returns where it stopped.

        A text message in one frame, as nearly all are, is cut out here. Every other frame goes
        through the library, and everything once there was a frame that it will refuse.
        """
        outbox, sink = self.outbox, self._sink
        assert outbox is not None
        at, size = 0, len(data)
        while at < size:
            if (outbox.is_full or sink.is_busy) and not self.close_sent:
                self._stop_reading()
                outbox.wake = self._go_on
                return at
            if at >= READ_BYTES:
                self._stop_reading()
                self._go_on_soon()
                return at
            head, end = self._frame_at(data, at)
            if end > size:
                break
            if self.close_sent:
                self._bytes_after_close += end - at
                if self._bytes_after_close > BYTES_AFTER_CLOSE:
                    at = size
                    break
            if data[at] == TEXT_FRAME and head and self.conn.current_size is None:
                text = at + head
                self._receive_text(apply_mask(data[text:end], data[text - 4 : text]))
            else:
                self._read_by_library(bytes(data[at:end]))
            at = end
        if self.read_paused and not self.transport.is_closing():
            self.read_paused = False
            self.transport.resume_reading()
        return at

    def _frame_at(self, data: bytes | bytearray, at: int) -> tuple[int, int]:
        """The size of a frame's header, and where the frame ends.

        Without a header (0) it is for the library alone, which ends the connection because of it.
        """
        size = len(data)
        if self._is_irregular or data[at] & 0x7F not in REGULAR:
            self._is_irregular = True
            return 0, size
        if size - at < 2:
            return 0, size + 1
        length, head = data[at + 1] - MASKED, 6
        if length < 0:
            self._is_irregular = True
            return 0, size
        if length > 125:
            head = 8 if length == 126 else 14
            if size - at < head - 4:
                return 0, size + 1
            length = int.from_bytes(data[at + 2 : at + head - 4])
            # As the library counts: the fragments of a message together, before they are there.
            if length > FRAME_BYTES - (self.conn.current_size or 0):
                self._is_irregular = True
                return 0, size
        return head, at + head + length

    def _read_by_library(self, data: bytes) -> None:
        """What came before a broken frame still counts."""
        self.conn.receive_data(data)
        for frame in self.conn.events_received():
            self._handle(frame)
        if self.conn.parser_exc is not None:
            self.handle_parser_exception()

    def _read_unread(self) -> None:
        read = self._read(self._unread)
        del self._unread[:read]

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
        if not self.disconnected:
            self._read_unread()

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
        super().handle_text(event)
        if not event.fin:
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
                self.close(CloseCode.TOO_BIG, TOO_MANY_FRAGMENTS)
            else:
                super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        if self.outbox is None:
            super().send_receive_event_to_app()
            return
        data, self.frames = b"".join(self.frames), []
        if self.curr_msg_data_type == "text":
            self._receive_text(data)
        elif not self.close_sent:
            self.close(CloseCode.UNSUPPORTED_DATA, NOT_TEXT)

    def _receive_text(self, text: bytes) -> None:
        """A message that cannot be handled costs its sender the connection, and nobody else."""
        if self.close_sent:
            return
        if not text.isascii() and not is_utf8(text):
            self.close(CloseCode.INVALID_DATA, NOT_UTF8)
            return
        try:
            self._sink.receive(text)
        except Exception:
            logger.exception("a frame could not be dealt with")
            self.close(CloseCode.INTERNAL_ERROR, BROKEN)

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

    def close(self, code: int, reason: str) -> None:
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
        self.pong_timer = self.loop.call_later(UNREAD_SECONDS, self._close_without_pong)

    def _close_without_pong(self) -> None:
        if self._is_going_on:  # it may be among what is here and not parsed yet
            self.keepalive_timeout()
            return
        if self.outbox is not None and self.read_paused and self._sink.is_busy:
            # Its answer may be there, but it is we who do not read.
            assert self.ping_timeout is not None
            self.pong_timer = self.loop.call_later(self.ping_timeout, self.keepalive_timeout)
            return
        super().keepalive_timeout()  # closes
        if self.outbox is not None:
            self.outbox.drop()
            self._let_go(CLOSE_SECONDS)

    def shutdown(self) -> None:
        if self.outbox is None:
            super().shutdown()
            return
        self.stop_keepalive()
        self.close(CloseCode.RESTARTING, RESTARTING)
        self._let_go(STOP_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self._slot is not None:
            self._slot.leave()
        self._unread.clear()
        if self.outbox is not None:
            self.outbox.drop()
            self._end()
            self._break_cycles()

    def _break_cycles(self) -> None:
        """So that all of it is freed now, with any large message that it has half of: the garbage
        collector rarely comes to what has lived for a while.
        """
        self.frames = []
        self.conn.parser.close()

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
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def sink_protocol(scope: Any) -> SinkProtocol | None:
    """The protocol under this connection, if it is ours."""
    found = scope.get("extensions", {}).get(EXTENSION)
    return found if isinstance(found, SinkProtocol) else None
