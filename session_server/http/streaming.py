"""Server-Sent Events and long polls: bounded, resumable by position, ended with their client."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Generator
from contextlib import contextmanager
from typing import NamedTuple, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request

from session_server.host.async_api import StateWaiters
from session_server.host.channels.messages import Message, Outbox
from session_server.host.host import Host
from session_server.identity.credentials import while_allowed
from session_server.schemas.codec import encode
from session_server.schemas.errors import CloseCode, RateLimitError
from session_server.schemas.http import StreamEnd
from session_server.schemas.limits import LONG_POLLS_PER_PRINCIPAL, OUTBOX_BYTES
from session_server.schemas.principals import Principal
from session_server.schemas.wire import Seq, Wire

HEARTBEAT_SECONDS = 15.0
RETRY_MS = 1_000
TOO_SLOW = "reads too slowly; come back to resume"
OPENING = f"retry: {RETRY_MS}\n\n".encode()
HEARTBEAT = b": still here\n\n"

_REMOVAL = b"\nevent: sessionRemoved\n"
_HEAD_BYTES = 128


class Sent(Wire, frozen=True, kw_only=True):
    """The fields of a host message that a stream needs."""

    method: str
    params: msgspec.Raw


class Placed(Wire, frozen=True, kw_only=True):
    server_seq: Seq | None = None


_decode_sent = msgspec.json.Decoder(Sent).decode
_decode_placed = msgspec.json.Decoder(Placed).decode


def event_of(name: str, data: bytes, seq: Seq) -> bytes:
    """JSON has no line breaks, so one `data` line is enough."""
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (seq, name.encode(), data)


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
        return event_of(name, bytes(sent.params), self._host.position if seq is None else seq)

    def put(self, event: bytes) -> None:
        """One event may exceed the bound, so that a single large one gets through."""
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
        """The last event has no id: a reader that reconnects resumes after the one before."""
        if not self._is_over:
            self.closed_with = code
            end = encode(StreamEnd(code=code, reason=reason))
            self._ready.append(b"event: end\ndata: %b\n\n" % end)
            self.finish()

    def finish(self) -> None:
        """Ends after what is queued."""
        self._is_over = True
        self._wake.set()

    async def chunks(self) -> AsyncIterator[bytes]:
        """All ready events in one chunk; a comment as heartbeat."""
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
    """The stream of one session, which ends when the session is removed."""

    def send(self, message: Message) -> None:
        super().send(message)
        if message.event is not None and message.event.find(_REMOVAL, 0, _HEAD_BYTES) >= 0:
            self.finish()


T = TypeVar("T")

STOPPING = "the host stops; come back to resume"


class TooManyLongPollsError(RateLimitError):
    """One principal has too many HTTP requests with `wait` at a time."""

    code = "tooManyLongPolls"

    def __init__(self) -> None:
        super().__init__(
            f"You have {LONG_POLLS_PER_PRINCIPAL} requests that wait; let some of them end first.",
            1,
        )


class OpenStreams:
    def __init__(self, waiting: StateWaiters) -> None:
        self._waiting = waiting
        self._long_polls: Counter[str] = Counter()
        self._streams: set[EventOutbox] = set()
        self._is_over = False

    def opened(self, stream: EventOutbox) -> None:
        self._streams.add(stream)
        if self._is_over:
            stream.close(CloseCode.RESTARTING, STOPPING)

    def closed(self, stream: EventOutbox) -> None:
        self._streams.discard(stream)

    @contextmanager
    def long_poll(self, who: Principal) -> Generator[None]:
        if self._long_polls[who.id] >= LONG_POLLS_PER_PRINCIPAL:
            raise TooManyLongPollsError
        self._long_polls[who.id] += 1
        try:
            yield
        finally:
            self._long_polls[who.id] -= 1
            if not self._long_polls[who.id]:
                del self._long_polls[who.id]

    def end(self) -> None:
        self._is_over = True
        self._waiting.close()
        for stream in self._streams:
            stream.close(CloseCode.RESTARTING, STOPPING)


class LongPoll(NamedTuple):
    """A request that may wait for `seconds`."""

    request: Request
    host: Host
    who: Principal
    seconds: float

    async def until(self, work: Awaitable[T]) -> T:
        """The result of the work, unless the client leaves or its credential ends before."""
        if not self.seconds:
            return await work
        allowed = asyncio.ensure_future(while_allowed(self.host, self.who, work))
        leaving = asyncio.ensure_future(self._left())
        try:
            await asyncio.wait((allowed, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not allowed.done():
                raise ClientDisconnect
            return allowed.result()
        finally:
            allowed.cancel()
            leaving.cancel()
            await asyncio.gather(allowed, leaving, return_exceptions=True)

    async def _left(self) -> None:
        while (await self.request.receive())["type"] != "http.disconnect":
            pass
