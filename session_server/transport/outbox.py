"""Frames on their way to one socket: the first of a turn of the loop at once, the rest together.

A protocol (see `websocket_protocol`) makes it and tells it when the socket is full; the host only
sends.
"""

from collections.abc import Callable

from session_server.host.channels.messages import Burst, LoopTurns, Message
from session_server.schemas.errors import CloseCode
from session_server.schemas.limits import OUTBOX_BYTES, OUTBOX_PAUSE_BYTES

TOO_SLOW = "reads too slowly; reconnect to resume"


class FrameOutbox:
    """`send` never waits. Who reads too slowly is let go, and may come back and resume.

    `is_full` asks the protocol to hand over no more frames for now, so that a client that asks for
    much waits for what it asked for before. `wake` is called once there is room again.
    """

    def __init__(
        self,
        write: Callable[[bytes], None],
        turns: LoopTurns,
        close: Callable[[int, str], None],
    ) -> None:
        self._write = write
        self._turns = turns
        self._close = close
        self._written_in = -1
        """The turn in which something was written at once."""
        self._kept: list[bytes] = []
        """What else was sent in that turn, or since the socket is full."""
        self._size = 0
        self._is_over = False
        self.is_full = False
        self.is_paused = False
        self.wake: Callable[[], None] | None = None
        self.closed_with: int | None = None

    def send(self, message: Message | Burst) -> None:
        framed, turn = message.framed or _framed(message), self._turns.number
        if self._kept or self.is_paused or self._written_in == turn:
            self._keep(framed)
            return
        self._written_in = turn
        self._write(framed)
        if self.wake is not None or not self._turns.is_ending:
            self._turns.end_soon(self)

    send_all = send

    def _keep(self, framed: bytes) -> None:
        """At most one message goes beyond the bound: one that is bigger alone must get through."""
        if self._is_over:
            return
        if self._size > OUTBOX_BYTES:
            if self.is_paused:
                self._forget()
                self.close(CloseCode.TOO_SLOW, TOO_SLOW)
                return
            self._write_kept()  # the rest of this turn may bring as much again
        if not self._kept and not self.is_paused:
            self._turns.end_soon(self)
        self._kept.append(framed)
        self._size += len(framed)
        self.is_full = self._size > OUTBOX_PAUSE_BYTES

    def flush(self) -> None:
        """At the end of a turn."""
        if not self.is_paused:
            self._write_kept()
        if self.wake is not None and not self.is_full:
            self._has_room()

    def _write_kept(self) -> None:
        kept = self._kept
        if kept:
            self._forget()
            self._write(kept[0] if len(kept) == 1 else b"".join(kept))

    def _has_room(self) -> None:
        wake, self.wake = self.wake, None
        if wake is not None:
            wake()

    def _forget(self) -> None:
        self._kept = []
        self._size = 0
        self.is_full = False

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False
        self._write_kept()
        self._has_room()

    def close(self, code: int, reason: str) -> None:
        self._close(code, reason)

    def finish(self) -> None:
        """What was sent so far goes out; what comes later goes nowhere."""
        self._write_kept()
        self._is_over = True
        self._write = _write_nowhere

    def drop(self) -> None:
        """The socket is gone, and nothing can be written to it."""
        self._is_over = True
        self._forget()
        self.wake = None
        self._write, self._close = _write_nowhere, _close_nothing  # its protocol can be freed


def _write_nowhere(_: bytes) -> None: ...


def _close_nothing(_: int, __: str) -> None: ...


def _framed(message: Message | Burst) -> bytes:
    """Made when it is first sent over a WebSocket, and kept for all others."""
    if isinstance(message, Burst):
        framed = b"".join([text_frame(one.text) for one in message.messages])
    else:
        framed = text_frame(message.text)
    message.framed = framed
    return framed


def text_frame(text: bytes) -> bytes:
    """A server's frame: one text message, not masked (RFC 6455, 5.2)."""
    size = len(text)
    if size < 126:
        return b"\x81%c%b" % (size, text)
    if size < 65_536:
        return b"\x81\x7e%b%b" % (size.to_bytes(2), text)
    return b"\x81\x7f%b%b" % (size.to_bytes(8), text)
