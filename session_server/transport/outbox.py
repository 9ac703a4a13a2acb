"""Frames on their way to one socket: all that was sent during a turn of the loop, in one write.

A protocol (see `sink`) makes it and tells it when the socket is full; the host only sends.
"""

from collections.abc import Callable

from websockets.frames import Frame, Opcode

from session_server.host.delivery import Burst, Message
from session_server.host.errors import CloseCode
from session_server.schemas.limits import OUTBOX_BYTES, OUTBOX_PAUSE_BYTES

TOO_SLOW = "reads too slowly; reconnect to resume"


class FrameOutbox:
    """`send` never waits. Who reads too slowly is let go, and may come back and resume.

    `is_full` asks the protocol to hand over no more frames for now, so that whoever asks for much
    waits for what it asked for before. `wake` is called once there is room again.
    """

    def __init__(
        self,
        write: Callable[[bytes], None],
        soon: Callable[[Callable[[], None]], object],
        part: Callable[[int, str], None],
    ) -> None:
        self._write = write
        self._soon = soon
        self._part = part
        self._ready: list[bytes] = []
        self._size = 0
        self._scheduled = False
        self._is_over = False
        self.is_paused = False
        self.wake: Callable[[], None] | None = None
        self.closed_with: int | None = None

    @property
    def is_full(self) -> bool:
        return self._size > OUTBOX_PAUSE_BYTES

    def send(self, message: Message) -> None:
        framed = message.framed
        if framed is None:
            framed = message.framed = text_frame(message.text)
        self._ready.append(framed)
        self._size += len(framed)
        if not self._scheduled or self._size > OUTBOX_BYTES:
            self._schedule(len(framed))

    def send_all(self, burst: Burst) -> None:
        framed = burst.framed
        if framed is None:
            framed = burst.framed = b"".join(text_frame(m.text) for m in burst.messages)
        self._ready.append(framed)
        self._size += len(framed)
        if not self._scheduled or self._size > OUTBOX_BYTES:
            self._schedule(len(framed))

    def _schedule(self, size: int) -> None:
        if self._is_over:
            self._forget()
        elif self.is_paused:
            self._keep(size)
        elif self._size > OUTBOX_BYTES:
            self._write_ready()  # the rest of this turn may bring as much again
        if not self._scheduled and not self._is_over and not self.is_paused:
            self._scheduled = True
            self._soon(self._flush)

    def _keep(self, size: int) -> None:
        """At most one message goes beyond the bound: one that is bigger alone must get through."""
        if self._size - size > OUTBOX_BYTES:
            self._forget()
            self.close(CloseCode.TOO_SLOW, TOO_SLOW)

    def _flush(self) -> None:
        self._scheduled = False
        if not self.is_paused:
            self._write_ready()
        if not self.is_full:
            self._has_room()

    def _write_ready(self) -> None:
        frames, self._ready, self._size = self._ready, [], 0
        if frames and not self._is_over:
            self._write(frames[0] if len(frames) == 1 else b"".join(frames))

    def _has_room(self) -> None:
        wake, self.wake = self.wake, None
        if wake is not None:
            wake()

    def _forget(self) -> None:
        self._ready.clear()
        self._size = 0

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False
        self._write_ready()
        self._has_room()

    def close(self, code: int, reason: str) -> None:
        self._part(code, reason)

    def finish(self) -> None:
        """What was sent so far goes out; what comes later goes nowhere."""
        self._write_ready()
        self._is_over = True

    def drop(self) -> None:
        """The socket is gone, and nothing can be written to it."""
        self._is_over = True
        self._forget()


def text_frame(text: bytes) -> bytes:
    return Frame(Opcode.TEXT, text).serialize(mask=False, extensions=[])
