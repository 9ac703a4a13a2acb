"""Whether the database is the one that was known, with everything that was in it.

An epoch belongs to an identity: the cluster's system identifier, its timeline, which changes with
a failover and with a restore to a point in time, and the database's number. And to a row that is
still where it was written, which one restored from a dump is not. Where any of it is new, entries
may be missing, so a new epoch begins. So it does where the log ends before what an earlier process
of this host has seen of it: a copy of the cluster's files, put back, shows nowhere else.
"""

import logging

import psycopg

from session_server.log.postgres.schema import Connection, in_schema, one
from session_server.log.protocol import Epoch, FailedError, RefusedBecause
from session_server.log.shared_loss_detection import LogPosition
from session_server.schemas.wire import Seq

logger = logging.getLogger("session_server.log")

UNKNOWN = "unknown"
IDENTITY = (
    "SELECT system_identifier FROM pg_control_system()",
    # The control file's timeline is that of the last checkpoint, which may be before a failover.
    "SELECT substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)",
    "SELECT oid FROM pg_database WHERE datname = current_database()",
)
LATEST = """
    SELECT first, name, identity, written_by::xid = xmin FROM {s}.epochs
    ORDER BY first DESC LIMIT 1
"""
BEGIN = "INSERT INTO {s}.epochs (first, name, identity, reached) VALUES (%s, %s, %s, %s)"
LOST = "SELECT min(reached) FROM {s}.epochs WHERE first > %s"


async def identity_of(connection: Connection) -> str:
    """Hosted servers may keep some of it to themselves; then it does not count."""
    parts: list[str] = []
    for question in IDENTITY:
        try:
            parts.append(str(await one(connection, question.encode())))
        except psycopg.Error as error:
            if connection.closed or error.sqlstate is None:
                raise
            parts.append(UNKNOWN)
    return "/".join(parts)


async def position_of(
    connection: Connection,
    schema: str,
    identity: str,
    known: LogPosition | None,
    seen: LogPosition | None,
) -> LogPosition:
    """In a transaction that has the counter locked. Begins a new epoch where that is due.

    `known` is how this process knows the log. Raises a `FailedError` when some of that is gone.
    `seen` is how an earlier process left it: where some of that is gone, an epoch begins.
    """
    last: Seq = await one(connection, in_schema("SELECT last_seq FROM {s}.counter", schema))
    row = await (await connection.execute(in_schema(LATEST, schema))).fetchone()
    position = None if row is None else LogPosition(Epoch(row[0], row[1]), last)
    is_same = row is not None and row[2] == identity and row[3]
    if position is None or not is_same or position.has_lost(seen):
        epoch = Epoch.after(max(last, seen.last_seq if seen else 0))
        if row is not None:
            text = "the database was restored, copied or failed over: a new epoch begins at %d"
            logger.warning(text, epoch.first)
        values = (epoch.first, epoch.name, identity, last)
        await connection.execute(in_schema(BEGIN, schema), values)
        update = in_schema("UPDATE {s}.counter SET last_seq = %s", schema)
        await connection.execute(update, (epoch.first,))
        position = LogPosition(epoch, epoch.first)
    if known is not None:
        kept = await one(connection, in_schema(LOST, schema), (known.epoch.first,))
        kept = position.last_seq if kept is None else kept
        if kept < known.last_seq:
            raise FailedError(
                RefusedBecause.BROKEN,
                f"PostgreSQL has lost entries: it ends at {kept}, and had come to"
                f" {known.last_seq}. Restart the host to go on without them.",
            )
    return position
