"""What the stream holds, kept in memory by applying its messages in order.

JetStream finds messages by number and by subject, not by an entry's id, and cannot forget part of a
message. So each node knows of every entry its id and its place, and which ones are forgotten. The
data stays in the stream.
"""

import logging
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from session_server.log.nats.messages import (
    SEQS_PER_MESSAGE,
    Claim,
    Dropped,
    Ended,
    Floor,
    NewEpoch,
    Reached,
    Record,
    SavedSnapshot,
    StoredBatch,
    StoredMessage,
    Subjects,
    channel_of,
    content_of,
    outline_of,
)
from session_server.log.protocol import Epoch
from session_server.schemas.limits import DECISION_BYTES_KEPT, DECISIONS_KEPT
from session_server.schemas.wire import Millis, Seq, Uri

logger = logging.getLogger("session_server.log")


class Lasting(NamedTuple):
    until: Millis
    size: int


class Indexed:
    """What is in the stream as `parts` messages; `stream_seq` is the number of the last one."""

    __slots__ = ("channel", "parts", "stream_seq")

    def __init__(self, message: StoredMessage, stored: StoredBatch | SavedSnapshot) -> None:
        self.stream_seq = message.stream_seq
        self.channel = channel_of(message.subject)
        self.parts = stored.parts

    @property
    def numbers(self) -> range:
        return range(self.stream_seq - self.parts + 1, self.stream_seq + 1)


class IndexedBatch(Indexed):
    """`visible` are the places of its entries that are not forgotten."""

    __slots__ = ("ids", "seqs", "visible")

    def __init__(self, message: StoredMessage, stored: StoredBatch, seqs: Sequence[Seq]) -> None:
        super().__init__(message, stored)
        self.ids = stored.ids
        self.seqs = seqs
        self.visible: Sequence[int] = range(len(stored.ids))


class IndexedSnapshot(Indexed):
    __slots__ = ("outline", "seq")

    def __init__(self, message: StoredMessage, stored: SavedSnapshot) -> None:
        super().__init__(message, stored)
        self.seq = stored.seq
        self.outline = outline_of(self.channel, stored)


Chosen: TypeAlias = list[tuple[IndexedBatch, list[int]]]
"""Batches in order, each with the places of the entries that are wanted."""


class IndexedChannel:
    """`end` is the last message on its subject: what is appended must expect that one."""

    __slots__ = ("batches", "end", "floor", "floor_at", "last", "lasting", "snapshot")

    def __init__(self) -> None:
        self.last: Seq = 0
        self.end = 0
        self.batches: dict[int, IndexedBatch] = {}
        self.floor: Seq = 0
        self.floor_at = 0
        self.snapshot: IndexedSnapshot | None = None
        self.lasting: dict[Seq, Lasting] = {}


