"""From a URL to a log. Only the composition root needs this; backends are imported when chosen."""

import re
from pathlib import Path
from urllib.parse import parse_qsl

from session_server.log.errors import BackendMissingError, UrlError
from session_server.log.protocol import Log, Sync

KNOWN = (
    "memory:, sqlite:///relative/path, sqlite:////absolute/path, postgresql://user@host/database"
)
POSTGRES = ("postgresql", "postgres")
DEFAULT_SCHEMA = "session_server"
CREDENTIALS = re.compile(r"(?<=//)([^:/?@]*):.*@")
SECRET_OPTION = re.compile(r"(?<=password=)[^&]*")


async def open_log(
    url: str, *, sync: Sync = Sync.FULL, accept_data_loss: bool = False, is_exclusive: bool = True
) -> Log:
    """Opens the log that a URL names, or raises an `OpenError`.

    `memory:` is gone with the process. `sqlite:///data.db` is a file relative to the working
    folder, `sqlite:////var/lib/data.db` an absolute one, as with SQLAlchemy; the path is taken as
    it stands, without percent-encoding. `postgresql://user@host/database?schema=name` is libpq's
    URL, and `schema` holds the host's log. `sync` is for those that write to a disk. One that has
    lost entries is not opened unless the loss is accepted. `is_exclusive`: no other process may
    have it open; only PostgreSQL can do without.
    """
    scheme, colon, rest = url.partition(":")
    match scheme.lower() if colon else "":
        case "memory":
            return _memory(url, rest)
        case "sqlite":
            path = _sqlite_path(url, rest)
            return await _sqlite(path, sync, accept_data_loss=accept_data_loss)
        case name if name in POSTGRES:
            return await _postgres(url, sync, is_exclusive=is_exclusive)
        case "nats":
            raise BackendMissingError(
                "NATS JetStream is not in this version; a later one brings it, with the extra"
                f" session-server[nats]. Available: {KNOWN}."
            )
        case _:
            raise UrlError(f"{redacted(url)!r} is not a log backend; available: {KNOWN}.")


def redacted(url: str) -> str:
    """The URL as it may be shown: without a password."""
    if url.lower().startswith("sqlite:"):
        return url  # a path, which may hold any characters
    return SECRET_OPTION.sub("•••", CREDENTIALS.sub(r"\1@", url))


def is_postgres(url: str) -> bool:
    return url.partition(":")[0].lower() in POSTGRES


def schema_of(url: str) -> str:
    """Which schema of a database holds the log."""
    return dict(parse_qsl(url.partition("?")[2])).get("schema", DEFAULT_SCHEMA)


def database_of(url: str) -> Path | None:
    """The file that a URL names, if it names one; raises a `UrlError`."""
    scheme, colon, rest = url.partition(":")
    return _sqlite_path(url, rest) if colon and scheme.lower() == "sqlite" else None


def _memory(url: str, rest: str) -> Log:
    from session_server.log.memory import MemoryLog  # noqa: PLC0415

    if rest not in ("", "//"):
        raise UrlError(f"{url!r} has a path or options, and memory: takes none.")
    return MemoryLog()


def _sqlite_path(url: str, rest: str) -> Path:
    path = rest.removeprefix("///")
    if path == rest or not path.strip("/"):
        raise UrlError(f"{url!r} names no file; available: {KNOWN}.")
    if "?" in path or "#" in path:
        raise UrlError(f"{url!r} has options, and sqlite: takes none.")
    return Path(path)


async def _sqlite(path: Path, sync: Sync, *, accept_data_loss: bool) -> Log:
    try:
        from session_server.log.sqlite import SqliteLog  # noqa: PLC0415
    except ImportError as error:
        words = f"This Python cannot keep a log in SQLite: {error}. Available: {KNOWN}."
        raise BackendMissingError(words) from error
    return await SqliteLog.open(path, sync=sync, accept_data_loss=accept_data_loss)


async def _postgres(url: str, sync: Sync, *, is_exclusive: bool) -> Log:
    try:
        from session_server.log.postgres import PostgresLog  # noqa: PLC0415
    except ImportError as error:
        raise BackendMissingError(
            "PostgreSQL needs a driver that is not installed:"
            f" pip install 'session-server[postgres]' ({error})."
        ) from error
    return await PostgresLog.open(url, sync=sync, is_exclusive=is_exclusive)
