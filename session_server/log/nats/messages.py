"""How batches, snapshots and records look in the stream.

A message is a record, and after it the data that it speaks of. What does not fit into one message
is published as several, all or none of them: the earlier ones hold nothing but data and have a
header that says so. The record is in the last one.
"""

import zlib
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias
from urllib.parse import quote, unquote

import msgspec

from session_server.log.protocol import NewEntry, StoredSnapshot
from session_server.schemas.wire import Millis, Seq, Uri

SEQS_PER_MESSAGE = 256
"""A message has so many places for entries; a batch of more takes more messages."""

PART = "Session-Server-Part"
PARTS_AT_MOST = 1_000
"""The servers' own limit for messages that are published together."""

RESERVED_BYTES = 4_096
"""Of a message's largest size, what headers and subject may take."""

LENGTH_BYTES = 4


class StoredBatch(msgspec.Struct, frozen=True, array_like=True, tag="batch"):
    """`seqs` only for entries that were copied from another log; else the stream gives them."""

    ids: tuple[str, ...]
    sizes: tuple[int, ...]
    checksums: tuple[int, ...]
    lasting: dict[int, Millis]
    parts: int
    seqs: tuple[Seq, ...] = ()


class Fence(msgspec.Struct, frozen=True, array_like=True, tag="fence"):
    """Changes nothing but the end of the subject: what was sent before it can no more be stored."""


class Ended(msgspec.Struct, frozen=True, array_like=True, tag="ended"):
    """A channel that was copied from another log, which had forgotten its last entries."""

    last: Seq


class Dropped(msgspec.Struct, frozen=True, array_like=True, tag="dropped"):
    """All before it on this subject is forgotten."""


class SavedSnapshot(msgspec.Struct, frozen=True, array_like=True, tag="snapshot"):
    seq: Seq
    size: int
    checksum: int
    parts: int
    outline: bytes = b""
    outline_checksum: int = 0


class Floor(msgspec.Struct, frozen=True, array_like=True, tag="floor"):
    """Entries up to `seq` are forgotten, but for those in `kept`."""

    seq: Seq
    kept: tuple[Seq, ...]


class NewEpoch(msgspec.Struct, frozen=True, array_like=True, tag="epoch"):
    first: Seq
    name: str


class Reached(msgspec.Struct, frozen=True, array_like=True, tag="reached"):
    """How far the log had come when entries were dropped."""

    seq: Seq


class Mark(msgspec.Struct, frozen=True, array_like=True, tag="mark"):
    """A reader of this has read all that was stored before."""


class Claim(msgspec.Struct, frozen=True, array_like=True, tag="claim"):
    """Which process has the log for itself; one that is gone does not answer to its name."""

    name: str


Record: TypeAlias = (
    StoredBatch
    | Fence
    | Ended
    | Dropped
    | SavedSnapshot
    | Floor
    | NewEpoch
    | Reached
    | Mark
    | Claim
)

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Record] = msgspec.msgpack.Decoder(Record)


class Subjects:
    """The names under which a stream keeps things. A channel's URI is percent-encoded."""

    def __init__(self, stream: str) -> None:
        self.entries, self.snapshots = f"{stream}.entries.", f"{stream}.snapshots."
        self.floors = f"{stream}.floors."
        self.per_channel = (self.entries, self.snapshots, self.floors)
        self.epochs, self.reached = f"{stream}.epochs", f"{stream}.reached"
        self.marks, self.claims = f"{stream}.marks", f"{stream}.claims"
        self.all = f"{stream}.>"

    def names(self) -> list[str]:
        per_channel = (f"{prefix}*" for prefix in self.per_channel)
        return [*per_channel, self.epochs, self.reached, self.marks, self.claims]


def token_of(channel: Uri) -> str:
    return quote(channel, safe="!$&'()+,;=:@/").replace(".", "%2E")


def channel_of(subject: str) -> Uri:
    return unquote(subject.split(".", 2)[2])


class StoredMessage(NamedTuple):
    """As it is in the stream, `stream_seq` being the stream's own number."""

    stream_seq: int
    subject: str
    is_part: bool
    body: bytes


class Content(NamedTuple):
    """`record` is `None` for a message that is not ours, or damaged."""

    record: Record | None
    data: bytes


def content_of(body: bytes) -> Content:
    size = int.from_bytes(body[:LENGTH_BYTES])
    end = LENGTH_BYTES + size
    try:
        return Content(_decoder.decode(body[LENGTH_BYTES:end]), body[end:])
    except msgspec.DecodeError:
        return Content(None, b"")


def body_of(record: Record, data: bytes = b"") -> bytes:
    encoded = _encoder.encode(record)
    return len(encoded).to_bytes(LENGTH_BYTES) + encoded + data


def entry_checksum(channel: Uri, entry_id: str, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(f"{channel}\0{entry_id}".encode()))


def snapshot_checksum(channel: Uri, seq: Seq, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(f"{channel}\0{seq}".encode()))


def batch_bodies(
    channel: Uri, entries: Sequence[NewEntry], seqs: Sequence[Seq], largest: int
) -> list[bytes]:
    """The messages of a batch, the last one with its record."""
    stored = StoredBatch(
        ids=tuple(entry.id for entry in entries),
        sizes=tuple(len(entry.data) for entry in entries),
        checksums=tuple(entry_checksum(channel, entry.id, entry.data) for entry in entries),
        lasting={n: entry.lasts_until for n, entry in enumerate(entries) if entry.lasts_until},
        parts=1,
        seqs=tuple(seqs),
    )
    needed = 1 if seqs else -(-len(entries) // SEQS_PER_MESSAGE)
    return _bodies(stored, b"".join(entry.data for entry in entries), largest, needed)


def snapshot_bodies(snapshot: StoredSnapshot, largest: int) -> list[bytes]:
    channel, seq, data, _, outline = snapshot
    sums = [snapshot_checksum(channel, seq, part) for part in (data, outline)]
    saved = SavedSnapshot(seq, len(data), sums[0], 1, outline, sums[1])
    return _bodies(saved, data, largest, 1)


def _bodies(
    record: StoredBatch | SavedSnapshot, data: bytes, largest: int, needed: int
) -> list[bytes]:
    """At least `needed` of them; the last one leaves room for the record.

    The number of messages is part of the record, and takes more bytes when it is large.
    """
    room = largest - RESERVED_BYTES
    first = max(len(data) - max(room - len(_encoder.encode(record)), 0), 0)
    before = [data[start : min(start + room, first)] for start in range(0, first, room)]
    before += [b""] * (needed - 1 - len(before))
    record = msgspec.structs.replace(record, parts=len(before) + 1)
    return [*before, body_of(record, data[first:])]


def snapshot_of(channel: Uri, saved: SavedSnapshot, data: bytes) -> StoredSnapshot:
    if snapshot_checksum(channel, saved.seq, data) == saved.checksum:
        return StoredSnapshot(channel, saved.seq, data, outline=outline_of(channel, saved))
    return StoredSnapshot(channel, saved.seq, b"", is_intact=False)


def outline_of(channel: Uri, saved: SavedSnapshot) -> bytes:
    """Empty if it is damaged."""
    checksum = snapshot_checksum(channel, saved.seq, saved.outline)
    return saved.outline if checksum == saved.outline_checksum else b""
