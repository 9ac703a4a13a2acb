"""What SQLite's errors mean for a batch and for the log."""

import errno
import shutil
import sqlite3
from pathlib import Path

from session_server.log.protocol import (
    KNOWN_ID,
    DamagedError,
    NotWritableError,
    OpenError,
    Refused,
    RefusedBecause,
    Unknown,
)

PRIMARY = 0xFF
"""SQLite's extended codes hold the primary one in their lowest byte."""

BECAUSE = {
    sqlite3.SQLITE_FULL: RefusedBecause.FULL,
    sqlite3.SQLITE_READONLY: RefusedBecause.READ_ONLY,
    sqlite3.SQLITE_PERM: RefusedBecause.READ_ONLY,
}
REASONS = {
    RefusedBecause.FULL: "There is no space left for the log: make some, then try again.",
    RefusedBecause.READ_ONLY: "The log cannot be written: its file or file system is read-only.",
}
LOCKED = "Another program holds the log's database locked: end it, then try again."
DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
KEEPS_CONNECTION = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_TOOBIG,
)
"""Errors that say nothing against the connection they came from."""

SPACE_TO_OPEN = 65_536
"""In bytes, for the files next to the database; with less, an I/O error means lack of space."""


def code_of(error: BaseException) -> int | None:
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & PRIMARY


def named(error: BaseException) -> str:
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    return f"{error} ({name})"


def refusal(error: Exception) -> Refused:
    """For a transaction that failed before its commit, or was rolled back."""
    code = code_of(error)
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_CONSTRAINT_UNIQUE:
        return KNOWN_ID
    because = BECAUSE.get(code or 0, RefusedBecause.BROKEN)
    if code == sqlite3.SQLITE_BUSY:
        return Refused(because, LOCKED)
    if code in DAMAGED:
        reason = f"The log's database is damaged: {named(error)}. Stop the host, restore a backup."
        return Refused(because, reason)
    return Refused(because, REASONS.get(because, f"The log could not be written: {named(error)}."))


def doubt(error: Exception) -> Unknown:
    return Unknown(f"The log's disk has failed: {named(error)}.")


def is_connection_sound(error: Exception) -> bool:
    """Whether the connection may go on. An error that is not SQLite's is the batch's."""
    code = code_of(error)
    return code in KEEPS_CONNECTION if code is not None else True


def opening_error(path: Path, error: OSError | sqlite3.Error) -> OpenError:
    if _is_for_lack_of_space(path, error):
        return NotWritableError(f"{path} cannot be opened: {REASONS[RefusedBecause.FULL]}")
    if isinstance(error, OSError):
        return NotWritableError(f"{path} cannot be opened for writing: {error.strerror}.")
    code = code_of(error)
    if code in DAMAGED:
        return DamagedError(f"{path} is damaged: {named(error)}. Put a backup in its place.")
    if code == sqlite3.SQLITE_ERROR:
        return DamagedError(f"{path} lacks something that a log has: {named(error)}.")
    if code in BECAUSE:
        return NotWritableError(f"{path} cannot be opened: {REASONS[BECAUSE[code]]}")
    if code == sqlite3.SQLITE_CANTOPEN:
        return NotWritableError(f"{path} cannot be opened: no file can be made in its folder.")
    if code == sqlite3.SQLITE_BUSY:
        return OpenError(f"{path} cannot be opened: {LOCKED}")
    return OpenError(f"{path} cannot be opened: {named(error)}.")


def _is_for_lack_of_space(path: Path, error: OSError | sqlite3.Error) -> bool:
    """SQLite calls it an I/O error when a file next to the database cannot be made larger."""
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    if code_of(error) != sqlite3.SQLITE_IOERR:
        return False
    try:
        return shutil.disk_usage(path.parent).free < SPACE_TO_OPEN
    except OSError:
        return False
