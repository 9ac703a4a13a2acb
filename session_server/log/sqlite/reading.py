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
# By the index of each channel, so that what snapshots cover is not looked through.
UNCOVERED = """
    WITH ends AS (
        SELECT number, max(:after, coalesce(snapshots.seq, 0)) AS covered
        FROM channels LEFT JOIN snapshots ON snapshots.channel = number
    )
    SELECT seq, number, uri, id, data, checksum FROM entries JOIN channels ON number = channel
    WHERE seq IN (
        SELECT places.seq FROM ends CROSS JOIN places
        ON places.channel = number AND places.seq > covered
        UNION ALL
        SELECT entries.seq FROM entries JOIN ends ON number = entries.channel
        WHERE entries.seq > (SELECT value FROM meta WHERE key = 'placed')
            AND entries.seq > covered
        ORDER BY 1 LIMIT :limit
    )
    ORDER BY seq
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

OUTLINES = """
    SELECT number, uri, seq, outline, outline_checksum FROM snapshots
    JOIN channels ON number = channel
"""
SNAPSHOTS = """
    SELECT number, uri, seq, outline, outline_checksum, data, checksum FROM snapshots
    JOIN channels ON number = channel
"""
SOME_SNAPSHOTS = """
    SELECT number, uri, seq, outline, outline_checksum, data, checksum FROM snapshots
    JOIN channels ON number = channel WHERE uri IN (SELECT value FROM json_each(:channels))
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


def snapshots(
    connection: sqlite3.Connection, channels: Collection[Uri] | None = None
) -> list[StoredSnapshot]:
    if channels is None:
        rows = connection.execute(SNAPSHOTS)
    else:
        rows = connection.execute(SOME_SNAPSHOTS, {"channels": json.dumps(list(channels))})
    return [
        StoredSnapshot(
            uri,
            seq,
            *_checked(number, seq, data, checksum),
            _checked(number, seq, outline, outline_checksum)[0],
        )
        for number, uri, seq, outline, outline_checksum, data, checksum in rows
    ]


def outlines(connection: sqlite3.Connection) -> list[StoredSnapshot]:
    return [
        StoredSnapshot(uri, seq, b"", outline=_checked(number, seq, outline, checksum)[0])
        for number, uri, seq, outline, checksum in connection.execute(OUTLINES)
    ]


def floors(connection: sqlite3.Connection) -> dict[Uri, Seq]:
    return dict(connection.execute("SELECT uri, floor FROM channels WHERE floor > 0"))
