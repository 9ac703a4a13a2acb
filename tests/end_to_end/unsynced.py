"""A defect on purpose: `session-server` on a log that does not sync what it says is durable."""

from session_server import app, cli
from session_server.log import Log
from session_server.log.opening import open_log
from session_server.log.protocol import Sync


async def unsynced(store: str, **_: Sync) -> Log:
    return await open_log(store, sync=Sync.NORMAL)


if __name__ == "__main__":
    app.open_log = unsynced  # type: ignore[attr-defined]
    cli.main()
