"""Tables, server-side functions, and how an older form becomes this one.

A host's log is one schema: `pg_dump --schema` saves it alone, and hosts that share a database do
not touch each other's. Names are always qualified: a role's `search_path` changes nothing.
"""

import zlib
from typing import Any, TypeAlias

from psycopg import AsyncConnection

from session_server.log.postgres.faults import REPLACED
from session_server.log.protocol import DamagedError, NotWritableError, OpenError, TooNewError
from session_server.schemas.wire import Seq, Uri

Connection: TypeAlias = AsyncConnection[tuple[Any, ...]]

OLDEST_SERVER = 140_000
MIGRATING_LOCK = int.from_bytes(b"SeLo")

FIRST_FORM = """
    CREATE TABLE {s}.meta (version integer NOT NULL, created timestamptz NOT NULL DEFAULT now());
    INSERT INTO {s}.meta (version) VALUES (0);

    -- One row. Whoever has it locked is the only one that gives away seqs, until its commit is
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

    CREATE FUNCTION {s}.take(writer text) RETURNS bigint LANGUAGE plpgsql AS $$
    DECLARE
        reached bigint;
    BEGIN
        SELECT last_seq INTO STRICT reached FROM {s}.counter FOR UPDATE;
        IF NOT EXISTS (SELECT FROM {s}.writers WHERE token = writer) THEN
            RAISE EXCEPTION 'this writer was replaced' USING ERRCODE = '{replaced}';
        END IF;
        RETURN reached;
    END $$;

    -- Per batch: where its channel ended, and its first seq if it fits there. An id that is known
    -- already fails the whole call with a unique violation. Arrays by place and not joins: these
    -- would take the square of the number of entries, or plans that are bad for large tables.
    CREATE FUNCTION {s}.append(
        writer text, listeners text, uris text[], expecteds bigint[], sizes bigint[],
        owners bigint[], parts bigint[], ids text[], datas bytea[], checksums bigint[],
        untils bigint[]
    ) RETURNS TABLE (ended bigint, first bigint) LANGUAGE plpgsql AS $$
    DECLARE
        reached bigint := {s}.take(writer);
        numbers integer[];
        lasts bigint[];
        befores bigint[];  -- -1 for what does not fit
        higher bigint;
    BEGIN
        IF 0 = ANY (expecteds) THEN
            INSERT INTO {s}.channels (uri)
                SELECT uri FROM unnest(uris, expecteds, sizes) AS wanted (uri, expected, size)
                WHERE expected = 0 AND size > 0
                ON CONFLICT DO NOTHING;
        END IF;
        SELECT array_agg(number ORDER BY place), array_agg(last ORDER BY place),
            array_agg(CASE WHEN fits THEN before ELSE -1 END ORDER BY place),
            reached + coalesce(sum(size) FILTER (WHERE fits), 0)
        INTO numbers, lasts, befores, higher
        FROM (
            SELECT *, reached + coalesce(sum(size) FILTER (WHERE fits) OVER (
                ORDER BY place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ), 0) AS before
            FROM (
                SELECT place, size, coalesce(number, 0) AS number, coalesce(last, 0) AS last,
                    coalesce(last, 0) = expected AS fits
                FROM unnest(uris, expecteds, sizes) WITH ORDINALITY
                    AS wanted (uri, expected, size, place)
                LEFT JOIN {s}.channels USING (uri)
            ) AS judged
        ) AS placed;
        IF higher > reached THEN
            INSERT INTO {s}.entries (seq, channel, id, data, checksum)
                SELECT befores[owner] + part, numbers[owner], id, data, checksum
                FROM unnest(owners, parts, ids, datas, checksums)
                    AS given (owner, part, id, data, checksum)
                WHERE befores[owner] >= 0;
            IF 0 < ANY (untils) THEN
                INSERT INTO {s}.lasting (channel, seq, until, size)
                    SELECT numbers[owner], befores[owner] + part, until, length(data)
                    FROM unnest(owners, parts, datas, untils) AS given (owner, part, data, until)
                    WHERE befores[owner] >= 0 AND until > 0;
            END IF;
            UPDATE {s}.channels SET last = before + size
                FROM unnest(numbers, befores, sizes) AS moved (channel, before, size)
                WHERE number = channel AND before >= 0 AND size > 0;
            UPDATE {s}.counter SET last_seq = higher;
            IF listeners <> '' THEN
                PERFORM pg_notify(listeners, higher::text);
            END IF;
        END IF;
        RETURN QUERY SELECT last, CASE WHEN before >= 0 THEN before + 1 END
            FROM unnest(lasts, befores) WITH ORDINALITY AS placed (last, before, place)
            ORDER BY place;
    END $$;

    -- Where the channel ends, if the snapshot is beyond that and was not saved.
    CREATE FUNCTION {s}.save_snapshot(
        writer text, channel_uri text, snapshot_seq bigint, snapshot bytea, sum bigint
    ) RETURNS bigint LANGUAGE plpgsql AS $$
    DECLARE
        channel_number integer;
        ended bigint;
    BEGIN
        PERFORM {s}.take(writer);
        SELECT number, last INTO channel_number, ended FROM {s}.channels WHERE uri = channel_uri;
        IF snapshot_seq > coalesce(ended, 0) THEN
            RETURN coalesce(ended, 0);
        END IF;
        IF channel_number IS NULL THEN
            INSERT INTO {s}.channels (uri) VALUES (channel_uri) RETURNING number
                INTO channel_number;
        END IF;
        INSERT INTO {s}.snapshots AS old (channel, seq, data, checksum)
            VALUES (channel_number, snapshot_seq, snapshot, sum)
            ON CONFLICT (channel) DO UPDATE
            SET seq = excluded.seq, data = excluded.data, checksum = excluded.checksum
            WHERE excluded.seq >= old.seq;
        RETURN NULL;
    END $$;

    -- Forgets a piece, the oldest first; whether there is more to forget.
    CREATE FUNCTION {s}.trim(
        writer text, channel_uri text, up_to bigint, now bigint, decisions integer,
        decision_bytes bigint, at_once integer
    ) RETURNS boolean LANGUAGE plpgsql AS $$
    DECLARE
        trimmed {s}.channels%ROWTYPE;
        highest bigint;
        forgotten integer;
    BEGIN
        PERFORM {s}.take(writer);
        SELECT * INTO trimmed FROM {s}.channels WHERE uri = channel_uri;
        IF NOT FOUND THEN
            RETURN false;
        END IF;
        DELETE FROM {s}.lasting WHERE channel = trimmed.number AND (until <= now OR seq IN (
            SELECT seq FROM (
                SELECT seq, row_number() OVER newest AS position, sum(size) OVER newest AS total
                FROM {s}.lasting WHERE channel = trimmed.number AND until > now
                WINDOW newest AS (ORDER BY seq DESC)
            ) AS ranked WHERE position > decisions OR total > decision_bytes
        ));
        WITH old AS (
            SELECT seq FROM {s}.entries AS entry
            WHERE channel = trimmed.number AND seq <= greatest(up_to, trimmed.floor)
                AND seq <= (SELECT seq FROM {s}.snapshots WHERE channel = trimmed.number)
                AND NOT EXISTS (
                    SELECT FROM {s}.lasting
                    WHERE lasting.channel = trimmed.number AND lasting.seq = entry.seq
                )
            ORDER BY seq LIMIT at_once
        ), gone AS (
            DELETE FROM {s}.entries USING old WHERE entries.seq = old.seq RETURNING entries.seq
        )
        SELECT max(seq), count(*) INTO highest, forgotten FROM gone;
        IF forgotten > 0 THEN
            UPDATE {s}.channels SET floor = greatest(floor, highest)
                WHERE number = trimmed.number;
        END IF;
        RETURN forgotten = at_once;
    END $$;

    CREATE FUNCTION {s}.drop_channel(writer text, channel_uri text) RETURNS void
    LANGUAGE plpgsql AS $$
    DECLARE
        dropped integer;
    BEGIN
        PERFORM {s}.take(writer);
        DELETE FROM {s}.channels WHERE uri = channel_uri RETURNING number INTO dropped;
        DELETE FROM {s}.entries WHERE channel = dropped;
        DELETE FROM {s}.lasting WHERE channel = dropped;
        DELETE FROM {s}.snapshots WHERE channel = dropped;
    END $$;
"""

