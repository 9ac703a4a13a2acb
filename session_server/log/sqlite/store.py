"""What the one writer does to the database, a transaction at a time."""

import json
import sqlite3
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from session_server.log.protocol import (
    AppendResult,
    Batch,
    Durable,
    Entry,
    FailedError,
    Refused,
    RefusedBecause,
    StoredSnapshot,
    ahead,
    conflict,
)
from session_server.log.sqlite.faults import code_of
from session_server.log.sqlite.positions import NOWHERE, Place, Positions
from session_server.log.sqlite.schema import checksum_of
from session_server.schemas.errors import SessionServerError
from session_server.schemas.limits import DECISION_BYTES_KEPT, DECISIONS_KEPT
from session_server.schemas.wire import Millis, Seq, Uri

TRIMMED_AT_ONCE = 1_000
SPARE_PAGES = 2_000
"""Free pages that stay in the file, for what is written next."""

PAGES_AT_ONCE = 256
"""Pages that are given back in one transaction: a megabyte, some milliseconds."""

UNPLACED = 1_024
"""Entries that may wait for their place in the index by channel; reading looks through them all."""

INSERT = "INSERT INTO entries (seq, channel, id, data, checksum) VALUES (?, ?, ?, ?, ?)"
INSERT_LASTING = "INSERT INTO lasting VALUES (?, ?, ?, ?)"
FIND = "SELECT id, seq FROM entries WHERE id IN (SELECT value FROM json_each(?))"
SAVE = """
    INSERT INTO snapshots (channel, seq, outline, outline_checksum, data, checksum)
    VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT (channel) DO UPDATE SET
        seq = excluded.seq, outline = excluded.outline,
        outline_checksum = excluded.outline_checksum, data = excluded.data,
        checksum = excluded.checksum
    WHERE excluded.seq >= seq
"""
PLACE = """
    INSERT INTO places SELECT channel, seq FROM entries
    WHERE seq > (SELECT value FROM meta WHERE key = 'placed') ORDER BY channel, seq
"""
PLACED = """
    UPDATE meta SET value = (SELECT max(seq) FROM entries)
    WHERE key = 'placed' AND value < (SELECT max(seq) FROM entries)
"""
END_LASTING = """
    DELETE FROM lasting WHERE channel = :channel AND (until <= :now OR seq IN (
        SELECT seq FROM (
            SELECT seq, row_number() OVER newest AS number, sum(size) OVER newest AS total
            FROM lasting WHERE channel = :channel AND until > :now
            WINDOW newest AS (ORDER BY seq DESC)
        ) WHERE number > :kept OR total > :bytes
    ))
"""
TRIMMABLE = """
    SELECT max(seq), count(*) FROM (
        SELECT seq FROM places
        WHERE channel = :channel
            AND seq <= max(:up_to, (SELECT floor FROM channels WHERE number = :channel))
            AND seq <= (SELECT seq FROM snapshots WHERE channel = :channel)
            AND seq NOT IN (SELECT seq FROM lasting WHERE channel = :channel)
        ORDER BY seq LIMIT :limit
    )
"""
FORGET_ENTRIES = """
    DELETE FROM entries WHERE seq IN (
        SELECT seq FROM places WHERE channel = :channel AND seq <= :up_to
            AND seq NOT IN (SELECT seq FROM lasting WHERE channel = :channel)
    )
"""
FORGET_PLACES = """
    DELETE FROM places WHERE channel = :channel AND seq <= :up_to
        AND seq NOT IN (SELECT seq FROM lasting WHERE channel = :channel)
"""

Operation: TypeAlias = Callable[["Store"], Any]
Subject: TypeAlias = Batch | Operation


class CommitUnknownError(SessionServerError):
    """A commit failed in a way that does not tell whether it happened."""

    code = "commitUnknown"

    def __init__(self, error: sqlite3.Error) -> None:
        super().__init__(str(error))
        self.error = error


