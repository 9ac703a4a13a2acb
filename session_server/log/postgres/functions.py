"""What runs inside the database: `append` assigns the seqs; snapshots, trimming, dropping.

Each locks the counter's row first (`take`), so that there is one order, and checks that its writer
was not replaced. `schema` installs them; what is installed is never changed, only added to.
"""

FIRST_FUNCTIONS = """
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

SECOND_FUNCTIONS = """
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
