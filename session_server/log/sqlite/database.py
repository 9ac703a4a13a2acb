"""The file: its claim, the connection that writes and the one that reads.

Only the first ever writes or checkpoints. So nothing stops it, and SQLite's WAL-reset bug, which
takes two connections that do (all versions before 3.51.3), cannot happen.
"""

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from session_server.log.protocol import (
    CLOSED,
    DataLostError,
    Epoch,
    FailedError,
    NotWritableError,
    OpenError,
    RefusedBecause,
    Sync,
)
from session_server.log.sqlite.claim import SYNCED, Claim, FileState, this_boot
from session_server.log.sqlite.faults import named, opening_error, refusal
from session_server.log.sqlite.positions import Positions, last_seq_of
from session_server.log.sqlite.schema import check, migrate, version_of
from session_server.log.sqlite.store import CommitUnknownError, Store
from session_server.schemas.wire import Seq

logger = logging.getLogger("session_server.log")

T = TypeVar("T")

WAL_PAGES = 4_000
"""Pages after which a commit also tidies up. The WAL stays near 16 MB; its blocks are reused."""

WAL_BYTES = WAL_PAGES * 4_120
"""What the WAL takes by then: each page with its header."""

WAL_PIECE = bytes(1_048_576)
INCREMENTAL = 2
CACHE_KIB = 16_000
LOCKED_SECONDS = 5.0


