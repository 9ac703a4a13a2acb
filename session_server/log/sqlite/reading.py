"""The questions that the reading connection answers."""

import json
import sqlite3
from collections.abc import Collection, Iterable
from typing import Any

from session_server.log.protocol import Entry, StoredSnapshot
from session_server.log.sqlite.schema import checksum_of
from session_server.schemas.wire import Seq, Uri

EVERYTHING = """
    SELECT seq, number, uri, id, data, checksum FROM entries JOIN channels ON number = channel
    WHERE seq > :after ORDER BY seq LIMIT :limit
"""
UNCOVERED = """
    SELECT entries.seq, number, uri, id, entries.data, entries.checksum FROM entries
    JOIN channels ON number = entries.channel
    LEFT JOIN snapshots ON snapshots.channel = entries.channel
    WHERE entries.seq > :after AND entries.seq > coalesce(snapshots.seq, 0)
    ORDER BY entries.seq LIMIT :limit
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
    return _entries(rows)


def read_uncovered(connection: sqlite3.Connection, after: Seq, limit: int) -> list[Entry]:
    return _entries(connection.execute(UNCOVERED, {"after": after, "limit": max(limit, 0)}))


def _entries(rows: Iterable[Any]) -> list[Entry]:
    return [
        Entry(seq, uri, entry_id, *_checked(number, seq, data, checksum))
        for seq, number, uri, entry_id, data, checksum in rows
    ]


def _checked(number: int, seq: Seq, data: object, checksum: object) -> tuple[bytes, bool]:
    """The data and whether it is intact. What is damaged may be anything, of any type.

    What was written in the first form has no checksum.
    """
    if isinstance(data, bytes) and (checksum is None or checksum == checksum_of(number, seq, data)):
        return data, True
    return b"", False


def snapshots(connection: sqlite3.Connection) -> list[StoredSnapshot]:
    rows = connection.execute(
        "SELECT number, uri, seq, data, checksum FROM snapshots JOIN channels ON number = channel"
    )
    return [
        StoredSnapshot(uri, seq, *_checked(number, seq, data, checksum))
        for number, uri, seq, data, checksum in rows
    ]


def floors(connection: sqlite3.Connection) -> dict[Uri, Seq]:
    return dict(connection.execute("SELECT uri, floor FROM channels WHERE floor > 0"))