SECOND_FORM = """
    ALTER TABLE {s}.snapshots
        ADD COLUMN outline bytea NOT NULL DEFAULT '', ADD COLUMN outline_checksum bigint
        NOT NULL DEFAULT 0;

    -- Beside the one without outlines, which nodes of the version before still use.
    CREATE FUNCTION {s}.save_snapshot(
        writer text, channel_uri text, snapshot_seq bigint, snapshot bytea, sum bigint,
        new_outline bytea, outline_sum bigint
    ) RETURNS bigint LANGUAGE plpgsql AS $$
    DECLARE
        ended bigint := {s}.save_snapshot(writer, channel_uri, snapshot_seq, snapshot, sum);
    BEGIN
        IF ended IS NULL THEN
            UPDATE {s}.snapshots SET outline = new_outline, outline_checksum = outline_sum
                WHERE seq = snapshot_seq
                    AND channel = (SELECT number FROM {s}.channels WHERE uri = channel_uri);
        END IF;
        RETURN ended;
    END $$;
"""

STEPS: tuple[str, ...] = (FIRST_FORM, SECOND_FORM)
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


async def check_server(connection: Connection, shown: str) -> None:
    """Raises an `OpenError` for a server that cannot hold a log."""
    version = connection.info.server_version
    if version < OLDEST_SERVER:
        text = f"{shown} is PostgreSQL {version // 10_000}"
        raise OpenError(f"{text}; session-server needs {OLDEST_SERVER // 10_000} or newer.")
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise OpenError(f"{shown} has the encoding {encoding}; create a database with UTF8.")
    if await one(connection, "SELECT pg_is_in_recovery()"):
        raise NotWritableError(f"{shown} is a standby: name the primary, or all servers.")


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
