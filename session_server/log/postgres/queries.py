"""What is asked of the server, on either connection."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import psycopg

from session_server.log.postgres.faults import DAMAGED
from session_server.log.postgres.schema import (
    Connection,
    entry_checksum,
    in_schema,
    one,
    snapshot_checksum,
)
from session_server.log.protocol import (
    AppendResult,
    Batch,
    Durable,
    Entry,
    StoredSnapshot,
    ahead,
    conflict,
)
from session_server.schemas.limits import DECISION_BYTES_KEPT, DECISIONS_KEPT
from session_server.schemas.wire import Millis, Seq, Uri

TRIMMED_AT_ONCE = 1_000
MESSAGE_MARK = "!"
"""Prefix of messages between nodes; a notification of an append is a number."""

APPEND = """
    SELECT ended, first FROM {s}.append(
        %b::text, %b::text, %b::text[], %b::bigint[], %b::bigint[],
        %b::bigint[], %b::bigint[], %b::text[], %b::bytea[], %b::bigint[], %b::bigint[]
    )
"""
FIND = "SELECT id, seq FROM {s}.entries WHERE id = ANY(%b::text[])"
SAVE = "SELECT {s}.save_snapshot(%b, %b, %b::bigint, %b, %b::bigint, %b, %b::bigint)"
TRIM = """
    SELECT {s}.trim(
        %b, %b, %b::bigint, %b::bigint, %b::integer, %b::bigint, %b::integer
    )
"""
DROP = "SELECT {s}.drop_channel(%b, %b)"

EVERYTHING = """
    SELECT seq, uri, id, checksum, {data} FROM {s}.entries JOIN {s}.channels ON number = channel
    WHERE seq > %(after)s ORDER BY seq LIMIT %(limit)s
"""
# For each channel by its own index: scanning the entries of all channels could be slow.
SOME_CHANNELS = """
    SELECT seq, uri, id, checksum, {data} FROM {s}.channels, LATERAL (
        SELECT * FROM {s}.entries WHERE channel = number AND seq > %(after)s
        ORDER BY seq LIMIT %(limit)s
    ) AS entries
    WHERE uri = ANY(%(channels)s::text[]) ORDER BY seq LIMIT %(limit)s
"""
UNCOVERED = """
    SELECT entries.seq, uri, id, entries.checksum, {data} FROM {s}.entries
    JOIN {s}.channels ON number = entries.channel
    LEFT JOIN {s}.snapshots ON snapshots.channel = entries.channel
    WHERE entries.seq > %(after)s AND entries.seq > coalesce(snapshots.seq, 0)
    ORDER BY entries.seq LIMIT %(limit)s
"""
SNAPSHOTS = """
    SELECT seq, uri, checksum, outline, outline_checksum, {data}
    FROM {s}.snapshots JOIN {s}.channels ON number = channel
    WHERE %(channels)s::text[] IS NULL OR uri = ANY(%(channels)s::text[])
"""
FLOORS = "SELECT uri, floor FROM {s}.channels WHERE floor > 0"

ADOPT_CHANNELS = """
    INSERT INTO {s}.channels (uri) SELECT unnest(%s::text[]) ON CONFLICT DO NOTHING
"""
ADOPT = """
    INSERT INTO {s}.entries (seq, channel, id, data, checksum)
    SELECT %s, number, %s, %s, %s FROM {s}.channels WHERE uri = %s
"""
ADOPT_LASTING = """
    INSERT INTO {s}.lasting (channel, seq, until, size)
    SELECT channel, seq, %s, length(data) FROM {s}.entries WHERE seq = %s
"""
ADOPT_END = "UPDATE {s}.channels SET last = %s WHERE uri = %s"
ADOPT_FLOOR = "UPDATE {s}.channels SET floor = %s, last = greatest(last, %s) WHERE uri = %s"
ADOPT_REACHED = "UPDATE {s}.counter SET last_seq = greatest(last_seq, %s)"
ENTRY_DATA = "SELECT data FROM {s}.entries WHERE seq = %(seq)s"
SNAPSHOT_DATA = """
    SELECT data FROM {s}.snapshots JOIN {s}.channels ON number = channel WHERE uri = %(uri)s
