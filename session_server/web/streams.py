"""Server-Sent Events: a host's messages as a stream that can be taken up again by position.

An `EventOutbox` is what a WebSocket's outbox is: the host sends and never waits. Whoever reads too
slowly is let go, and comes back with the id of the last event it has seen.
"""

import asyncio
from collections.abc import AsyncIterator

import msgspec

from session_server.host.delivery import Message, Outbox
from session_server.host.errors import CloseCode
from session_server.host.host import Host
from session_server.schemas.codec import encode
from session_server.schemas.http import StreamEnd
from session_server.schemas.limits import OUTBOX_BYTES
from session_server.schemas.wire import Seq, Wire

HEARTBEAT_SECONDS = 15.0
RETRY_MS = 1_000
TOO_SLOW = "reads too slowly; come back to resume"
OPENING = f"retry: {RETRY_MS}\n\n".encode()
HEARTBEAT = b": still here\n\n"

_REMOVAL = b"\nevent: sessionRemoved\n"
_HEAD_BYTES = 128


class Sent(Wire, frozen=True, kw_only=True):
    """What a stream needs to know of a message of the host's."""

    method: str
    params: msgspec.Raw


class Placed(Wire, frozen=True, kw_only=True):
    server_seq: Seq | None = None


_decode_sent = msgspec.json.Decoder(Sent).decode
_decode_placed = msgspec.json.Decoder(Placed).decode


class EventOutbox(Outbox):
    def __init__(self, host: Host, heartbeat: float = HEARTBEAT_SECONDS) -> None:
        self._host = host
        self._heartbeat = heartbeat
        self._ready: list[bytes] = [OPENING]
        self._backlog = 0
        self._wake = asyncio.Event()
        self._is_over = False
        self.closed_with: int | None = None

    def send(self, message: Message) -> None:
        if message.event is None:
            message.event = self._event_of(message.text)
        self.put(message.event)

    def _event_of(self, text: bytes) -> bytes:
        sent = _decode_sent(text)
        seq = _decode_placed(sent.params).server_seq
        name = sent.method.rpartition("/")[2]
        return self.event(name, bytes(sent.params), self._host.position if seq is None else seq)

    def event(self, name: str, data: bytes, seq: Seq) -> bytes:
        """JSON has no line breaks, so one line of data is all that is needed."""
        return b"id: %d\nevent: %b\ndata: %b\n\n" % (seq, name.encode(), data)

    def put(self, event: bytes) -> None:
        """At most one event goes beyond the bound: one that is bigger alone must get through."""
        if self._is_over:
            return
        if self._backlog > OUTBOX_BYTES:
            self._ready.clear()
            self.close(CloseCode.TOO_SLOW, TOO_SLOW)
            return
        self._ready.append(event)
        self._backlog += len(event)
        self._wake.set()

    def close(self, code: int, reason: str) -> None:
        """The last event has no id, so that whoever comes back resumes after the one before."""
        if not self._is_over:
            self.closed_with = code
            end = encode(StreamEnd(code=code, reason=reason))
            self._ready.append(b"event: end\ndata: %b\n\n" % end)
            self.finish()

    def finish(self) -> None:
        """What is there still goes out."""
        self._is_over = True
        self._wake.set()

    async def chunks(self) -> AsyncIterator[bytes]:
        """All that is ready at a time, in one piece; a comment where there is nothing for long."""
        while True:
            if self._ready:
                ready, self._ready, self._backlog = self._ready, [], 0
                yield b"".join(ready)
            elif self._is_over:
                return
            else:
                self._wake.clear()
                try:
                    await asyncio.wait_for(self._wake.wait(), self._heartbeat)
                except TimeoutError:
                    yield HEARTBEAT


class SessionOutbox(EventOutbox):
    """Of one session: when that is removed, so ends its stream."""

    def send(self, message: Message) -> None:
        super().send(message)
        if message.event is not None and message.event.find(_REMOVAL, 0, _HEAD_BYTES) >= 0:
            self.finish()
