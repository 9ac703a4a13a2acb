"""What every log promises, and the few shapes it deals in."""

import secrets
import time
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol, TypeAlias

from session_server.schemas.wire import Millis, Seq, Uri


class NewEntry(NamedTuple):
    """An entry on its way into the log. `id` is the writer's own and never used twice.

    `lasts_until`: trimming does not remove it before that time.
    """

    id: str
    data: bytes
    lasts_until: Millis = 0


class Entry(NamedTuple):
    """`is_intact` is false when the stored bytes do not match their checksum."""

    seq: Seq
    channel: Uri
    id: str
    data: bytes
    is_intact: bool = True


class Batch(NamedTuple):
    """Entries of one channel that become durable together, or not at all.

    `expected` is the seq of the channel's last entry as the writer knows it, 0 for none.
    """

    channel: Uri
    expected: Seq
    entries: tuple[NewEntry, ...]


class Durable(NamedTuple):
    """All of it is stored; `seqs` are the entries' places, in their order."""

    seqs: tuple[Seq, ...]


class RefusedBecause(StrEnum):
    CONFLICT = "conflict"
    FULL = "full"
    READ_ONLY = "readOnly"
    BROKEN = "broken"
    CLOSED = "closed"


class Refused(NamedTuple):
    """None of it is stored, and never will be. `words` tell an operator what to do."""

    because: RefusedBecause
    words: str


class Unknown(NamedTuple):
    """It may be stored or not: look for the entries' ids before saying anything."""

    words: str


Outcome: TypeAlias = Durable | Refused | Unknown


class Sync(StrEnum):
    """What `Durable` survives: with `FULL` a power cut, with `NORMAL` the death of the process.

    After a power cut, a log with `NORMAL` may have lost its last entries; it then has a new epoch.
    """

    FULL = "full"
    NORMAL = "normal"


class StoredSnapshot(NamedTuple):
    """A channel's state after its entry `seq`; `data` is the channel's own encoding."""

    channel: Uri
    seq: Seq
    data: bytes
    is_intact: bool = True


EPOCH_ORIGIN = 1_767_225_600
"""The start of 2026: counted from here, seqs stay below 2**43 for 68 years."""

EPOCH_RATE = 4_096
EPOCH_STEP = 2**24
EPOCH_CHANCE = 2**28


class Epoch(NamedTuple):
    """A stretch of the log in which no stored entry was lost; positions tell which one they are of.

    `first` is the position before its first entry. What a client has seen below that, or beyond the
    log's end, is of another history. So an epoch begins beyond every seq that earlier ones may have
    given away, though nobody can tell how far they had come when entries are gone: seqs follow the
    clock, faster than a host writes for long. Where they are ahead of it, because much was written
    or little time has passed, it is a step beyond what is known, and some more by chance, so that
    the same backup, put back twice, does not lead to the same numbers.
    """

    first: Seq
    name: str

    def __str__(self) -> str:
        return f"{self.first}-{self.name}"

    @classmethod
    def after(cls, known: Seq) -> "Epoch":
        """A new one, where the log is known to have reached this seq; 0 if nothing is known."""
        by_clock = int((time.time() - EPOCH_ORIGIN) * EPOCH_RATE)
        beyond = known + EPOCH_STEP + secrets.randbelow(EPOCH_CHANCE)
        return cls(max(by_clock, beyond), secrets.token_hex(8))

    @classmethod
    def read(cls, text: str) -> "Epoch | None":
        first, dash, name = text.partition("-")
        return cls(int(first), name) if dash and first.isascii() and first.isdigit() else None


class Log(Protocol):
    """One total order of entries, in channels.

    Order: seqs increase over the whole log, in the order in which batches became durable; they need
    not be dense. The entries of a batch are neighbours within their channel.

    Atomicity: a batch is stored whole or not at all. It is refused with `CONFLICT` when the
    channel's last seq is not `expected`, when the log has one of its ids already, and while an
    earlier batch of the channel is `Unknown` and `find` was not asked about it. A channel has at
    most one batch in flight; batches of different channels share a commit where the backend can.
    What is appended, saved, trimmed and dropped takes effect in the order in which it was asked.

    Durability: when `Durable` is reported, the entries survive the death of the process and, with
    full sync, a power cut. `settled` is called exactly once per batch, on the event loop's thread,
    never before `append` has returned; for one channel in the order of its batches.

    Epoch: stays the same as long as no stored entry was ever lost. A log that begins anew has
    another one, and all its seqs are higher than those that clients may know.

    Integrity: what is read back is what was written, or is marked as not intact. One damaged entry
    or snapshot does not keep the others from being read.
    """

    @property
    def epoch(self) -> Epoch: ...

    @property
    def last_seq(self) -> Seq:
        """The highest seq that is durable; where none is of this epoch, the epoch's first."""
        ...

    def append(self, batch: Batch, settled: Callable[[Outcome], None]) -> None:
        """Takes the batch and returns at once."""
        ...

    async def read(
        self, *, after: Seq, limit: int, channels: Collection[Uri] | None = None
    ) -> Sequence[Entry]:
        """Durable entries with a higher seq, in order, of these channels or of all."""
        ...

    async def read_uncovered(self, *, after: Seq, limit: int) -> Sequence[Entry]:
        """The same of all channels, without what the snapshot of its channel covers."""
        ...

    async def find(self, ids: Collection[str]) -> dict[str, Seq]:
        """Which of these entries are stored, and where. Settles an unknown outcome.

        While that cannot be told, it raises `FailedError`: ask again later.
        """
        ...

    def follow(self, after: Seq) -> AsyncIterator[Sequence[Entry]]:
        """Entries as they become durable, whoever wrote them, beginning after `after`; no gaps.

        What was trimmed or dropped before it was read is passed over. Ends when the log is closed.
        """
        ...

    async def save_snapshot(self, snapshot: StoredSnapshot) -> None:
        """Replaces the channel's older snapshot; a newer one stays.

        A snapshot beyond the channel's last entry fails with `CONFLICT`.
        """
        ...

    async def snapshots(self) -> Sequence[StoredSnapshot]:
        """The latest snapshot of every channel that has one."""
        ...

    async def trim(self, channel: Uri, up_to: Seq, now: Millis = 0) -> None:
        """Forgets the channel's entries up to and including this seq.

        Only what a snapshot covers may go: a higher seq than the snapshot's is lowered to it.
        Entries that last until after `now` stay, the newest `DECISIONS_KEPT` of them with at most
        `DECISION_BYTES_KEPT`. They go with a later call, which need not name a higher seq.
        """
        ...

    async def floors(self) -> dict[Uri, Seq]:
        """For each trimmed channel, the highest seq that was forgotten.

        Below it only entries that last are left.
        """
        ...

    async def drop(self, channel: Uri) -> None:
        """Forgets a channel altogether: its entries, its snapshot and its floor."""
        ...

    async def close(self) -> None:
        """Settles what is in flight, then refuses the rest as `CLOSED`."""
        ...
