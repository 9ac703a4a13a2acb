"""The questions that the reading connection answers."""

import json
import sqlite3
from collections.abc import Collection

from session_server.log.protocol import Entry, StoredSnapshot
from session_server.schemas.wire import Seq, Uri

EVERYTHING = """
    SELECT seq, uri, id, data FROM entries JOIN channels ON number = channel
    WHERE seq > :after ORDER BY seq LIMIT :limit
"""
# The inner query sorts bare numbers from an index, and only what is wanted is then fetched.
SOME_CHANNELS = """
    SELECT seq, uri, id, data FROM entries JOIN channels ON number = channel
    WHERE seq IN (
        SELECT seq FROM entries
        WHERE seq > :after AND channel IN (
            SELECT number FROM channels WHERE uri IN (SELECT value FROM json_each(:channels))
        )
        ORDER BY seq LIMIT :limit
    )
    ORDER BY seq
"""


def read(
    connection: sqlite3.Connection, after: Seq, limit: int, channels: Collection[Uri] | None
) -> list[Entry]:
    about: dict[str, int | str] = {"after": after, "limit": max(limit, 0)}
    if channels is None:
        rows = connection.execute(EVERYTHING, about)
    else:
        rows = connection.execute(SOME_CHANNELS, about | {"channels": json.dumps(list(channels))})
    return list(map(Entry._make, rows))


def snapshots(connection: sqlite3.Connection) -> list[StoredSnapshot]:
    rows = connection.execute(
        "SELECT uri, seq, data FROM snapshots JOIN channels ON number = channel"
    )
    return list(map(StoredSnapshot._make, rows))


def floors(connection: sqlite3.Connection) -> dict[Uri, Seq]:
    return dict(connection.execute("SELECT uri, floor FROM channels WHERE floor > 0"))
