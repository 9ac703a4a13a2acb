"""A defect on purpose: `session-server` on a log that does not sync what it says is durable."""

from functools import partial

from session_server import app, cli
from session_server.log.opening import open_log
from session_server.log.protocol import Sync

if __name__ == "__main__":
    app.open_log = partial(open_log, sync=Sync.NORMAL)  # type: ignore[attr-defined]
    cli.main()
