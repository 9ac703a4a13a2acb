"""The latest envelopes of a channel, at hand for clients that come back.

Bounded by number, size and age: what is beyond that may go from the log too, once a snapshot covers
it. Where nothing happens for a while nothing is kept at hand either, but the log still has it. The
same when all channels together keep too much: the one that was quiet for the longest gives way.
"""

from collections import OrderedDict, deque
from typing import NamedTuple, Protocol

import msgspec

from session_server.schemas.limits import (
    ENVELOPE_BYTES_KEPT,
    ENVELOPE_BYTES_PER_HOST,
    ENVELOPES_KEPT,
)
from session_server.schemas.wire import Millis, Seq


class Kept(msgspec.Struct, frozen=True, gc=False):
    """Nothing in it can be part of a cycle, so the collector need not look at all of them."""

    seq: Seq
    at: Millis
    envelope: bytes


class Resting(NamedTuple):
    """The last of the entries that only the log has."""

    seq: Seq
    at: Millis


class History:
    """`floor`: a client that has seen less gets a snapshot. `outlived`: the log may be trimmed
    up to here. `resting`: the newest envelope that is not in memory, and whose entry is still kept.
    """

    def __init__(self, memory: "EnvelopeMemory") -> None:
        self.floor: Seq = 0
        self.outlived: Seq = 0
        self._kept: deque[Kept] = deque()
        self._bytes = 0
        self._memory = memory
        self.resting: Resting | None = None

    def keep(self, seq: Seq, at: Millis, envelope: bytes) -> None:
        self._kept.append(Kept(seq, at, envelope))
        self._bytes += len(envelope)
        self._memory.kept(self, len(envelope))
        while len(self._kept) > ENVELOPES_KEPT or self._bytes > ENVELOPE_BYTES_KEPT:
            self._forget_oldest()

    def begin(self, floor: Seq) -> None:
        """What was before this position cannot be replayed, only shown."""
        self.floor = max(self.floor, floor)

    def resume(self, seq: Seq, now: Millis) -> None:
        """After a start: up to here a snapshot has it all, and the log maybe some."""
        self.begin(seq)
        self.resting = Resting(seq, now)

    def inherit(self, before: "History") -> None:
        """It was read again, and what it rests on is as old as it was."""
        old = before.resting
        if self.resting is not None and old is not None and self.resting.seq == old.seq:
            self.resting = old

    def skip(self, seq: Seq) -> None:
        """An entry that nobody will ever ask for."""
        self.floor = self.outlived = seq

    def is_quiet(self, before: Millis) -> bool:
        """Whether nothing has happened since."""
        return not self._kept or self._kept[-1].at < before

    def rest(self, before: Millis) -> bool:
        """Lets go of everything if nothing has happened since; whether there was anything."""
        if not self._kept or not self.is_quiet(before):
            return False
        self.let_go()
        return True

    def let_go(self) -> None:
        """Keeps nothing at hand any more; the log still has it."""
        if self._kept:
            last = self._kept[-1]
            self.resting = Resting(last.seq, last.at)
            self.floor = last.seq
        self._memory.let_go(self, self._bytes)
        self._kept.clear()
        self._bytes = 0

    def forget(self, before: Millis) -> bool:
        """Drops what is older; whether there was any."""
        outlived = self.outlived
        if self.resting is not None and self.resting.at < before:
            self.outlived = max(outlived, self.resting.seq)
            self.resting = None
        while self._kept and self._kept[0].at < before:
            self._forget_oldest()
        return self.outlived > outlived

    def _forget_oldest(self) -> None:
        oldest = self._kept.popleft()
        self._bytes -= len(oldest.envelope)
        self._memory.bytes -= len(oldest.envelope)
        self.floor = self.outlived = oldest.seq

    def since(self, seq: Seq) -> list[tuple[Seq, bytes]] | None:
        """Envelopes after this position, or `None` if some of them are no longer at hand."""
        if seq < self.floor:
            return None
        newer: list[tuple[Seq, bytes]] = []
        for kept in reversed(self._kept):
            if kept.seq <= seq:
                break
            newer.append((kept.seq, kept.envelope))
        return newer[::-1]


class Keeping(Protocol):
    """What has something at hand, and can let go of it."""

    def let_go(self) -> None: ...


class EnvelopeMemory:
    """What is kept at hand of all channels together, in bytes."""

    def __init__(self) -> None:
        self.bytes = 0
        self._histories: OrderedDict[Keeping, None] = OrderedDict()
        """Those that keep something; the one that was used last is the last."""

    def kept(self, history: "Keeping", size: int) -> None:
        self.bytes += size
        self._histories[history] = None
        self._histories.move_to_end(history)
        while self.bytes > ENVELOPE_BYTES_PER_HOST:
            next(iter(self._histories)).let_go()

    def let_go(self, history: "Keeping", size: int) -> None:
        self.bytes -= size
        self._histories.pop(history, None)