class Index:
    """`position` is the number of the last message that was applied."""

    def __init__(self, subjects: Subjects) -> None:
        self._subjects = subjects
        self.position = 0
        self.reached: Seq = 0
        self.claim = (0, "")
        self.epochs: list[tuple[int, Epoch]] = []
        self.channels: dict[Uri, IndexedChannel] = {}
        self.seqs: dict[str, Seq] = {}
        self._order: list[IndexedBatch] = []
        self._hidden = 0

    @property
    def last_seq(self) -> Seq:
        return max(self.reached, self.epochs[-1][1].first)

    def channel(self, uri: Uri) -> IndexedChannel:
        return self.channels.get(uri) or IndexedChannel()

    def seqs_at(self, stream_seq: int, parts: int, count: int) -> range:
        """The seqs of a batch whose last message has this number."""
        begun, epoch = next(e for e in reversed(self.epochs) if e[0] < stream_seq)
        first = epoch.first + (stream_seq - parts + 1 - begun) * SEQS_PER_MESSAGE
        return range(first, first + count)

    # Applying

    def apply(self, message: StoredMessage) -> None:
        """Messages come in the order of their numbers; those that are gone are left out."""
        self.position = message.stream_seq
        if message.is_part:
            return
        record = content_of(message.body).record
        if record is None or (isinstance(record, StoredBatch) and not self.epochs):
            logger.error("message %d of the stream is not part of the log", message.stream_seq)
        if message.subject.startswith(self._subjects.entries):
            self._apply_to_entries(message, record)
        elif message.subject.startswith(self._subjects.snapshots):
            self._apply_to_snapshots(message, record)
        elif message.subject.startswith(self._subjects.floors):
            self._apply_to_floors(message, record)
        elif isinstance(record, NewEpoch):
            self.epochs.append((message.stream_seq, Epoch(record.first, record.name)))
        elif isinstance(record, Reached):
            self.reached = max(self.reached, record.seq)
        elif isinstance(record, Claim):
            self.claim = (message.stream_seq, record.name)

    def _apply_to_entries(self, message: StoredMessage, record: Record | None) -> None:
        uri = channel_of(message.subject)
        if isinstance(record, StoredBatch) and self.epochs:
            channel = self.channels.setdefault(uri, IndexedChannel())
            channel.end = message.stream_seq
            self._add(channel, message, record)
        elif isinstance(record, Dropped):
            self._forget(self.channels.pop(uri, IndexedChannel()))
        elif isinstance(record, Ended):
            channel = self.channels.setdefault(uri, IndexedChannel())
            channel.end, channel.last = message.stream_seq, record.last
            self.reached = max(self.reached, record.last)
        elif uri in self.channels:
            self.channels[uri].end = message.stream_seq

    def _add(self, channel: IndexedChannel, message: StoredMessage, stored: StoredBatch) -> None:
        count = len(stored.ids)
        seqs = stored.seqs or self.seqs_at(message.stream_seq, stored.parts, count)
        batch = IndexedBatch(message, stored, seqs)
        channel.batches[batch.stream_seq] = batch
        self._order.append(batch)
        self.seqs.update(zip(stored.ids, seqs, strict=True))
        for place, until in stored.lasting.items():
            channel.lasting[seqs[place]] = Lasting(until, stored.sizes[place])
        channel.last = seqs[-1]
        self.reached = max(self.reached, seqs[-1])

    def _apply_to_snapshots(self, message: StoredMessage, record: Record | None) -> None:
        uri = channel_of(message.subject)
        # One that is beyond the channel's end was on its way when the channel was dropped.
        if isinstance(record, SavedSnapshot) and record.seq <= self.channel(uri).last:
            channel = self.channels.setdefault(uri, IndexedChannel())
            channel.snapshot = IndexedSnapshot(message, record)

    def _apply_to_floors(self, message: StoredMessage, record: Record | None) -> None:
        channel = self.channel(channel_of(message.subject))
        if isinstance(record, Floor) and record.seq <= channel.last:
            channel.floor, channel.floor_at = record.seq, message.stream_seq
            self._hide(channel, frozenset(record.kept))

    def _hide(self, channel: IndexedChannel, kept: Collection[Seq]) -> None:
        for batch in tuple(channel.batches.values()):
            if batch.seqs[0] > channel.floor:
                break
            left: list[int] = []
            for place in batch.visible:
                seq = batch.seqs[place]
                if seq > channel.floor or seq in kept:
                    left.append(place)
                else:
                    self.seqs.pop(batch.ids[place], None)
                    channel.lasting.pop(seq, None)
            batch.visible = tuple(left)
            if not left:
                del channel.batches[batch.stream_seq]
                self._hidden += 1
        self._compact()

    def _forget(self, channel: IndexedChannel) -> None:
        for batch in channel.batches.values():
            for place in batch.visible:
                self.seqs.pop(batch.ids[place], None)
            batch.visible = ()
            self._hidden += 1
        self._compact()

    def _compact(self) -> None:
        if self._hidden > len(self._order) // 2:
            self._order = [batch for batch in self._order if batch.visible]
            self._hidden = 0

    # Asking

    def after(self, seq: Seq, limit: int, channels: Collection[Uri] | None = None) -> Chosen:
        if channels is None:
            batches: Iterable[IndexedBatch] = self._ordered_after(seq)
        else:
            some = (self.channel(uri).batches.values() for uri in frozenset(channels))
            batches = sorted((b for of in some for b in of), key=lambda batch: batch.stream_seq)
        return _chosen(((batch, seq) for batch in batches), limit)

    def uncovered(self, seq: Seq, limit: int) -> Chosen:
        covered = {
            uri: channel.snapshot.seq
            for uri, channel in self.channels.items()
            if channel.snapshot is not None
        }
        batches = self._ordered_after(seq)
        return _chosen(((b, max(seq, covered.get(b.channel, 0))) for b in batches), limit)

    def _ordered_after(self, seq: Seq) -> Iterator[IndexedBatch]:
        start = bisect_right(self._order, seq, key=lambda batch: batch.seqs[-1])
        return (self._order[n] for n in range(start, len(self._order)))

    def trimmed(self, uri: Uri, up_to: Seq, now: Millis) -> Floor | None:
        """The floor that a trim leads to, if there is anything to forget."""
        channel = self.channel(uri)
        if channel.snapshot is None:
            return None
        covered = min(max(up_to, channel.floor), channel.snapshot.seq)
        lasting = _still_lasting(channel.lasting, now)
        seqs = [batch.seqs[n] for batch in channel.batches.values() for n in batch.visible]
        gone = [seq for seq in seqs if seq <= covered and seq not in lasting]
        if not gone:
            return None
        floor = max(channel.floor, gone[-1])
        gone_set = frozenset(gone)
        return Floor(floor, tuple(s for s in seqs if s <= floor and s not in gone_set))


def _chosen(batches: Iterator[tuple[IndexedBatch, Seq]], limit: int) -> Chosen:
    chosen: Chosen = []
    for batch, after in batches:
        if limit <= 0:
            break
        places = [place for place in batch.visible if batch.seqs[place] > after][:limit]
        if places:
            chosen.append((batch, places))
            limit -= len(places)
    return chosen


def _still_lasting(lasting: dict[Seq, Lasting], now: Millis) -> set[Seq]:
    """The newest that last until after `now`, as many as may be kept."""
    kept: set[Seq] = set()
    size = 0
    for seq in sorted(lasting, reverse=True):
        if lasting[seq].until > now and len(kept) < DECISIONS_KEPT:
            size += lasting[seq].size
            if size > DECISION_BYTES_KEPT:
                break
            kept.add(seq)
    return kept
