"""Messages to clients: handed to any number of outboxes, and never waited for."""

import asyncio
import logging
from collections.abc import Collection, Sequence
from typing import Any, Protocol

import msgspec

from session_server.schemas.codec import encode
from session_server.schemas.errors import CloseCode

logger = logging.getLogger("session_server.host")

BROKEN = "something went wrong here; reconnect to resume"


class Message(msgspec.Struct, eq=False, gc=False):
    """One frame's text. Transports keep their forms of it here, so that those too are made once.

    `framed` is a WebSocket frame, `event` an event of a stream.
    """

    text: bytes
    framed: bytes | None = None
    event: bytes | None = None

    @classmethod
    def of(cls, frame: Any) -> "Message":
        return cls(encode(frame))


class Burst(msgspec.Struct, eq=False):
    """Messages in a row for the same outboxes. What they are together is made once as well."""

    messages: Sequence[Message]
    framed: bytes | None = None


class Outbox(Protocol):
    """Where a connection's messages go.

    `send` takes the message and returns at once, whatever the other side does; an outbox that
    cannot keep up ends its connection by itself. Messages arrive in the order they were sent.
    `closed_with` is the code that the connection was ended with from here, if it was.
    """

    closed_with: int | None

    def send(self, message: Message, /) -> None: ...

    def send_all(self, burst: Burst, /) -> None:
        """The same as sending one after the other."""
        for message in burst.messages:
            self.send(message)

    def close(self, code: int, reason: str) -> None: ...


class Flushable(Protocol):
    def flush(self) -> None: ...


class LoopTurns:
    """Counts turns of the event loop in which something is written, so that each outbox knows
    whether it has written in this one. At the end of a turn outboxes write what they gathered.
    """

    def __init__(self) -> None:
        self.number = 0
        self.is_ending = False
        self._outboxes: list[Flushable] = []

    def end_soon(self, outbox: Flushable) -> None:
        if not self.is_ending:
            self.is_ending = True
            asyncio.get_running_loop().call_soon(self._end)
        self._outboxes.append(outbox)

    def _end(self) -> None:
        outboxes, self._outboxes = self._outboxes, []
        self.is_ending = False
        self.number += 1
        for outbox in outboxes:
            try:
                outbox.flush()
            except Exception:
                logger.exception("a connection could not be written to")


def deliver(messages: Sequence[Message], outboxes: Collection[Outbox]) -> None:
    """To each of them, without waiting for any; one that fails keeps no other from getting it."""
    burst = None if len(messages) == 1 else Burst(messages)
    for outbox in tuple(outboxes):
        try:
            if burst is None:
                outbox.send(messages[0])
            else:
                outbox.send_all(burst)
        except Exception:
            logger.exception("a message could not be sent")
            outbox.close(CloseCode.INTERNAL_ERROR, BROKEN)