class Store:
    """A connection that writes. After a `CommitUnknownError` it must not be used again."""

    def __init__(self, connection: sqlite3.Connection, positions: Positions) -> None:
        self._connection = connection
        self._positions = positions
        self._unplaced = 0
        self.has_freed = True
        self._has_shrunk = False
        self._rows: list[tuple[Seq, int, str, bytes, int]] = []
        self._lasting: list[tuple[int, Seq, Millis, int]] = []

    def write(self, subjects: Sequence[Subject]) -> list[Any]:
        """All of it in one transaction; an error before its end leaves no trace of any."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            results = [
                self._appended(subject) if isinstance(subject, Batch) else self._performed(subject)
                for subject in subjects
            ]
            self._flush()
        except BaseException:
            self._undo()
            raise
        self._commit()
        self._positions.keep()
        return results

    def _commit(self) -> None:
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._undo()
            # The frame that marks a commit is the last to be written, so without space for it
            # there is no commit. Any other error may have come after that frame.
            if code_of(error) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY):
                raise
            raise CommitUnknownError(error) from error

    def _undo(self) -> None:
        self._rows.clear()
        self._lasting.clear()
        self._positions.undo()
        with suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def _performed(self, operation: Operation) -> Any:
        self._flush()
        try:
            return operation(self)
        except FailedError as error:
            return error

    def _appended(self, batch: Batch) -> AppendResult:
        positions, channel = self._positions, batch.channel
        number, last = positions.place(channel)
        if last != batch.expected:
            return conflict(batch, last)
        if channel in positions.doubts:
            reason = f"Whether the last batch of {channel} is stored is not known: find out first."
            return Refused(RefusedBecause.CONFLICT, reason)
        if not number:
            number = self._numbered(channel)
        first = positions.next_seq
        positions.next_seq = end = first + len(batch.entries)
        for seq, entry in enumerate(batch.entries, first):
            data = entry.data
            self._rows.append((seq, number, entry.id, data, checksum_of(number, seq, data)))
            if entry.lasts_until:
                self._lasting.append((number, seq, entry.lasts_until, len(data)))
        if batch.entries:
            positions.stage(channel, Place(number, end - 1))
        return Durable(tuple(range(first, end)))

    def _flush(self) -> None:
        if self._rows:
            self._connection.executemany(INSERT, self._rows)
            self._unplaced += len(self._rows)
            self._rows.clear()
            if self._lasting:
                self._connection.executemany(INSERT_LASTING, self._lasting)
                self._lasting.clear()
            if self._unplaced >= UNPLACED:
                self.place()

    def place(self) -> None:
        """Brings the index by channel up to date.

        Entries of 64 channels touch 64 pages of it. Written with each commit, these would be most
        of what is written; by the thousand, they are little.
        """
        self._connection.execute(PLACE)
        self._connection.execute(PLACED)
        self._unplaced = 0

    def _numbered(self, channel: Uri) -> int:
        number = self._positions.new_number()
        self._connection.execute(
            "INSERT INTO channels (number, uri) VALUES (?, ?)", (number, channel)
        )
        self._positions.stage(channel, Place(number, 0))
        return number

    def adopt(self, entries: Sequence[tuple[Entry, Millis]]) -> None:
        """Entries of another log, under their own seqs and in order."""
        positions = self._positions
        for entry, until in entries:
            seq, channel, data = entry.seq, entry.channel, entry.data
            number = positions.place(channel).number or self._numbered(channel)
            self._rows.append((seq, number, entry.id, data, checksum_of(number, seq, data)))
            if until:
                self._lasting.append((number, seq, until, len(data)))
            positions.stage(channel, Place(number, seq))
            positions.next_seq = max(positions.next_seq, seq + 1)
        self._flush()

    def adopt_floors(self, floors: dict[Uri, Seq]) -> None:
        for channel, floor in floors.items():
            number, last = self._positions.place(channel)
            number = number or self._numbered(channel)
            update = "UPDATE channels SET floor = ? WHERE number = ?"
            self._connection.execute(update, (floor, number))
            self._positions.stage(channel, Place(number, max(last, floor)))
            self._positions.next_seq = max(self._positions.next_seq, floor + 1)

    def forget_epoch(self) -> None:
        self._connection.execute("UPDATE meta SET value = '' WHERE key = 'epoch'")

    def lasting(self) -> dict[Seq, Millis]:
        return dict(self._connection.execute("SELECT seq, until FROM lasting"))

    def find(self, ids: Collection[str]) -> dict[str, Seq]:
        self._positions.ask(ids)
        return dict(self._connection.execute(FIND, (json.dumps(list(ids)),)))

    def save_snapshot(self, snapshot: StoredSnapshot) -> None:
        number, last = self._positions.place(snapshot.channel)
        if snapshot.seq > last:
            raise ahead(snapshot, last)
        if not number:
            number = self._numbered(snapshot.channel)
        parts = (snapshot.outline, snapshot.data)
        sums = [checksum_of(number, snapshot.seq, part) for part in parts]
        row = (number, snapshot.seq, parts[0], sums[0], parts[1], sums[1])
        self._connection.execute(SAVE, row)

    def trim(self, channel: Uri, up_to: Seq, now: Millis = 0) -> bool:
        """Forgets a piece, the oldest first; says whether there is more to forget."""
        number = self._positions.place(channel).number
        if not number:
            return False
        self.place()
        about = {"channel": number, "up_to": up_to, "limit": TRIMMED_AT_ONCE}
        bounds = {"now": now, "kept": DECISIONS_KEPT, "bytes": DECISION_BYTES_KEPT}
        self._connection.execute(END_LASTING, about | bounds)
        highest, count = self._connection.execute(TRIMMABLE, about).fetchone()
        if count:
            self._forget(number, highest)
            update = "UPDATE channels SET floor = max(floor, ?) WHERE number = ?"
            self._connection.execute(update, (highest, number))
        return bool(count == TRIMMED_AT_ONCE)

    def drop(self, channel: Uri) -> None:
        number = self._positions.place(channel).number
        if not number:
            return
        self.place()
        execute = self._connection.execute
        execute("DELETE FROM lasting WHERE channel = ?", (number,))
        self._forget(number, self._positions.next_seq)
        execute("DELETE FROM snapshots WHERE channel = ?", (number,))
        execute("DELETE FROM channels WHERE number = ?", (number,))
        reached = self._positions.next_seq - 1
        execute("UPDATE meta SET value = ? WHERE key = 'reached'", (reached,))
        self._positions.stage(channel, NOWHERE)

    def _forget(self, number: int, up_to: Seq) -> None:
        self.has_freed = True
        for statement in (FORGET_ENTRIES, FORGET_PLACES):
            self._connection.execute(statement, {"channel": number, "up_to": up_to})

    def shrink(self) -> bool:
        """Gives some of the file's free pages back; says whether there may be more to give back.

        A transaction of its own. The file itself becomes shorter with a checkpoint.
        """
        if not self.has_freed:
            return False
        free = self._free_pages()
        pages = min(free - SPARE_PAGES, PAGES_AT_ONCE)
        if pages > 0:
            # `execute` would stop after the first page.
            self._connection.executescript(f"PRAGMA incremental_vacuum({pages})")
            if self._free_pages() < free:
                self._has_shrunk = True
                return True
        self.has_freed = False
        if self._has_shrunk:
            self._has_shrunk = False
            self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        return False

    def _free_pages(self) -> int:
        (free,) = self._connection.execute("PRAGMA freelist_count").fetchone()
        return int(free)
