"""The form of the database, how an older form becomes this one, and whether a file has it at all.

What is looked at when a file is opened: SQLite's header, whose application it is, the version, all
tables and columns, the end of every channel; and each page of files up to `CHECKED_BYTES`, which
takes about 1.5 seconds per gigabyte. Damage elsewhere shows when it is read.
"""

import sqlite3
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from session_server.log.protocol import DamagedError, TooNewError
from session_server.schemas.wire import Seq

APPLICATION = int.from_bytes(b"SeLo")
CHECKED_BYTES = 256 * 2**20

META = {"version": 0, "epoch": "", "created": 0, "opened": 0, "reached": 0, "placed": 0}

Step: TypeAlias = Callable[[sqlite3.Connection], None]

FIRST_FORM = f"""
    PRAGMA application_id = {APPLICATION};
    CREATE TABLE meta (key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
    CREATE TABLE channels (
        number INTEGER PRIMARY KEY, uri TEXT NOT NULL UNIQUE, floor INTEGER NOT NULL DEFAULT 0
    );
    CREATE TABLE entries (
        seq INTEGER PRIMARY KEY, channel INTEGER NOT NULL, id TEXT NOT NULL UNIQUE,
        data BLOB NOT NULL
    );
    CREATE TABLE places (
        channel INTEGER, seq INTEGER, PRIMARY KEY (channel, seq)
    ) WITHOUT ROWID;
    CREATE TABLE snapshots (
        channel INTEGER PRIMARY KEY, seq INTEGER NOT NULL, data BLOB NOT NULL
    )
"""


def _create(connection: sqlite3.Connection) -> None:
    """`channel` is a channel's number: URIs are long. `floor` is 0 where nothing was trimmed.

    `places` is the index of entries by channel, but only up to `meta.placed`: see `Store.place`.
    `meta.reached` is the highest seq when a channel was last dropped.
    """
    for statement in FIRST_FORM.split(";"):
        connection.execute(statement)
    meta = META | {"created": time.time_ns()}
    connection.executemany("INSERT INTO meta VALUES (?, ?)", meta.items())


SECOND_FORM = """
    ALTER TABLE entries ADD COLUMN checksum INTEGER;
    ALTER TABLE snapshots ADD COLUMN checksum INTEGER;
    CREATE TABLE lasting (
        channel INTEGER, seq INTEGER, until INTEGER NOT NULL, size INTEGER NOT NULL,
        PRIMARY KEY (channel, seq)
    ) WITHOUT ROWID
"""


def _protect(connection: sqlite3.Connection) -> None:
    """What was written before has no checksum and is taken as it is.

    `lasting` lists the entries that trimming leaves until a time, with the size of their data.
    """
    for statement in SECOND_FORM.split(";"):
        connection.execute(statement)


THIRD_FORM = """
    ALTER TABLE snapshots RENAME TO old_snapshots;
    CREATE TABLE snapshots (
        channel INTEGER PRIMARY KEY, seq INTEGER NOT NULL,
        outline BLOB NOT NULL DEFAULT x'', outline_checksum INTEGER,
        data BLOB NOT NULL, checksum INTEGER
    );
    INSERT INTO snapshots (channel, seq, data, checksum)
        SELECT channel, seq, data, checksum FROM old_snapshots;
    DROP TABLE old_snapshots
"""


def _outline(connection: sqlite3.Connection) -> None:
    """Outlines stand before the data, so that what is large need not be read to get at them."""
    for statement in THIRD_FORM.split(";"):
        connection.execute(statement)


STEPS: tuple[Step, ...] = (_create, _protect, _outline)
"""Step n leads from version n to n + 1; version 0 is an empty file. Steps are never changed."""

SHAPE = {
    "meta": "key, value",
    "places": "channel, seq",
    "channels": "number, uri, floor",
    "entries": "seq, channel, id, data, checksum",
    "snapshots": "channel, seq, outline, outline_checksum, data, checksum",
    "lasting": "channel, seq, until, size",
}


def checksum_of(channel: int, seq: Seq, data: bytes) -> int:
    """Of an entry or a snapshot and its place, so that one in another's place does not match.

    An entry's id is not in it: once it is settled, nothing depends on that.
    """
    return zlib.crc32(data, seq ^ channel)


def version_of(connection: sqlite3.Connection, path: Path, known: int = len(STEPS)) -> int:
    """The file's version, before anything is done to it; raises when it is not ours to touch."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != APPLICATION:
        if tables or application:
            raise DamagedError(f"{path} is another application's database.")
        return 0
    row = connection.execute("SELECT value FROM meta WHERE key = 'version'").fetchone()
    if row is None or not isinstance(row[0], int):
        raise DamagedError(f"{path} does not say which version it has.")
    version = row[0]
    if version > known:
        reason = f"{path} was written by a newer session-server (form {version}, here {known})"
        raise TooNewError(
            f"{reason}: install that one, or use another data folder.", version, known
        )
    return version


def migrate(connection: sqlite3.Connection, version: int, steps: Sequence[Step] = STEPS) -> None:
    """Brings the file to the version that the steps lead to; each happens whole or not at all."""
    for number, step in enumerate(steps[version:], start=version + 1):
        connection.execute("BEGIN IMMEDIATE")
        try:
            step(connection)
            connection.execute("UPDATE meta SET value = ? WHERE key = 'version'", (number,))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def check(connection: sqlite3.Connection, path: Path) -> None:
    for table, columns in SHAPE.items():
        connection.execute(f"SELECT {columns} FROM {table} LIMIT 0")  # noqa: S608  # our own names
    lacking = META.keys() - {key for (key,) in connection.execute("SELECT key FROM meta")}
    if lacking:
        raise DamagedError(f"{path} does not say what its {min(lacking)} is.")
    if path.stat().st_size <= CHECKED_BYTES:
        (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise DamagedError(f"{path} is damaged: {found}. Put a backup in its place.")
