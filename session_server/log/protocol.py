"""What every log promises: its shapes, its outcomes and its errors.

Shapes that are made for every action are Structs: they are made faster than named tuples, and hold
nothing that the garbage collector would have to look at.
"""

import secrets
import time
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol, TypeAlias

import msgspec

from session_server.schemas.errors import SessionServerError
from session_server.schemas.wire import Millis, Seq, Uri


class NewEntry(msgspec.Struct, frozen=True, gc=False):
    """An entry on its way into the log. `id` is the writer's own and never used twice.

    `lasts_until`: trimming does not remove it before that time.
    """

    id: str
    data: bytes
    lasts_until: Millis = 0


class Entry(msgspec.Struct, frozen=True, gc=False):
    """`is_intact` is false when the stored bytes do not match their checksum."""

    seq: Seq
    channel: Uri
    id: str
    data: bytes
    is_intact: bool = True


class Batch(msgspec.Struct, frozen=True, eq=False, gc=False):
    """Entries of one channel that become durable together, or not at all. Each is only itself.

    `expected` is the seq of the channel's last entry as the writer knows it, 0 for none.
    """

    channel: Uri
    expected: Seq
    entries: tuple[NewEntry, ...]


class Durable(msgspec.Struct, frozen=True, gc=False):
    """All of it is stored; `seqs` are the entries' places, in their order."""

    seqs: tuple[Seq, ...]


class RefusedBecause(StrEnum):
    CONFLICT = "conflict"
    FULL = "full"
    READ_ONLY = "readOnly"
    BROKEN = "broken"
    CLOSED = "closed"


class Refused(NamedTuple):
    """None of it is stored, and never will be. `reason` tells an operator what to do."""

    because: RefusedBecause
    reason: str


class Unknown(NamedTuple):
    """It may be stored or not: look for the entries' ids before saying anything."""

    reason: str


AppendResult: TypeAlias = Durable | Refused | Unknown
OnAppended: TypeAlias = Callable[[Sequence[tuple[Batch, AppendResult]]], None]


class Sync(StrEnum):
    """What `Durable` survives: with `FULL` a power cut, with `NORMAL` the death of the process.

    After a power cut, a log with `NORMAL` may have lost its last entries; it then has a new epoch.
    """

    FULL = "full"
    NORMAL = "normal"


class StoredSnapshot(NamedTuple):
    """A channel's state after its entry `seq`; `data` is the channel's own encoding.

    `outline` is the part of it that a start needs, if that is not all of it; it can be read alone.
    One that is damaged is empty.
    """

    channel: Uri
    seq: Seq
    data: bytes
    is_intact: bool = True
    outline: bytes = b""


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
    full sync, a power cut. `settled` is called with the result of each batch exactly once, of all
    of them together or of some at a time, on the event loop's thread and never before `append` has
    returned; for one channel in the order of its batches.

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

    def append(self, batches: Sequence[Batch], settled: OnAppended) -> None:
        """Takes the batches, which are independent of each other, and returns at once."""
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
        """Entries as they become durable, from any writer, beginning after `after`; no gaps.

        What was trimmed or dropped before it was read is passed over. Ends when the log is closed.
        """
        ...

    async def save_snapshot(self, snapshot: StoredSnapshot) -> None:
        """Replaces the channel's older snapshot; a newer one stays.

        A snapshot beyond the channel's last entry fails with `CONFLICT`.
        """
        ...

    async def snapshots(self, channels: Collection[Uri] | None = None) -> Sequence[StoredSnapshot]:
        """The latest snapshot of each of these channels, or of all, that have one."""
        ...

    async def outlines(self) -> Sequence[StoredSnapshot]:
        """The same of every channel, without `data`: only outlines are read."""
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

    async def drop(self, channel: Uri) -> Seq:
        """Forgets a channel altogether: its entries, its snapshot and its floor.

        Whatever of it was stored before has at most the returned seq; if there is one of its name
        later, all of that has a higher one.
        """
        ...

    async def close(self) -> None:
        """Settles what is in flight, then refuses the rest as `CLOSED`."""
        ...


MESSAGE_BYTES = 7_500
"""Of a message between nodes; PostgreSQL takes less than 8,000."""


class SharedLog(Log, Protocol):
    """One that several nodes can have open at the same time.

    They can tell each other messages, which are not stored. A message reaches all nodes that are
    connected, the one that sent it too, those of one node in their order; while there is no
    connection it is lost.
    """

    @property
    def is_first(self) -> bool:
        """Whether no other node had it open when this one opened it."""
        ...

    @property
    def is_joined(self) -> bool:
        """Whether it may be written to: no host has it for itself."""
        ...

    async def refresh(self) -> None:
        """Afterwards `last_seq` is not below any entry that was durable when this was called.

        From any writer. Raises a `FailedError` while the log cannot be asked.
        """
        ...

    def broadcast(self, message: str) -> None:
        """Returns at once. The message has at most `MESSAGE_BYTES`, and no NUL."""
        ...

    def listen(self, heard: Callable[[str], None]) -> None:
        """Calls with every message from now on."""
        ...


class LogError(SessionServerError):
    """A log cannot be opened, read or written; `reason` tells an operator what to do."""

    code = "log"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class OpenError(LogError):
    """The log cannot be opened."""

    code = "notOpened"


class UrlError(OpenError):
    """The address of the log is not valid."""

    code = "url"


class BackendMissingError(OpenError):
    """The backend's driver is not installed; the message names the extra to install."""

    code = "backendMissing"


class InUseError(OpenError):
    """Another process uses the log; `pid` is that process, where it is known."""

    code = "inUse"
    can_retry = True

    def __init__(self, reason: str, pid: int | None) -> None:
        super().__init__(reason)
        self.pid = pid


class NotWritableError(OpenError):
    """The log can be read but not written."""

    code = "notWritable"


class DataLostError(OpenError):
    """Entries that were stored before are missing; it opens with `accept_data_loss`."""

    code = "dataLost"


class DamagedError(OpenError):
    """The stored data is damaged."""

    code = "damaged"


class TooNewError(OpenError):
    """A newer release has written the log.

    `version` is the file's, `known` the highest that this program can read.
    """

    code = "tooNew"

    def __init__(self, reason: str, version: int, known: int) -> None:
        super().__init__(reason)
        self.version = version
        self.known = known


class FailedError(LogError):
    """An operation failed and changed nothing: reading, taking a snapshot, trimming, dropping."""

    def __init__(self, because: RefusedBecause, reason: str) -> None:
        super().__init__(reason)
        self.because = because
        self.code = because.value
        self.can_retry = because not in {RefusedBecause.CLOSED, RefusedBecause.CONFLICT}


CLOSED = Refused(RefusedBecause.CLOSED, "The log is closed.")
KNOWN_ID = Refused(RefusedBecause.CONFLICT, "The log has an entry with one of these ids already.")


def conflict(batch: Batch, last: Seq) -> Refused:
    reason = f"{batch.channel} ends at {last}, not at {batch.expected}."
    return Refused(RefusedBecause.CONFLICT, reason)


def ahead(snapshot: StoredSnapshot, last: Seq) -> FailedError:
    """A snapshot of what never happened, or of a channel that was dropped meanwhile."""
    reason = f"{snapshot.channel} ends at {last}, before the snapshot's {snapshot.seq}."
    return FailedError(RefusedBecause.CONFLICT, reason)
