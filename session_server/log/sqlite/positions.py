"""Where every channel ends, kept in memory so that `expected` costs no query.

What a transaction changes is staged, and kept or undone with it. Belongs to the writer's thread.
"""

import sqlite3
from collections.abc import Collection, Iterable
from typing import NamedTuple

from session_server.schemas.wire import Seq, Uri


class Place(NamedTuple):
    """A channel's number in the database, and its last seq."""

    number: int
    last: Seq


NOWHERE = Place(0, 0)

PLACES = """
    SELECT uri, number, floor,
        (SELECT seq FROM places WHERE channel = number ORDER BY seq DESC LIMIT 1)
    FROM channels
"""
REACHED = """
    SELECT max(value, coalesce((SELECT max(seq) FROM entries), 0)) FROM meta WHERE key = 'reached'
"""


def last_seq_of(connection: sqlite3.Connection) -> Seq:
    """The highest seq that the database ever gave away, as far as it knows."""
    (reached,) = connection.execute(REACHED).fetchone()
    (floor,) = connection.execute("SELECT coalesce(max(floor), 0) FROM channels").fetchone()
    return max(int(reached), int(floor))


class Positions:
    def __init__(self) -> None:
        self.last_seq: Seq = 0
        self.next_seq: Seq = 1
        self.doubts: dict[Uri, list[frozenset[str]]] = {}
        self._next_number = 1
        self._kept: dict[Uri, Place] = {}
        self._staged: dict[Uri, Place] = {}
        self._asked: set[str] = set()

    def load(self, connection: sqlite3.Connection) -> None:
        """Begins again from what is stored and placed. Doubts stay: only `find` settles them."""
        rows = connection.execute(PLACES).fetchall()
        self._kept = {
            uri: Place(number, max(last or 0, floor)) for uri, number, floor, last in rows
        }
        self._next_number = max((place.number for place in self._kept.values()), default=0) + 1
        self.last_seq = last_seq_of(connection)
        self.undo()

    def go_on_from(self, seq: Seq) -> None:
        """The next entry comes after this seq."""
        self.last_seq = max(self.last_seq, seq)
        self.undo()

    def place(self, channel: Uri) -> Place:
        return self._staged.get(channel) or self._kept.get(channel) or NOWHERE

    def stage(self, channel: Uri, place: Place) -> None:
        self._staged[channel] = place

    def new_number(self) -> int:
        number = self._next_number
        self._next_number += 1
        return number

    def keep(self) -> None:
        self._kept.update(self._staged)
        for channel, place in self._staged.items():
            if place is NOWHERE:
                del self._kept[channel]
        if self._asked:
            self._settle_doubts()
        self.last_seq = self.next_seq - 1
        self.undo()

    def undo(self) -> None:
        self._staged.clear()
        self._asked.clear()
        self.next_seq = self.last_seq + 1

    def doubt(self, channel: Uri, ids: Iterable[str]) -> None:
        """A batch of the channel may be stored or not."""
        self.doubts.setdefault(channel, []).append(frozenset(ids))

    def ask(self, ids: Collection[str]) -> None:
        """Somebody finds out about these entries."""
        if self.doubts:
            self._asked.update(ids)

    def _settle_doubts(self) -> None:
        """A batch is stored whole or not at all, so that one of its ids tells of them all."""
        for channel, batches in tuple(self.doubts.items()):
            left = [ids for ids in batches if ids.isdisjoint(self._asked)]
            if left:
                self.doubts[channel] = left
            else:
                del self.doubts[channel]
