"""The latest envelopes of a channel, at hand for clients that come back; bounded by number and age.

What is forgotten here may go from the log too, once a snapshot covers it.
"""

from collections import deque

import msgspec

from session_server.schemas.limits import ENVELOPES_KEPT
from session_server.schemas.wire import Millis, Seq


class Kept(msgspec.Struct, frozen=True, gc=False):
    """Nothing in it can be part of a cycle, so the collector need not look at all of them."""

    seq: Seq
    at: Millis
    envelope: bytes


class History:
    """`floor`: from this position on, nothing is missing."""

    def __init__(self) -> None:
        self.floor: Seq = 0
        self._kept: deque[Kept] = deque()

    def keep(self, seq: Seq, at: Millis, envelope: bytes) -> None:
        self._kept.append(Kept(seq, at, envelope))
        if len(self._kept) > ENVELOPES_KEPT:
            self._forget_oldest()

    def begin(self, floor: Seq) -> None:
        """What was before this position cannot be replayed, only shown."""
        self.floor = max(self.floor, floor)

    def forget(self, before: Millis) -> bool:
        """Drops what is older; whether there was any."""
        floor = self.floor
        while self._kept and self._kept[0].at < before:
            self._forget_oldest()
        return self.floor > floor

    def _forget_oldest(self) -> None:
        self.floor = self._kept.popleft().seq

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
