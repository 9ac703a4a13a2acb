"""The nodes of a host: which are alive, and which items each of them publishes.

Messages go through the log's servers and are not stored. Every node sends heartbeats and receives
its own too: so it can distinguish a node that is silent from a connection that is lost. The items
of a node (people in a session, clients, who waits for an answer) are removed with the node.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import msgspec

from session_server.host.timers import Clock
from session_server.log.protocol import MESSAGE_BYTES, SharedLog
from session_server.schemas.codec import encode
from session_server.schemas.nodes import NodeMessage

logger = logging.getLogger("session_server.host")

BEATS_PER_LEASE = 5
ENVELOPE_BYTES = 200
"""The size of a message without its items."""

GATHERED_SECONDS = 0.05
"""Changes within this time are sent together."""

KEPT_PER_NODE = 20_000
"""Items that are remembered of another node; more than that are ignored."""

Key: TypeAlias = tuple[str, str]
"""The kind and the name of an item."""

_decode = msgspec.json.Decoder(NodeMessage).decode


class Nodes:
    """`name` is this node's own. `is_first`: no other one ran when this one started."""

    def __init__(
        self, log: SharedLog, name: str, clock: Clock, lease: float, *, is_first: bool
    ) -> None:
        self.name = name
        self.on_lost: list[Callable[[], None]] = []
        self._log = log
        self._clock = clock
        self._pause = lease / BEATS_PER_LEASE
        self._sent = 0
        self._heard = 0
        self._rounds = 0
        """How many of its own heartbeats this node has received."""
        self._last_heard: dict[str, int] = {}
        """The round in which each other node last sent a message."""
        self._is_settled = is_first
        self._wants = True
        self._own: dict[Key, Any] = {}
        self._changed: dict[Key, None] = {}
        self._changes_sent = 0
        self._numbers: dict[str, int] = {}
        """The number of the last message with items, by node."""
        self._elsewhere: dict[Key, dict[str, Any]] = {}
        self._known: dict[str, set[Key]] = {}
        """The items of each other node."""
        self._unconfirmed: dict[str, set[Key]] = {}
        """While a node sends all its items: those that were not listed yet."""
        self._listeners: dict[str, Callable[[str], None]] = {}
        self._sends_all = self._is_scheduled = self._has_left = False

    # Heartbeats

    async def run(self) -> None:
        self._log.listen(self._receive)
        while not self._has_left:
            is_heard = self._heard == self._sent
            self._sent += 1
            wants = self._wants or not is_heard
            self._wants = False
            beat = NodeMessage(
                node=self.name, beat=self._sent, wants=wants, number=self._changes_sent
            )
            self._send(beat)
            await self._clock.sleep(self._pause)

    def leave(self) -> None:
        """This node stops: others need not wait for its lease to end."""
        self._send(NodeMessage(node=self.name, leaves=True))
        self._has_left = True

    def is_alive(self, name: str) -> bool:
        """Whether a node may be running. Until a lease has passed after a start, any may be."""
        return name == self.name or name in self._last_heard or not self._is_settled

    @property
    def number(self) -> int:
        """How many nodes are alive, including this one."""
        return 1 + len(self._last_heard)

    @property
    def is_settled(self) -> bool:
        """Whether every living node must have sent a message by now."""
        return self._is_settled

    def _receive(self, text: str) -> None:
        try:
            message = _decode(text)
        except msgspec.DecodeError:
            logger.debug("a message of another node could not be decoded")
            return
        if message.node == self.name:
            if message.beat is not None:
                self._returned(message.beat)
            return
        if message.leaves:
            self._remove([message.node])
            return
        is_known = message.node in self._last_heard
        self._last_heard[message.node] = self._rounds
        if message.wants:
            self._sends_all = True
            self._send_soon()
        before = self._numbers.get(message.node, 0) + (1 if message.beat is None else 0)
        if not is_known or (message.number != before and not message.begins):
            self._wants = True  # some of its items did not arrive
        self._numbers[message.node] = message.number
        self._apply_items(message)

    def _apply_items(self, message: NodeMessage) -> None:
        node = message.node
        if message.begins:
            self._unconfirmed[node] = set(self._known.get(node, ()))
        unconfirmed = self._unconfirmed.get(node, set())
        for kind, things in message.has.items():
            for name, value in things.items():
                unconfirmed.discard((kind, name))
                self._note(node, (kind, name), value)
        if message.ends:
            for key in self._unconfirmed.pop(node, ()):
                self._note(node, key, None)

    def _returned(self, beat: int) -> None:
        """Only the latest heartbeat counts: delayed ones may arrive all at once."""
        if beat != self._sent or beat == self._heard:
            return
        self._heard = beat
        self._rounds += 1
        silent = [
            node
            for node, heard in self._last_heard.items()
            if self._rounds - heard > BEATS_PER_LEASE
        ]
        is_settled_now = not self._is_settled and self._rounds > BEATS_PER_LEASE
        if is_settled_now:
            self._is_settled = True
        if silent or is_settled_now:
            self._remove(silent)

    def _remove(self, gone: list[str]) -> None:
        for node in gone:
            self._last_heard.pop(node, None)
            self._numbers.pop(node, None)
            for key in tuple(self._known.get(node, ())):
                self._note(node, key, None)
            self._known.pop(node, None)
            self._unconfirmed.pop(node, None)
            logger.info("node %s is gone", node)
        for lost in self.on_lost:
            lost()

    # Items

    def listen(self, kind: str, changed: Callable[[str], None]) -> None:
        """Calls back with the name of each item of this kind that changed on another node."""
        self._listeners[kind] = changed

    def publish(self, kind: str, name: str, value: Any) -> None:
        """Sets an item of this node, which other nodes receive; `None` removes it."""
        key = (kind, name)
        if self._own.get(key) == value:
            return
        if value is None:
            del self._own[key]
        else:
            self._own[key] = value
        self._changed[key] = None
        self._send_soon()

    def elsewhere(self, kind: str, name: str) -> tuple[Any, ...]:
        """The values of this item on other nodes."""
        return tuple(self._elsewhere.get((kind, name), {}).values())

    def _note(self, node: str, key: Key, value: Any) -> None:
        values, known = self._elsewhere.get(key, {}), self._known.setdefault(node, set())
        if values.get(node) == value or (len(known) >= KEPT_PER_NODE and key not in known):
            return
        if value is None:
            del values[node]
            known.discard(key)
            if not values:
                del self._elsewhere[key]
        else:
            self._elsewhere.setdefault(key, values)[node] = value
            known.add(key)
        listener = self._listeners.get(key[0])
        if listener is not None:
            listener(key[1])

    def _send_soon(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._clock.call_later(GATHERED_SECONDS, self._send_changes)

    def _send_changes(self) -> None:
        changed, self._changed = self._changed, {}
        sends_all, self._sends_all = self._sends_all, False
        self._is_scheduled = False
        pieces = list(self._pieces(self._own if sends_all else changed))
        for place, has in enumerate(pieces, start=1):
            self._changes_sent += 1
            self._send(
                NodeMessage(
                    node=self.name,
                    number=self._changes_sent,
                    has=has,
                    begins=sends_all and place == 1,
                    ends=sends_all and place == len(pieces),
                )
            )

    def _pieces(self, keys: Iterable[Key]) -> Iterator[dict[str, dict[str, Any]]]:
        """As many items as fit into one message; an item too large for one is left out."""
        room = MESSAGE_BYTES - ENVELOPE_BYTES
        has: dict[str, dict[str, Any]] = {}
        left = room
        for kind, name in keys:
            value = self._own.get((kind, name))
            size = len(encode({kind: {name: value}})) + 1
            if size > room:
                continue
            if size > left:
                yield has
                has, left = {}, room
            left -= size
            has.setdefault(kind, {})[name] = value
        yield has

    def _send(self, message: NodeMessage) -> None:
        if not self._has_left:
            self._log.broadcast(encode(message).decode())
