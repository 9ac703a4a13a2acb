"""Messages on their way out: encoded once, handed to any number of outboxes, never waited for."""

from typing import Any, Protocol

from session_server.schemas.codec import encode


class Message:
    """One frame's text. Transports keep their forms of it here, so that those too are made once.

    `framed` is a WebSocket frame, `event` an event of a stream.
    """

    __slots__ = ("event", "framed", "text")

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.framed: bytes | None = None
        self.event: bytes | None = None

    @classmethod
    def of(cls, frame: Any) -> "Message":
        return cls(encode(frame))


class Outbox(Protocol):
    """Where a connection's messages go.

    `send` takes the message and returns at once, whatever the other side does; an outbox that
    cannot keep up ends its connection by itself. Messages arrive in the order they were sent.
    """

    def send(self, message: Message) -> None: ...

    def close(self, code: int, reason: str) -> None: ...