class Database:
    """Raises `OpenError` when there is no writing to the file, or no trusting it.

    That entries are missing which it had is a `DataLostError`, unless loss is accepted.
    """

    epoch: Epoch

    def __init__(self, path: Path, sync: Sync, *, accept_data_loss: bool = False) -> None:
        self._path = path.resolve()
        self._sync = sync
        self._accepts_loss = accept_data_loss
        self._lock = threading.Lock()
        self._writing: sqlite3.Connection | None = None
        self._reading: sqlite3.Connection | None = None
        self._is_closed = False
        self._is_wal_grown = sync is not Sync.FULL
        self.positions = Positions()
        if not self._path.parent.is_dir():
            raise NotWritableError(f"There is no folder {self._path.parent}: make it first.")
        try:
            self._claim = Claim(self._path)
        except OSError as error:
            raise opening_error(self._path, error) from error
        try:
            self._begin()
        except BaseException as error:
            self._disconnect()
            self._claim.release()
            if isinstance(error, (OSError, sqlite3.Error)):
                raise opening_error(self._path, error) from error
            raise

    def _begin(self) -> None:
        known = self._claim.state()
        if known is not None and known.seq:
            self._look_for_loss(known)
        self._claim.hold(self._path)
        connection = self._connect()
        version = version_of(connection, self._path)
        if not version:
            connection.execute("PRAGMA auto_vacuum = incremental")
        self._set_up(connection)
        migrate(connection, version)
        check(connection, self._path)
        self._make_shrinkable(connection)
        self._tidy(connection)
        self._load(connection)
        self._recognize(connection)
        self._reading = self._connected("ro")

    def _look_for_loss(self, known: FileState) -> None:
        """Before anything is written: what is missing may still be found and put back."""
        last = self._found_seq()
        if last is None:
            reason = f"{self._path} is missing or empty; it had entries up to {known.seq}"
        elif last < known.seq:
            reason = (
                f"{self._path} ends at entry {last} and had come to {known.seq}: its -wal file is"
                " missing or cut short, or an older copy was put in its place"
            )
        else:
            return
        if last is None or known.is_synced:
            if not self._accepts_loss:
                advice = "Put back what is missing, or start once with --accept-data-loss"
                raise DataLostError(f"{reason}. {advice} to go on without it.")
            logger.warning("%s. The loss is accepted.", reason)
        else:
            logger.warning("%s. Without full sync a power cut can do that.", reason)

    def _found_seq(self) -> Seq | None:
        """Where the file ends; `None` if there is nothing in it."""
        if not self._path.exists() or not self._path.stat().st_size:
            return None
        with closing(self._connected("ro")) as connection:
            is_ours = version_of(connection, self._path) > 0
            return last_seq_of(connection) if is_ours else None

    def _make_shrinkable(self, connection: sqlite3.Connection) -> None:
        """A file of the first form is written anew, once, so that it can give back free pages."""
        (mode,) = connection.execute("PRAGMA auto_vacuum").fetchone()
        if mode == INCREMENTAL:
            return
        connection.execute("PRAGMA auto_vacuum = incremental")
        try:
            connection.execute("VACUUM")
        except sqlite3.Error as error:
            logger.warning("%s cannot be made smaller for now: %s", self._path, named(error))

    def _connect(self) -> sqlite3.Connection:
        self._writing = self._connected("rw")
        return self._writing

    def _connected(self, mode: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{self._path.as_uri()}?mode={mode}",
            uri=True,
            timeout=LOCKED_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        # A damaged id must not keep the rows around it from being read.
        connection.text_factory = partial(str, encoding="utf-8", errors="replace")
        return connection

    def _set_up(self, connection: sqlite3.Connection) -> None:
        (mode,) = connection.execute("PRAGMA journal_mode = wal").fetchone()
        if mode != "wal":
            raise OpenError(f"{self._path} is on a file system without shared memory for a log.")
        connection.execute(f"PRAGMA synchronous = {self._sync}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")

    def _disconnect(self) -> None:
        """The one that writes is closed last: SQLite checkpoints when the last one is closed."""
        for connection in (self._reading, self._writing):
            if connection is not None:
                with suppress(sqlite3.Error):
                    connection.close()
        self._reading = self._writing = None

    def _tidy(self, connection: sqlite3.Connection) -> bool:
        """Syncs what the WAL holds, moves it into the database, and empties the WAL."""
        (is_busy, _, _) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not is_busy

    def _load(self, connection: sqlite3.Connection) -> None:
        try:
            Store(connection, self.positions).write([Store.place])
        except CommitUnknownError as doubt:
            raise doubt.error from doubt
        self.positions.load(connection)

    def _recognize(self, connection: sqlite3.Connection) -> None:
        """A new epoch, unless this is what the last claim left. Something is always written."""
        (text,) = connection.execute("SELECT value FROM meta WHERE key = 'epoch'").fetchone()
        last, known = self.positions.last_seq, self._claim.state()
        epoch = Epoch.read(text)
        if epoch is None or known is None or not known.fits(text, self._path.stat().st_ino, last):
            epoch = Epoch.after(max(last, 0 if known is None else known.seq))
        self.epoch = epoch
        self.positions.go_on_from(epoch.first)
        connection.executemany(
            "UPDATE meta SET value = ? WHERE key = ?",
            [
                (str(epoch), "epoch"),
                (self.positions.last_seq, "reached"),
                (time.time_ns(), "opened"),
            ],
        )
        self._stand(SYNCED if self._sync is Sync.FULL else this_boot())

    def _stand(self, boot: str) -> None:
        inode = self._path.stat().st_ino
        self._claim.write(FileState(self.positions.last_seq, str(self.epoch), inode, boot))

    def writing(self) -> sqlite3.Connection:
        """The connection that writes; a new one, with nothing left in doubt, after `distrust`."""
        if self._writing is None:
            with self._lock:
                try:
                    self._recover()
                except (OSError, sqlite3.Error, OpenError) as error:
                    self._disconnect()
                    raise FailedError(*refusal(error)) from error
        assert self._writing is not None
        return self._writing

    def _recover(self) -> None:
        """SQLite reads the WAL afresh, and what it finds goes where it cannot change any more."""
        connection = self._connect()
        self._set_up(connection)
        if not self._tidy(connection):
            raise sqlite3.OperationalError("another program is using the database")
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self._load(connection)
        self._reading = self._connected("ro")
        self._is_wal_grown = self._sync is not Sync.FULL

    def distrust(self) -> None:
        """Both connections go: as long as one is there, SQLite does not look at the WAL again."""
        with self._lock:
            self._disconnect()

    @property
    def is_readable(self) -> bool:
        return self._reading is not None

    def read(self, question: Callable[[sqlite3.Connection], T]) -> T:
        with self._lock:
            if self._is_closed:
                raise FailedError(*CLOSED)
            if self._reading is None:
                raise FailedError(RefusedBecause.BROKEN, "The log's disk has failed.")
            try:
                return question(self._reading)
            except sqlite3.Error as error:
                raise FailedError(*refusal(error)) from error

    def note_progress(self) -> None:
        self._claim.reach(self.positions.last_seq)

    def grow_wal(self) -> bool:
        """Makes the WAL's file longer by a piece, up to its usual size; whether to go on.

        A commit that makes the file longer takes twice as long to sync as one that writes over
        blocks. SQLite reads a WAL up to its last whole transaction, whatever follows. Belongs to
        the writer's thread: nobody else writes to the WAL.
        """
        if self._is_wal_grown:
            return False
        path = self._path.with_name(f"{self._path.name}-wal")
        with suppress(OSError), path.open("ab", buffering=0) as wal:
            size = wal.tell()
            if size < WAL_BYTES:
                try:
                    is_whole = wal.write(WAL_PIECE) == len(WAL_PIECE)
                    os.fsync(wal)
                except OSError:
                    is_whole = False
                if is_whole:
                    return True
                wal.truncate(size)  # what is left of the disk is for what people write
        self._is_wal_grown = True
        return False

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            with suppress(OSError, sqlite3.Error):
                if self._writing is not None and self._tidy(self._writing):
                    self._stand(SYNCED)
            self._disconnect()
        self._claim.release()
