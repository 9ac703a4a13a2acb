"""The network between a client and its host: in order, late, and cut off at any moment."""

from collections import deque
from random import Random
from typing import Any

import msgspec

from session_server.host.channels.messages import Message, Outbox
from session_server.host.connection.protocol import Connection
from session_server.host.host import Host
from session_server.schemas.principals import Principal
from tests.ahp.mirror import Mirror


class Link(Outbox):
    """One connection. What was not taken from it when it is cut, is lost.

    The host may notice much later that it was cut, and until then read what was sent before.
    """

    closed_with: int | None = None

    def __init__(self, host: Host, principal: Principal, mirror: Mirror, dice: Random) -> None:
        self.mirror = mirror
        self.up: deque[bytes] = deque()
        self.down: deque[bytes] = deque()
        self.is_cut = False
        self.closed: tuple[int, str] | None = None
        self.dice = dice
        self.connection = Connection(host, principal, self)
        self.say(mirror.greet())

    def say(self, frame: Any) -> None:
        self.up.append(msgspec.json.encode(frame))

    # The host's side: an Outbox

    def send(self, message: Message) -> None:
        if not self.is_cut:
            self.down.append(message.text)

    def close(self, code: int, reason: str) -> None:
        self.closed = (code, reason)

    # Time passes

    def carry_up(self, number: int) -> None:
        for _ in range(min(number, len(self.up))):
            self.connection.receive(self.up.popleft())

    def carry_down(self, number: int) -> None:
        for _ in range(min(number, len(self.down))):
            reply = self.mirror.take(self.down.popleft())
            if reply is not None:
                self.say(reply)

    def cut(self) -> None:
        """The client is gone. The tail of what it sent may have got through, or not."""
        self.is_cut = True
        self.down.clear()
        for _ in range(self.dice.randrange(len(self.up) + 1)):
            self.up.pop()
        self.mirror.hang_up()

    def end(self) -> None:
        """The host notices too."""
        self.carry_up(len(self.up))
        self.connection.closed()


class LossyLink(Link):
    """A defect on purpose: an action never arrives."""

    odds = 0.01

    def send(self, message: Message) -> None:
        if self.is_cut or not is_action(message.text) or self.dice.random() >= self.odds:
            super().send(message)


class ShufflingLink(Link):
    """A defect on purpose: an action overtakes the one before it."""

    odds = 0.01

    def send(self, message: Message) -> None:
        super().send(message)
        latest = list(self.down)[-2:]
        if len(latest) == 2 and all(map(is_action, latest)) and self.dice.random() < self.odds:
            self.down[-1], self.down[-2] = latest


def is_action(text: bytes) -> bool:
    return b'"method":"action"' in text and b"rejectionReason" not in text
