"""Tables, and how an older form becomes this one; `functions` has what runs in the database.

A host's log is one schema: `pg_dump --schema` saves it alone, and hosts that share a database do
not touch each other's. Names are always qualified: a role's `search_path` changes nothing.
"""

import zlib
from typing import Any, TypeAlias

from psycopg import AsyncConnection

from session_server.log.postgres.faults import REPLACED
from session_server.log.postgres.functions import FIRST_FUNCTIONS, SECOND_FUNCTIONS
from session_server.log.protocol import DamagedError, TooNewError
from session_server.schemas.wire import Seq, Uri

Connection: TypeAlias = AsyncConnection[tuple[Any, ...]]

MIGRATING_LOCK = int.from_bytes(b"SeLo")

FIRST_FORM = """
    CREATE TABLE {s}.meta (version integer NOT NULL, created timestamptz NOT NULL DEFAULT now());
    INSERT INTO {s}.meta (version) VALUES (0);

    -- One row. Only the transaction that has it locked assigns seqs, until its commit is
    -- visible: so nobody who reads by position can pass over an entry that comes later.
    CREATE TABLE {s}.counter (last_seq bigint NOT NULL) WITH (fillfactor = 10);
    INSERT INTO {s}.counter VALUES (0);

    -- The connections that may write. One whose row is gone was replaced by another.
    CREATE TABLE {s}.writers (
        token text COLLATE "C" PRIMARY KEY, since timestamptz NOT NULL DEFAULT now()
    );

    -- `reached` is where the log ended when the epoch began; `written_by` is the transaction that
    -- wrote the row: in a copy that was restored from a dump, the row's xmin is another.
    CREATE TABLE {s}.epochs (
        first bigint PRIMARY KEY, name text NOT NULL, identity text NOT NULL,
        reached bigint NOT NULL, written_by xid8 NOT NULL DEFAULT pg_current_xact_id(),
        since timestamptz NOT NULL DEFAULT now()
    );

    CREATE TABLE {s}.channels (
        number integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        uri text COLLATE "C" NOT NULL UNIQUE,
        last bigint NOT NULL DEFAULT 0, floor bigint NOT NULL DEFAULT 0
    ) WITH (fillfactor = 50);

    CREATE TABLE {s}.entries (
        seq bigint PRIMARY KEY, channel integer NOT NULL, id text COLLATE "C" NOT NULL UNIQUE,
        data bytea NOT NULL, checksum bigint NOT NULL
    );
    CREATE INDEX entries_by_channel ON {s}.entries (channel, seq);

    CREATE TABLE {s}.lasting (
        channel integer, seq bigint, until bigint NOT NULL, size integer NOT NULL,
        PRIMARY KEY (channel, seq)
    );

    CREATE TABLE {s}.snapshots (
        channel integer PRIMARY KEY, seq bigint NOT NULL, data bytea NOT NULL,
        checksum bigint NOT NULL
    );
    -- Compressing megabytes would hold every append up.
    ALTER TABLE {s}.snapshots ALTER COLUMN data SET STORAGE EXTERNAL;
"""

SECOND_FORM = """
    ALTER TABLE {s}.snapshots
        ADD COLUMN outline bytea NOT NULL DEFAULT '', ADD COLUMN outline_checksum bigint
        NOT NULL DEFAULT 0;
"""

STEPS: tuple[str, ...] = (FIRST_FORM + FIRST_FUNCTIONS, SECOND_FORM + SECOND_FUNCTIONS)
"""Step n leads from version n to n + 1; version 0 is an empty schema. Steps are never changed."""


def in_schema(text: str, schema: str) -> bytes:
    """`{s}` is the schema, whose name was checked when the URL was read."""
    return text.replace("{s}", f'"{schema}"').replace("{replaced}", REPLACED).encode()


def entry_checksum(channel: Uri, entry_id: str, data: bytes) -> int:
    """Of an entry with its channel and id, so that one in another's place does not match.

    Without its seq, which the server assigns.
    """
    return zlib.crc32(data, zlib.crc32(f"{channel}\0{entry_id}".encode()))


def snapshot_checksum(channel: Uri, seq: Seq, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(f"{channel}\0{seq}".encode()))


async def one(connection: Connection, query: Any, parameters: Any = None) -> Any:
    """The first column of the only row."""
    row = await (await connection.execute(query, parameters)).fetchone()
    return None if row is None else row[0]


async def migrate(connection: Connection, schema: str, shown: str) -> None:
    """Brings the schema to the version that the steps lead to; all of it or nothing.

    Nodes that start at the same moment wait for each other.
    """
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (MIGRATING_LOCK,))
        version = await _version_of(connection, schema, shown)
        for number, step in enumerate(STEPS[version:], start=version + 1):
            await connection.execute(in_schema(step, schema))
            update = in_schema("UPDATE {s}.meta SET version = %s", schema)
            await connection.execute(update, (number,))


async def _version_of(connection: Connection, schema: str, shown: str) -> int:
    """0 for a schema that is new or empty; raises when it is not ours to touch."""
    if not await one(connection, "SELECT to_regnamespace(%s) IS NOT NULL", (schema,)):
        await connection.execute(in_schema("CREATE SCHEMA {s}", schema))
        return 0
    tables = "SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace(%s)"
    if not await one(connection, tables, (schema,)):
        return 0
    if await one(connection, "SELECT to_regclass(%s) IS NULL", (f"{schema}.counter",)):
        raise DamagedError(f"{shown} is another application's: name another schema in the URL.")
    version = await one(connection, in_schema("SELECT version FROM {s}.meta", schema))
    if not isinstance(version, int):
        raise DamagedError(f"{shown} does not say which version it has.")
    known = len(STEPS)
    if version > known:
        text = f"{shown} was written by a newer session-server (form {version}, here {known})"
        raise TooNewError(f"{text}: install that one, or name another schema.", version, known)
    return version
