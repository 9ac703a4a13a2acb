"""From a URL to a log. Only the composition root needs this; backends are imported when chosen."""

from pathlib import Path

from session_server.log.errors import BackendMissingError, UrlError
from session_server.log.protocol import Log, Sync

KNOWN = "memory:, sqlite:///relative/path, sqlite:////absolute/path"


async def open_log(url: str, *, sync: Sync = Sync.FULL) -> Log:
    """Opens the log that a URL names, or raises an `OpenError`.

    `memory:` is gone with the process. `sqlite:///data.db` is a file relative to the working
    folder, `sqlite:////var/lib/data.db` an absolute one, as with SQLAlchemy; the path is taken as
    it stands, without percent-encoding. `sync` is for those that write to a disk.
    """
    scheme, colon, rest = url.partition(":")
    match scheme.lower() if colon else "":
        case "memory":
            return _memory(url, rest)
        case "sqlite":
            return await _sqlite(url, rest, sync)
        case "nats":
            raise BackendMissingError(
                "NATS JetStream is not in this version; a later one brings it, with the extra"
                f" session-server[nats]. Known are {KNOWN}."
            )
        case _:
            raise UrlError(f"{url!r} names no log; known are {KNOWN}.")


def _memory(url: str, rest: str) -> Log:
    from session_server.log.memory import MemoryLog  # noqa: PLC0415

    if rest not in ("", "//"):
        raise UrlError(f"{url!r} says more than memory: can use.")
    return MemoryLog()


async def _sqlite(url: str, rest: str, sync: Sync) -> Log:
    path = rest.removeprefix("///")
    if path == rest or not path.strip("/"):
        raise UrlError(f"{url!r} names no file; known are {KNOWN}.")
    if "?" in path or "#" in path:
        raise UrlError(f"{url!r} has options, and sqlite takes none.")
    try:
        from session_server.log.sqlite import SqliteLog  # noqa: PLC0415
    except ImportError as error:
        words = f"This Python cannot keep a log in SQLite: {error}. Known are {KNOWN}."
        raise BackendMissingError(words) from error
    return await SqliteLog.open(Path(path), sync=sync)