"""


class Queries:
    """`token` is that of the connection that writes; `listeners` are notified of appends."""

    def __init__(self, schema: str, listeners: str = "") -> None:
        self._schema = schema
        self._listeners = listeners
        self.token = ""

    def _sql(self, text: str) -> bytes:
        return in_schema(text, self._schema)

    async def append(self, connection: Connection, batches: Sequence[Batch]) -> list[AppendResult]:
        """All of them in one transaction and one round trip."""
        new = [
            (owner, part, e.id, e.data, entry_checksum(batch.channel, e.id, e.data), e.lasts_until)
            for owner, batch in enumerate(batches, start=1)
            for part, e in enumerate(batch.entries, start=1)
        ]
        columns: list[list[Any]] = [list(column) for column in zip(*new, strict=True)]
        parameters = (
            self.token,
            self._listeners,
            [batch.channel for batch in batches],
            [batch.expected for batch in batches],
            [len(batch.entries) for batch in batches],
            *(columns or [[]] * 6),
        )
        async with connection.cursor(binary=True) as cursor:
            await cursor.execute(self._sql(APPEND), parameters, prepare=True)
            rows = await cursor.fetchall()
        return [_outcome(batch, *row) for batch, row in zip(batches, rows, strict=True)]

    async def find(self, connection: Connection, ids: Collection[str]) -> dict[str, Seq]:
        cursor = await connection.execute(self._sql(FIND), (list(ids),))
        return dict(await cursor.fetchall())

    async def save_snapshot(self, connection: Connection, snapshot: StoredSnapshot) -> None:
        channel, seq, data, _, outline = snapshot
        sums = [snapshot_checksum(channel, seq, part) for part in (data, outline)]
        values = (self.token, channel, seq, data, sums[0], outline, sums[1])
        last = await one(connection, self._sql(SAVE), values)
        if last is not None:
            raise ahead(snapshot, last)

    async def trim(self, connection: Connection, channel: Uri, up_to: Seq, now: Millis) -> bool:
        """Forgets a piece; whether there is more to forget."""
        bounds = (DECISIONS_KEPT, DECISION_BYTES_KEPT, TRIMMED_AT_ONCE)
        values = (self.token, channel, up_to, now, *bounds)
        return bool(await one(connection, self._sql(TRIM), values))

    async def drop(self, connection: Connection, channel: Uri) -> Seq:
        """With the counter locked, so that nothing is written in between."""
        async with connection.transaction():
            reached: Seq = await one(connection, self._sql("SELECT {s}.take(%s)"), (self.token,))
            await connection.execute(self._sql(DROP), (self.token, channel))
        return reached

    async def read(
        self, connection: Connection, after: Seq, limit: int, channels: Collection[Uri] | None
    ) -> list[Entry]:
        query = EVERYTHING if channels is None else SOME_CHANNELS
        about = {"after": after, "limit": max(limit, 0), "channels": list(channels or ())}
        return await self._entries(connection, query, about)

    async def read_uncovered(self, connection: Connection, after: Seq, limit: int) -> list[Entry]:
        about = {"after": after, "limit": max(limit, 0)}
        return await self._entries(connection, UNCOVERED, about)

    async def _entries(
        self, connection: Connection, query: str, about: Mapping[str, Any]
    ) -> list[Entry]:
        rows = await self._rows_with_data(connection, query, "entries.data", about, ENTRY_DATA)
        return [
            Entry(seq, uri, entry_id, data, is_intact=True)
            if data is not None and entry_checksum(uri, entry_id, data) == checksum
            else Entry(seq, uri, entry_id, b"", is_intact=False)
            for seq, uri, entry_id, checksum, data in rows
        ]

    async def snapshots(
        self, connection: Connection, channels: Collection[Uri] | None
    ) -> list[StoredSnapshot]:
        about = {"channels": None if channels is None else list(channels)}
        rows = await self._rows_with_data(connection, SNAPSHOTS, "data", about, SNAPSHOT_DATA)
        return [
            StoredSnapshot(uri, seq, data, is_intact=True, outline=_outline(uri, seq, *outline))
            if data is not None and snapshot_checksum(uri, seq, data) == checksum
            else StoredSnapshot(uri, seq, b"", is_intact=False)
            for seq, uri, checksum, *outline, data in rows
        ]

    async def outlines(self, connection: Connection) -> list[StoredSnapshot]:
        rows = await self._rows(connection, SNAPSHOTS, "NULL", {"channels": None})
        return [
            StoredSnapshot(uri, seq, b"", outline=_outline(uri, seq, *outline))
            for seq, uri, _, *outline, _ in rows or ()
        ]

    async def _rows_with_data(
        self,
        connection: Connection,
        query: str,
        data: str,
        about: Mapping[str, Any],
        data_query: str,
    ) -> list[tuple[Any, ...]]:
        """Data that the server cannot read is `None`; then each row's is read by itself."""
        rows = await self._rows(connection, query, data, about)
        if rows is not None:
            return rows
        rows = []
        for seq, uri, *rest, _ in await self._rows(connection, query, "NULL", about) or ():
            found = await self._rows(connection, data_query, "data", {"seq": seq, "uri": uri})
            rows.append((seq, uri, *rest, found[0][0] if found else None))
        return rows

    async def _rows(
        self, connection: Connection, query: str, data: str, about: Mapping[str, Any]
    ) -> list[tuple[Any, ...]] | None:
        """`None` if the server cannot read some of the data."""
        wanted = self._sql(query.replace("{data}", data))
        try:
            async with connection.cursor(binary=True) as cursor:
                await cursor.execute(wanted, about)
                return await cursor.fetchall()
        except psycopg.Error as error:
            if data != "NULL" and error.sqlstate in DAMAGED:
                return None
            raise

    async def lasting(self, connection: Connection) -> dict[Seq, Millis]:
        query = self._sql("SELECT seq, until FROM {s}.lasting")
        return dict(await (await connection.execute(query)).fetchall())

    async def adopt(self, connection: Connection, entries: Sequence[tuple[Entry, Millis]]) -> None:
        """Entries of another log, under their own seqs and in order."""
        rows = [
            (e.seq, e.id, e.data, entry_checksum(e.channel, e.id, e.data), e.channel)
            for e, _ in entries
        ]
        lasting = [(until, e.seq) for e, until in entries if until]
        ends = {e.channel: e.seq for e, _ in entries}
        async with connection.transaction(), connection.cursor() as cursor:
            await cursor.execute(self._sql("SELECT {s}.take(%s)"), (self.token,))
            await cursor.execute(self._sql(ADOPT_CHANNELS), (list(ends),))
            await cursor.executemany(self._sql(ADOPT), rows)
            await cursor.executemany(self._sql(ADOPT_LASTING), lasting)
            await cursor.executemany(
                self._sql(ADOPT_END), [(end, uri) for uri, end in ends.items()]
            )
            await cursor.execute(self._sql(ADOPT_REACHED), (max(ends.values(), default=0),))

    async def adopt_floors(self, connection: Connection, floors: dict[Uri, Seq]) -> None:
        async with connection.transaction(), connection.cursor() as cursor:
            await cursor.execute(self._sql("SELECT {s}.take(%s)"), (self.token,))
            await cursor.execute(self._sql(ADOPT_CHANNELS), (list(floors),))
            await cursor.executemany(
                self._sql(ADOPT_FLOOR), [(f, f, uri) for uri, f in floors.items()]
            )
            await cursor.execute(self._sql(ADOPT_REACHED), (max(floors.values(), default=0),))

    async def forget_epoch(self, connection: Connection) -> None:
        await connection.execute(self._sql("DELETE FROM {s}.epochs"))

    async def last_seq(self, connection: Connection) -> Seq:
        found: Seq = await one(connection, self._sql("SELECT last_seq FROM {s}.counter"))
        return found

    async def notify(self, connection: Connection, message: str) -> None:
        told = (self._listeners, f"{MESSAGE_MARK}{message}")
        await connection.execute("SELECT pg_notify(%s, %s)", told)

    async def floors(self, connection: Connection) -> dict[Uri, Seq]:
        return dict(await (await connection.execute(self._sql(FLOORS))).fetchall())


def _outline(uri: Uri, seq: Seq, outline: bytes, checksum: int) -> bytes:
    """Empty if it is damaged, or of another snapshot: older nodes do not know of outlines."""
    return outline if snapshot_checksum(uri, seq, outline) == checksum else b""


def _outcome(batch: Batch, ended: Seq, first: Seq | None) -> AppendResult:
    if first is None:
        return conflict(batch, ended)
    return Durable(tuple(range(first, first + len(batch.entries))))
