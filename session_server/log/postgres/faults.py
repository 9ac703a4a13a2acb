"""What PostgreSQL's errors mean for a batch and for the log.

An error of severity ERROR rolls the transaction back, also at its commit. After a fatal one, or
when the connection is lost, it is not known whether the commit happened.
"""

import logging

import psycopg

from session_server.log.protocol import (
    KNOWN_ID,
    DamagedError,
    FailedError,
    LogError,
    NotWritableError,
    OpenError,
    Refused,
    RefusedBecause,
)

logger = logging.getLogger("session_server.log")

REPLACED = "SS001"
"""Raised by our own functions: another connection has become the writer."""

DISK_FULL = "53100"
READ_ONLY = "25006"
NOT_ALLOWED = "42501"
NOT_UNIQUE = "23505"
DAMAGED = ("XX001", "XX002")
MISSING = ("3F000", "42P01", "42703", "42883")

TEXTS = {
    DISK_FULL: "PostgreSQL has no disk space left. Free some, then try again.",
    READ_ONLY: "PostgreSQL does not accept writes: it is a standby, or set to read-only.",
    NOT_ALLOWED: "The role may not write to the log's schema: grant it the privileges.",
    REPLACED: "Another session-server has taken this log over.",
    "28P01": "PostgreSQL refused the password.",
    "28000": "PostgreSQL refused the role: look at its pg_hba.conf.",
    "3D000": "The database does not exist: create it with `createdb`.",
    "53300": "PostgreSQL has no connection left: raise max_connections, or end some.",
    "57P03": "PostgreSQL is starting up or shutting down.",
    "XX001": "PostgreSQL reports damaged data: stop the host, restore a backup.",
    "XX002": "PostgreSQL reports a damaged index: stop the host, then use REINDEX.",
}
BECAUSE = {
    DISK_FULL: RefusedBecause.FULL,
    READ_ONLY: RefusedBecause.READ_ONLY,
    NOT_ALLOWED: RefusedBecause.READ_ONLY,
}


def is_lost(error: Exception) -> bool:
    """Whether the connection was lost, so that the result of a commit is not known."""
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return isinstance(error, OSError)
    return error.sqlstate is None or error.diag.severity_nonlocalized in ("FATAL", "PANIC")


def described(error: Exception) -> str:
    """For an operator: without host names and passwords, since `/readyz` shows it to anyone."""
    state = error.sqlstate if isinstance(error, psycopg.Error) else None
    if state is None:
        return "PostgreSQL cannot be reached, or the connection to it was lost."
    if state in MISSING:
        return f"The log's schema lacks something that a log has ({state})."
    primary = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    return TEXTS.get(state) or f"PostgreSQL could not do it: {primary} ({state})."


def refusal(error: Exception) -> Refused:
    """For a transaction that was rolled back, or never began."""
    if isinstance(error, FailedError):
        return Refused(error.because, error.reason)
    state = getattr(error, "sqlstate", None)
    if state == NOT_UNIQUE:
        return KNOWN_ID
    if isinstance(error, psycopg.DataError) and state is None:
        return Refused(RefusedBecause.BROKEN, f"PostgreSQL cannot store this: {error}.")
    return Refused(BECAUSE.get(state or "", RefusedBecause.BROKEN), described(error))


def failure(error: Exception) -> FailedError:
    """The log counts as broken if it cannot be opened again."""
    if isinstance(error, FailedError):
        return error
    if isinstance(error, LogError):
        return FailedError(RefusedBecause.BROKEN, error.reason)
    return FailedError(*refusal(error))


def bug(error: Exception) -> FailedError:
    """A mistake in this program: it is logged whole, and the log goes on with what comes next."""
    logger.error("the log over PostgreSQL failed unexpectedly", exc_info=error)
    text = f"The log failed unexpectedly ({type(error).__name__}); its own log has more."
    return FailedError(RefusedBecause.BROKEN, text)


def opening_error(shown: str, error: Exception) -> OpenError:
    state = getattr(error, "sqlstate", None)
    text = f"{str(error).strip()}." if state is None else described(error)
    kind: type[OpenError] = OpenError
    if state in BECAUSE:
        kind = NotWritableError
    elif state in (*DAMAGED, *MISSING):
        kind = DamagedError
    return kind(f"{shown} cannot be opened: {text}")
