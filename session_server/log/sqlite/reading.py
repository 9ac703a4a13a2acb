"""The questions that the reading connection answers."""

import json
import sqlite3
from collections.abc import Collection

from session_server.log.protocol import Entry, StoredSnapshot
from session_server.log.sqlite.schema import entry_checksum, snapshot_checksum
from session_server.schemas.wire import Seq, Uri

EVERYTHING = """
    SELECT seq, number, uri, id, data, checksum FROM entries JOIN channels ON number = channel
    WHERE seq > :after ORDER BY seq LIMIT :limit
"""
# The inner query sorts bare numbers, and only what is wanted is then fetched. What is not in the
# index by channel yet is looked through: there is little of it.
SOME_CHANNELS = """
    WITH wanted AS (
        SELECT number FROM channels WHERE uri IN (SELECT value FROM json_each(:channels))
    )
    SELECT seq, number, uri, id, data, checksum FROM entries JOIN channels ON number = channel
    WHERE seq IN (
        SELECT seq FROM places WHERE seq > :after AND channel IN wanted
        UNION ALL
        SELECT seq FROM entries
        WHERE seq > max(:after, (SELECT value FROM meta WHERE key = 'placed'))
            AND channel IN wanted
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
    return [_entry(*row) for row in rows]


def _entry(seq: Seq, number: int, uri: Uri, entry_id: str, data: object, checksum: object) -> Entry:
    """A damaged row may hold anything, of any type. One of the first form has no checksum."""
    if isinstance(data, bytes) and (
        checksum is None or checksum == entry_checksum(number, seq, entry_id, data)
    ):
        return Entry(seq, uri, entry_id, data)
    return Entry(seq, uri, str(entry_id), b"", is_intact=False)


def snapshots(connection: sqlite3.Connection) -> list[StoredSnapshot]:
    rows = connection.execute(
        "SELECT number, uri, seq, data, checksum FROM snapshots JOIN channels ON number = channel"
    )
    return [_snapshot(*row) for row in rows]


def _snapshot(number: int, uri: Uri, seq: Seq, data: object, checksum: object) -> StoredSnapshot:
    if isinstance(data, bytes) and (
        checksum is None or checksum == snapshot_checksum(number, seq, data)
    ):
        return StoredSnapshot(uri, seq, data)
    return StoredSnapshot(uri, seq, b"", is_intact=False)


def floors(connection: sqlite3.Connection) -> dict[Uri, Seq]:
    return dict(connection.execute("SELECT uri, floor FROM channels WHERE floor > 0"))
