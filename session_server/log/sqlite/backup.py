"""A look at a database through a connection that only reads, while a host may be writing to it."""

import os
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

from session_server.log.protocol import DamagedError, NotWritableError, OpenError
from session_server.log.sqlite import reading
from session_server.log.sqlite.faults import opening_error
from session_server.log.sqlite.schema import version_of
from session_server.schemas.wire import Uri

READ_AT_ONCE = 5_000
LOCKED_SECONDS = 5.0


class Backup(NamedTuple):
    """What a copy holds. `damaged` are the channels that it holds damaged, each with the reason."""

    entries: int
    channels: int
    size: int
    damaged: dict[Uri, str]


def back_up(source: Path, target: Path) -> Backup:
    """Copies a database as it is at one moment; raises an `OpenError` and then leaves no copy.

    The copy is of no epoch: a host that is started with it begins a new one, and clients that come
    back to it get snapshots.
    """
    if target.exists():
        raise NotWritableError(f"{target} exists already: name a file that does not.")
    unfinished = target.with_name(f"{target.name}.part")
    try:
        with closing(connected(source)) as original:
            version_of(original, source)
            os.close(os.open(unfinished, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600))
            with closing(sqlite3.connect(unfinished, isolation_level=None)) as copy:
                # In one step: one that pauses begins again whenever the host has written.
                original.backup(copy)
                copy.execute("PRAGMA journal_mode = delete")
                copy.execute("UPDATE meta SET value = '' WHERE key = 'epoch'")
        made = examined(unfinished)
        _finish(unfinished, target)
    except OSError as error:
        reason = f"{target} cannot be written: {error.strerror}."
        raise NotWritableError(reason) from error
    except sqlite3.Error as error:
        raise opening_error(source, error) from error
    finally:
        unfinished.unlink(missing_ok=True)
    return made


def _finish(unfinished: Path, target: Path) -> None:
    """What has the name of the copy is whole, and stays so when the power goes."""
    for path, flags in ((unfinished, os.O_RDWR), (target.absolute().parent, os.O_RDONLY)):
        file = os.open(path, flags)
        try:
            os.fsync(file)
        finally:
            os.close(file)
        if path is unfinished:
            unfinished.rename(target)


def examined(path: Path) -> Backup:
    """Every page and every checksum. Raises an `OpenError` when the file is no whole database."""
    try:
        with closing(connected(path)) as connection:
            version_of(connection, path)
            (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if found != "ok":
                raise DamagedError(f"{path} is damaged: {found}. Put a backup in its place.")
            return _counted(connection, path.stat().st_size)
    except sqlite3.Error as error:
        raise opening_error(path, error) from error


def connected(path: Path) -> sqlite3.Connection:
    if not path.exists():
        raise OpenError(f"There is no database {path}.")
    uri = f"{path.absolute().as_uri()}?mode=ro"
    connection = sqlite3.connect(uri, uri=True, timeout=LOCKED_SECONDS, isolation_level=None)
    connection.text_factory = partial(str, encoding="utf-8", errors="replace")
    return connection


def _counted(connection: sqlite3.Connection, size: int) -> Backup:
    (channels,) = connection.execute("SELECT count(*) FROM channels").fetchone()
    damaged = {
        stored.channel: f"its snapshot at {stored.seq} does not match its checksum"
        for stored in reading.snapshots(connection)
        if not stored.is_intact
    }
    count = after = 0
    while entries := reading.read(connection, after, READ_AT_ONCE, None):
        for entry in entries:
            if not entry.is_intact:
                reason = f"its entry {entry.seq} does not match its checksum"
                damaged.setdefault(entry.channel, reason)
        count += len(entries)
        after = entries[-1].seq
    return Backup(count, channels, size, damaged)
