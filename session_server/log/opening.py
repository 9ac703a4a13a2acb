"""From a URL to a log. Only the composition root needs this; backends are imported when chosen."""

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import perf_counter
from typing import NamedTuple
from urllib.parse import parse_qsl

from session_server.log.protocol import (
    BackendMissingError,
    InUseError,
    Log,
    SharedLog,
    Sync,
    UrlError,
)
from session_server.log.shared_loss_detection import Witness

KNOWN = (
    "memory:, sqlite:///relative/path, sqlite:////absolute/path, postgresql://user@host/database,"
    " nats://host:4222"
)
POSTGRES = ("postgresql", "postgres")
DEFAULT_SCHEMA = "session_server"
CREDENTIALS = re.compile(r"(?<=//)([^:/?@]*):.*@")
SLOW_SECONDS = 0.02
ROUND_TRIPS = 5
SECRET_OPTION = re.compile(r"(?<=password=)[^&]*")


class Fact(NamedTuple):
    """What an examination of a log's server found, for `doctor`.

    `is_bad`: acknowledged entries can be lost. With `advice` alone it is worth a look.
    """

    text: str
    advice: str = ""
    is_bad: bool = False


async def measured_pace(round_trip: Callable[[], Awaitable[object]], server: str) -> Fact:
    started = perf_counter()
    for _ in range(ROUND_TRIPS):
        await round_trip()
    seconds = (perf_counter() - started) / ROUND_TRIPS
    is_slow = seconds > SLOW_SECONDS
    advice = f"Every write waits for one: run the host near {server}." if is_slow else ""
    return Fact(f"A round trip takes {seconds * 1000:.1f} ms.", advice)


async def open_log(
    url: str,
    *,
    sync: Sync = Sync.FULL,
    accept_data_loss: bool = False,
    is_exclusive: bool = True,
    data_dir: Path | None = None,
) -> Log:
    """Opens the log that a URL names, or raises an `OpenError`.

    `memory:` is gone with the process. `sqlite:///data.db` is a file relative to the working
    folder, `sqlite:////var/lib/data.db` an absolute one, as with SQLAlchemy; the path is taken as
    it stands, without percent-encoding. `postgresql://user@host/database?schema=name` is libpq's
    URL, and `schema` holds the host's log. `nats://host:4222?stream=name&replicas=3` is a stream of
    JetStream. `sync` is for those that write to a disk; NATS servers have a setting of their own.
    One that has lost entries is not opened unless the loss is accepted. `is_exclusive`: no other
    process may have it open; only PostgreSQL and NATS can do without. In `data_dir` the host keeps
    how far a log on a server has come, to notice when that was restored.
    """
    scheme, colon, rest = url.partition(":")
    witness = None if data_dir is None else Witness(data_dir, redacted(url))
    match scheme.lower() if colon else "":
        case "memory":
            return _memory(url, rest)
        case "sqlite":
            path = _sqlite_path(url, rest)
            return await _sqlite(path, sync, accept_data_loss=accept_data_loss)
        case name if name in POSTGRES:
            return await _postgres(url, sync, is_exclusive=is_exclusive, witness=witness)
        case "nats":
            return await _nats(url, is_exclusive=is_exclusive, witness=witness)
        case _:
            raise UrlError(f"{redacted(url)!r} is not a log backend; available: {KNOWN}.")


async def open_shared_log(
    url: str, *, sync: Sync = Sync.FULL, data_dir: Path | None = None
) -> SharedLog:
    """The same for one of several nodes; raises an `OpenError`."""
    if not (is_postgres(url) or is_nats(url)):
        raise UrlError(
            f"{redacted(url)} cannot be shared by several nodes; use PostgreSQL or NATS."
        )
    log = await open_log(url, sync=sync, is_exclusive=False, data_dir=data_dir)
    shared: SharedLog = log  # type: ignore[assignment]  # both of these are
    if not shared.is_joined:
        await log.close()
        raise InUseError(f"{redacted(url)} is in use by a host that does not share it.", None)
    return shared


def redacted(url: str) -> str:
    """The URL as it may be shown: without a password."""
    if url.lower().startswith("sqlite:"):
        return url  # a path, which may hold any characters
    return SECRET_OPTION.sub("•••", CREDENTIALS.sub(r"\1@", url))


def is_postgres(url: str) -> bool:
    return url.partition(":")[0].lower() in POSTGRES


def is_nats(url: str) -> bool:
    return url.partition(":")[0].lower() == "nats"


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
        reason = f"This Python cannot keep a log in SQLite: {error}. Available: {KNOWN}."
        raise BackendMissingError(reason) from error
    return await SqliteLog.open(path, sync=sync, accept_data_loss=accept_data_loss)


async def _postgres(url: str, sync: Sync, *, is_exclusive: bool, witness: Witness | None) -> Log:
    try:
        from session_server.log.postgres import PostgresLog  # noqa: PLC0415
    except ImportError as error:
        raise BackendMissingError(
            "PostgreSQL needs a driver that is not installed:"
            f" pip install 'session-server[postgres]' ({error})."
        ) from error
    return await PostgresLog.open(url, sync=sync, is_exclusive=is_exclusive, witness=witness)


async def _nats(url: str, *, is_exclusive: bool, witness: Witness | None) -> Log:
    try:
        from session_server.log.nats import NatsLog  # noqa: PLC0415
    except ImportError as error:
        raise BackendMissingError(
            "NATS needs a client that is not installed:"
            f" pip install 'session-server[nats]' ({error})."
        ) from error
    return await NatsLog.open(url, is_exclusive=is_exclusive, witness=witness)
