"""What the one writer does to the database, a transaction at a time."""

import json
import sqlite3
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from session_server.log.errors import FailedError
from session_server.log.protocol import (
    Batch,
    Durable,
    Outcome,
    Refused,
    RefusedBecause,
    StoredSnapshot,
)
from session_server.log.refusals import ahead, conflict
from session_server.log.sqlite.faults import code_of
from session_server.log.sqlite.ledger import NOWHERE, Ledger, Place
from session_server.schemas.wire import Seq, Uri

TRIMMED_AT_ONCE = 1_000

INSERT = "INSERT INTO entries VALUES (?, ?, ?, ?)"
FIND = "SELECT id, seq FROM entries WHERE id IN (SELECT value FROM json_each(?))"
SAVE = """
    INSERT INTO snapshots VALUES (?, ?, ?) ON CONFLICT (channel)
    DO UPDATE SET seq = excluded.seq, data = excluded.data WHERE excluded.seq >= seq
"""
TRIMMABLE = """
    SELECT max(seq), count(*) FROM (
        SELECT seq FROM entries
        WHERE channel = :channel AND seq <= :up_to
            AND seq <= (SELECT seq FROM snapshots WHERE channel = :channel)
        ORDER BY seq LIMIT :limit
    )
"""

Operation: TypeAlias = Callable[["Store"], Any]
Subject: TypeAlias = Batch | Operation


class InDoubtError(Exception):
    """A commit failed in a way that does not tell whether it happened."""


class Store:
    """A connection that writes. After an `InDoubtError` it must not be used again."""

    def __init__(self, connection: sqlite3.Connection, ledger: Ledger) -> None:
        ledger.load(connection)
        self._connection = connection
        self._ledger = ledger
        self._rows: list[tuple[Seq, int, str, bytes]] = []

    def write(self, subjects: Sequence[Subject]) -> list[Any]:
        """All of it in one transaction; an error before its end leaves no trace of any."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            results = [self._done(subject) for subject in subjects]
            self._flush()
        except BaseException:
            self._undo()
            raise
        self._commit()
        self._ledger.keep()
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
            raise InDoubtError from error

    def _undo(self) -> None:
        self._rows.clear()
        self._ledger.undo()
        with suppress(sqlite3.Error):
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def _done(self, subject: Subject) -> Any:
        if isinstance(subject, Batch):
            return self._appended(subject)
        self._flush()
        try:
            return subject(self)
        except FailedError as error:
            return error

    def _appended(self, batch: Batch) -> Outcome:
        ledger, channel = self._ledger, batch.channel
        number, last = ledger.place(channel)
        if last != batch.expected:
            return conflict(batch, last)
        if ledger.is_doubted(channel):
            words = f"Whether the last batch of {channel} is stored is not known: find out first."
            return Refused(RefusedBecause.CONFLICT, words)
        number = number or self._numbered(channel)
        first = ledger.next_seq
        ledger.next_seq = end = first + len(batch.entries)
        seqs = tuple(range(first, end))
        self._rows += [
            (seq, number, id_, data) for seq, (id_, data) in zip(seqs, batch.entries, strict=True)
        ]
        ledger.stage(channel, Place(number, end - 1 if seqs else last))
        return Durable(seqs)

    def _flush(self) -> None:
        if self._rows:
            self._connection.executemany(INSERT, self._rows)
            self._rows.clear()

    def _numbered(self, channel: Uri) -> int:
        number = self._ledger.new_number()
        self._connection.execute(
            "INSERT INTO channels (number, uri) VALUES (?, ?)", (number, channel)
        )
        return number

    def find(self, ids: Collection[str]) -> dict[str, Seq]:
        self._ledger.ask(ids)
        return dict(self._connection.execute(FIND, (json.dumps(list(ids)),)))

    def save_snapshot(self, snapshot: StoredSnapshot) -> None:
        number, last = self._ledger.place(snapshot.channel)
        if snapshot.seq > last:
            raise ahead(snapshot, last)
        if not number:
            number = self._numbered(snapshot.channel)
            self._ledger.stage(snapshot.channel, Place(number, last))
        self._connection.execute(SAVE, (number, snapshot.seq, snapshot.data))

    def trim(self, channel: Uri, up_to: Seq) -> bool:
        """Forgets a piece, the oldest first; says whether there is more to forget."""
        number = self._ledger.place(channel).number
        about = {"channel": number, "up_to": up_to, "limit": TRIMMED_AT_ONCE}
        highest, count = self._connection.execute(TRIMMABLE, about).fetchone()
        if count:
            place = (number, highest)
            self._connection.execute("DELETE FROM entries WHERE channel = ? AND seq <= ?", place)
            self._connection.execute("UPDATE channels SET floor = ?2 WHERE number = ?1", place)
        return bool(count == TRIMMED_AT_ONCE)

    def drop(self, channel: Uri) -> None:
        number = self._ledger.place(channel).number
        if not number:
            return
        execute = self._connection.execute
        execute("DELETE FROM entries WHERE channel = ?", (number,))
        execute("DELETE FROM snapshots WHERE channel = ?", (number,))
        execute("DELETE FROM channels WHERE number = ?", (number,))
        reached = self._ledger.next_seq - 1
        execute("UPDATE meta SET value = ? WHERE key = 'reached'", (reached,))
        self._ledger.stage(channel, NOWHERE)
