"""What clients of AHP 0.9 and 1.x see of a channel: snapshots, envelopes, replays.

A channel has views from the first such client on, until no client that left could be sent all it
missed, or the channel has been idle for long.
Envelopes are made and encoded once per variant that is watched. To make them again for a
client that comes back, the latest entries are kept in segments, each with the record before it.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from session_server.host.channels.history import EnvelopeMemory
from session_server.host.channels.messages import Message, Outbox, deliver
from session_server.reducers.ahp1.envelopes import Committed, envelopes
from session_server.reducers.ahp1.numbering import number_after
from session_server.reducers.ahp1.root import root_envelopes, root_state
from session_server.reducers.ahp1.snapshots import Variant, chat_name, chat_state, session_state
from session_server.schemas.ahp1.methods import Envelope
from session_server.schemas.codec import encode
from session_server.schemas.limits import ENVELOPE_BYTES_KEPT, ENVELOPES_KEPT
from session_server.schemas.record import SessionRecord
from session_server.schemas.wire import Seq, Uri

SEGMENTS = 16
"""The kept entries are divided into so many; the oldest is dropped at a time."""

BEFORE_ENVELOPE = b'{"jsonrpc":"2.0","method":"action","params":'


class View(NamedTuple):
    """One of the two channels of a session, as one variant shows it."""

    variant: Variant
    on_chat: bool


class Projection(NamedTuple):
    """How a kind of channel looks in these versions. `chat` names its chat, if it has one."""

    envelopes: Callable[[Any, Sequence[Any], Variant], Iterator[Envelope]]
    state: Callable[[Any, View], Any]
    chat: Callable[[Any, Variant], Uri | None]


def _session_state(record: SessionRecord, view: View) -> Any:
    return (chat_state if view.on_chat else session_state)(record, view.variant)


SESSION_PROJECTION = Projection(envelopes, _session_state, chat_name)
ROOT_PROJECTION = Projection(
    envelopes=lambda _, entries, __: root_envelopes(entries),
    state=lambda state, _: root_state(state),
    chat=lambda *_: None,
)


class Segment:
    """Consecutive entries, the record before them, and the last seq before them."""

    __slots__ = ("before", "bytes", "entries", "floor")

    def __init__(self, before: Any, floor: Seq) -> None:
        self.before = before
        self.floor = floor
        self.entries: list[Committed] = []
        self.bytes = 0

    @property
    def is_full(self) -> bool:
        is_long = len(self.entries) > ENVELOPES_KEPT // SEGMENTS
        return is_long or self.bytes > ENVELOPE_BYTES_KEPT // SEGMENTS


class Views:
    """`seq`: the last one of the channel so far."""

    def __init__(self, projection: Projection, seq: Seq, memory: EnvelopeMemory) -> None:
        self._projection = projection
        self._subscribers: dict[View, dict[Outbox, None]] = {}
        self._reached = seq
        self._unwatched = 0
        self._segments: deque[Segment] = deque()
        self._memory = memory
        self._shown: dict[View, tuple[Any, bytes]] = {}
        self._groups: dict[Variant, tuple[list[Outbox], ...]] = {}

    # Who watches

    def add(self, view: View, outbox: Outbox) -> None:
        self._unwatched = 0
        self._subscribers.setdefault(view, {})[outbox] = None
        self._groups.pop(view.variant, None)

    def remove(self, view: View, outbox: Outbox) -> None:
        watching = self._subscribers.get(view, {})
        watching.pop(outbox, None)
        self._groups.pop(view.variant, None)
        if not watching:
            self._subscribers.pop(view, None)
            self._shown.pop(view, None)

    def has(self, view: View, outbox: Outbox) -> bool:
        return outbox in self._subscribers.get(view, ())

    @property
    def watchers(self) -> dict[Outbox, Variant]:
        """Each with its variant."""
        found: dict[Outbox, Variant] = {}
        for view, outboxes in self._subscribers.items():
            found |= dict.fromkeys(outboxes, view.variant)
        return found

    @property
    def are_useless(self) -> bool:
        """No one watches, and no client that did could be sent everything since."""
        return self._unwatched > ENVELOPES_KEPT

    # What happens

    def committed(self, before: Any, entries: Sequence[Committed], size: int) -> int:
        """Delivers durable entries of this size; returns the number of deliveries."""
        self._keep(before, entries, size)
        if not self._subscribers:
            self._unwatched += len(entries)
            return 0
        variants = dict.fromkeys(view.variant for view in self._subscribers)
        return sum(self._deliver(before, entries, variant) for variant in variants)

    def _deliver(self, before: Any, entries: Sequence[Committed], variant: Variant) -> int:
        chat = self._projection.chat(before, variant)
        everything: list[Message] = []
        on_chat: list[Message] = []
        on_session: list[Message] = []
        for envelope in self._projection.envelopes(before, entries, variant):
            message = Message(b"%b%b}" % (BEFORE_ENVELOPE, encode(envelope)))
            everything.append(message)
            (on_chat if envelope.channel == chat else on_session).append(message)
        number = 0
        sides = (everything, on_chat, on_session)
        for messages, outboxes in zip(sides, self._watching(variant), strict=True):
            if messages and outboxes:
                deliver(messages, outboxes)
                number += len(messages) * len(outboxes)
        return number

    def _watching(self, variant: Variant) -> tuple[list[Outbox], ...]:
        """The outboxes that watch both channels, only the chat, and only the session.

        Those who watch both get everything in one order: a client keeps the highest number.
        """
        known = self._groups.get(variant)
        if known is None:
            chats = self._subscribers.get(View(variant, on_chat=True), {})
            sessions = self._subscribers.get(View(variant, on_chat=False), {})
            known = self._groups[variant] = (
                [outbox for outbox in chats if outbox in sessions],
                [outbox for outbox in chats if outbox not in sessions],
                [outbox for outbox in sessions if outbox not in chats],
            )
        return known

    def _keep(self, before: Any, entries: Sequence[Committed], size: int) -> None:
        """Entries of one commit stay together, so the latest segment may be longer than others."""
        if not self._segments or self._segments[-1].is_full:
            self._segments.append(Segment(before, self._reached))
            self._forget_oldest()
        self._segments[-1].entries += entries
        self._segments[-1].bytes += size
        self._reached = entries[-1].seq
        self._memory.kept(self, size)

    def _forget_oldest(self) -> None:
        number = sum(len(segment.entries) for segment in self._segments)
        size = sum(segment.bytes for segment in self._segments)
        while number > ENVELOPES_KEPT or size > ENVELOPE_BYTES_KEPT:
            oldest = self._segments.popleft()
            number -= len(oldest.entries)
            size -= oldest.bytes
            self._memory.bytes -= oldest.bytes

    def let_go(self) -> None:
        """Drops the kept entries: a client that missed some gets a snapshot."""
        self._memory.let_go(self, sum(segment.bytes for segment in self._segments))
        self._segments.clear()

    # Catching up

    def shown(self, record: Any, view: View) -> bytes:
        """What a snapshot holds, encoded once per record and view."""
        known = self._shown.get(view)
        if known is None or known[0] is not record:
            known = self._shown[view] = (record, encode(self._projection.state(record, view)))
        return known[1]

    def since(
        self, last_seen: Seq, variant: Variant, *, on_chat: bool, on_session: bool
    ) -> list[tuple[Seq, bytes]] | None:
        """Envelopes with a higher number, or `None` if they cannot all be made any more."""
        if last_seen >= number_after(self._reached):
            return []
        known = [s for s in self._segments if number_after(s.floor) <= last_seen]
        if not known:
            return None
        before = known[-1].before
        chat = self._projection.chat(before, variant)
        later = islice(self._segments, len(known) - 1, None)
        missed = [entry for segment in later for entry in segment.entries]
        return [
            (envelope.server_seq, encode(envelope))
            for envelope in self._projection.envelopes(before, missed, variant)
            if envelope.server_seq > last_seen
            and (on_chat if envelope.channel == chat else on_session)
        ]
