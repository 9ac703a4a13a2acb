"""Messages on their way out: encoded once, handed to any number of outboxes, never waited for."""

from collections.abc import Collection, Sequence
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


class Burst:
    """Messages in a row for the same outboxes. What they are together is made once as well."""

    __slots__ = ("framed", "messages")

    def __init__(self, messages: Sequence[Message]) -> None:
        self.messages = messages
        self.framed: bytes | None = None


class Outbox(Protocol):
    """Where a connection's messages go.

    `send` takes the message and returns at once, whatever the other side does; an outbox that
    cannot keep up ends its connection by itself. Messages arrive in the order they were sent.
    `closed_with` is the code that the connection was ended with from here, if it was.
    """

    closed_with: int | None

    def send(self, message: Message) -> None: ...

    def send_all(self, burst: Burst) -> None:
        """The same as sending one after the other."""
        for message in burst.messages:
            self.send(message)

    def close(self, code: int, reason: str) -> None: ...


def deliver(messages: Sequence[Message], outboxes: Collection[Outbox]) -> None:
    """To each of them, without waiting for any."""
    if len(messages) == 1:
        for outbox in tuple(outboxes):
            outbox.send(messages[0])
        return
    burst = Burst(messages)
    for outbox in tuple(outboxes):
        outbox.send_all(burst)
