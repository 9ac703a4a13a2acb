"""What PostgreSQL adds to the contract: several writers, epochs, damage, and opening."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_server.log import RefusedBecause, StoredSnapshot, Sync
from session_server.log.opening import open_log, redacted
from session_server.log.postgres import PostgresLog
from session_server.log.postgres.schema import STEPS
from session_server.log.protocol import (
    DamagedError,
    FailedError,
    NotWritableError,
    OpenError,
    TooNewError,
    UrlError,
)
from tests.log.logs import (
    BOUND,
    Postgres,
    PostgresShared,
    batch,
    everything,
    settled,
    stored,
)
from tests.log.test_model import lived, requests
from tests.postgres import own_cluster, shared_cluster

pytestmark = pytest.mark.slow

A, B = "ahp-session:/a", "ahp-session:/b"
CONFLICT = RefusedBecause.CONFLICT


@pytest.fixture
def postgres(tmp_path: Path) -> Postgres:
    return Postgres(tmp_path)


@pytest.fixture
def shared(tmp_path: Path) -> PostgresShared:
    return PostgresShared(tmp_path)


def schema_of(backend: Postgres) -> str:
    return backend.url.rpartition("=")[2]


def execute(backend: Postgres, statement: str) -> list:
    return shared_cluster().execute(statement.replace("{s}", schema_of(backend)))


@asynccontextmanager
async def nodes(backend: PostgresShared, number: int) -> AsyncIterator[list[PostgresLog]]:
    opened = await asyncio.gather(*(backend.open() for _ in range(number)))
    try:
        yield opened
    finally:
        await asyncio.gather(*(log.close() for log in opened))


@pytest.mark.proves("design.log.contract", "design.log.all-or-nothing", "design.log.read")
@settings(max_examples=settings().max_examples // 10)
@given(life=st.lists(requests, max_size=30))
def test_a_log_is_what_its_requests_make_of_it(tmp_path_factory, life) -> None:
    backend = Postgres(tmp_path_factory.mktemp("model"))
    asyncio.run(asyncio.wait_for(lived(backend, life), BOUND * 4))


# Several nodes


async def test_an_idle_follower_is_woken_by_another_node(
    shared: PostgresShared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("session_server.log.postgres.worker.POLL_SECONDS", 10 * BOUND)
    async with nodes(shared, 2) as (one, other):
        (first,) = await stored(one, A, 0, b"before")
        stream = other.follow(0)
        assert [e.data for e in await asyncio.wait_for(anext(stream), BOUND)] == [b"before"]
        waiting = asyncio.ensure_future(anext(stream))
        (last,) = await stored(one, A, first, b"after")
        assert [e.data for e in await asyncio.wait_for(waiting, BOUND)] == [b"after"]
        assert other.last_seq == last


async def test_what_was_read_is_no_further_than_the_log_says_it_has_come(
    shared: PostgresShared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if no notification comes."""
    monkeypatch.setattr("session_server.log.postgres.worker.POLL_SECONDS", 10 * BOUND)
    async with nodes(shared, 2) as (one, other):
        (first,) = await stored(one, A, 0, b"x")
        await asyncio.wait_for(other.progress.beyond(first - 1), BOUND)  # it listens
        one._queries._listeners = ""
        (last,) = await stored(one, A, first, b"y")
        assert [e.seq for e in await everything(other)] == [first, last]
        assert other.last_seq == last


async def test_a_follower_that_is_not_woken_looks_by_itself(
    shared: PostgresShared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node that is alone tells nobody."""
    monkeypatch.setattr("session_server.log.postgres.worker.POLL_SECONDS", 0.05)
    async with nodes(shared, 2) as (one, other):
        one._queries._listeners = ""
        stream = other.follow(0)
        waiting = asyncio.ensure_future(anext(stream))
        await stored(one, A, 0, b"quietly")
        assert [e.data for e in await asyncio.wait_for(waiting, BOUND)] == [b"quietly"]


async def test_a_writer_whose_place_was_taken_writes_nothing_more(postgres: Postgres) -> None:
    async with postgres.opened() as log:
        (last,) = await stored(log, A, 0, b"mine")
        execute(postgres, "DELETE FROM {s}.writers")
        outcome = await settled(log, batch(A, last, b"too late"))
        assert outcome.because == RefusedBecause.BROKEN
        assert "taken this log over" in outcome.reason
        await stored(log, A, last, b"connected again")


async def test_places_of_writers_that_are_gone_are_cleared_and_others_kept(
    shared: PostgresShared,
) -> None:
    async with nodes(shared, 2):
        execute(shared, "INSERT INTO {s}.writers VALUES ('gone-1', now() - interval '2 days')")
        execute(shared, "UPDATE {s}.writers SET since = now() - interval '2 days'")
        async with shared.opened() as third:
            await stored(third, A, 0, b"x")
            tokens = [token for (token,) in execute(shared, "SELECT token FROM {s}.writers")]
            assert len(tokens) == 3
            assert "gone-1" not in tokens


async def test_a_mistake_of_ours_ends_nothing_but_what_it_happened_in(postgres: Postgres) -> None:
    async with postgres.opened() as log:

        async def fail(_: object) -> None:
            raise ZeroDivisionError

        for worker in (log._writer, log._reader):
            with pytest.raises(FailedError, match="failed unexpectedly"):
                await worker.answer(fail)
        await stored(log, A, 0, b"x")
        assert len(await everything(log)) == 1


# Epochs


@pytest.mark.proves("design.log.epoch", "design.log.backup")
async def test_a_restored_dump_has_a_new_epoch_beyond_all_that_was_given_away(tmp_path) -> None:
    with own_cluster() as cluster:
        url = cluster.url("dumped")
        log = await PostgresLog.open(url)
        epoch = log.epoch
        (kept,) = await stored(log, A, 0, b"kept")
        dump = cluster.folder / "dump.sql"
        run = cluster.run_client
        await asyncio.to_thread(run, "pg_dump", "--schema=dumped", "--file", str(dump))
        (lost,) = await stored(log, A, kept, b"lost")
        await log.close()
        cluster.execute("DROP SCHEMA dumped CASCADE")
        await asyncio.to_thread(run, "psql", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(dump))
        log = await PostgresLog.open(url)
        assert log.epoch.name != epoch.name
        assert log.epoch.first > lost
        assert [e.data for e in await everything(log)] == [b"kept"]
        (after,) = await stored(log, A, kept, b"after")
        assert after > lost
        await log.close()


@pytest.mark.proves("design.log.epoch")
async def test_a_copied_database_has_a_new_epoch() -> None:
    with own_cluster() as cluster:
        log = await PostgresLog.open(cluster.url())
        await stored(log, A, 0, b"x")
        epoch = log.epoch
        await log.close()
        cluster.execute("CREATE DATABASE other")
        cluster.execute(
            "DROP DATABASE other", "CREATE DATABASE other TEMPLATE postgres", database="template1"
        )
        log = await PostgresLog.open(cluster.url().replace("/postgres?", "/other?"))
        assert log.epoch != epoch
        assert log.epoch.first > epoch.first
        await log.close()
        log = await PostgresLog.open(cluster.url())
        assert log.epoch == epoch
        await log.close()


@pytest.mark.proves("design.log.epoch")
async def test_vacuum_and_freeze_keep_the_epoch(postgres: Postgres) -> None:
    async with postgres.opened() as log:
        await stored(log, A, 0, b"x")
        epoch = log.epoch
    for table in ("epochs", "counter", "entries", "channels"):
        execute(postgres, f"VACUUM (FULL, FREEZE) {{s}}.{table}")
    async with postgres.opened() as log:
        assert log.epoch == epoch
        assert len(await everything(log)) == 1


@pytest.mark.proves("design.log.epoch")
async def test_a_role_that_may_not_see_the_cluster_keeps_its_epoch_too() -> None:
    with own_cluster() as cluster:
        cluster.execute(
            "CREATE ROLE plain LOGIN",
            "GRANT CREATE ON DATABASE postgres TO plain",
            "REVOKE EXECUTE ON FUNCTION pg_control_system FROM public",
            "REVOKE EXECUTE ON FUNCTION pg_walfile_name FROM public",
        )
        epochs = set()
        for _ in range(2):
            log = await PostgresLog.open(cluster.url(user="plain"))
            epochs.add(log.epoch)
            await log.close()
        assert len(epochs) == 1


# Integrity


@pytest.mark.proves("design.log.checksums")
async def test_damage_is_marked_and_keeps_nothing_else_from_being_read(
    postgres: Postgres,
) -> None:
    async with postgres.opened() as log:
        one, two, three = await stored(log, A, 0, b"1", b"2", b"3")
        (four,) = await stored(log, B, 0, b"4")
        await log.save_snapshot(StoredSnapshot(A, three, b"of a"))
        await log.save_snapshot(StoredSnapshot(B, four, b"of b"))
        execute(postgres, f"UPDATE {{s}}.entries SET data = '~' WHERE seq = {two}")
        execute(postgres, "UPDATE {s}.snapshots SET data = '~' WHERE data = 'of a'")
        found = await everything(log)
        assert [(e.seq, e.is_intact) for e in found] == [
            (one, True),
            (two, False),
            (three, True),
            (four, True),
        ]
        assert {s.channel: s.is_intact for s in await log.snapshots()} == {A: False, B: True}


@pytest.mark.proves("design.log.checksums")
async def test_an_entry_in_the_place_of_another_does_not_match(postgres: Postgres) -> None:
    async with postgres.opened() as log:
        one, two = await stored(log, A, 0, b"1", b"2")
        execute(
            postgres,
            "UPDATE {s}.entries AS e SET data = o.data, checksum = o.checksum FROM {s}.entries AS o"
            f" WHERE e.seq = {one} AND o.seq = {two}",
        )
        assert [e.is_intact for e in await everything(log)] == [False, True]


PAGE = 8_192
FILE = "SELECT pg_relation_filepath(reltoastrelid) FROM pg_class WHERE oid = '{s}.%s'::regclass"


@pytest.mark.proves("design.log.checksums")
async def test_pages_that_the_server_cannot_read_take_nothing_else_along() -> None:
    """Large data is in a file of its own, four pieces to a page; one page of it is wiped out."""
    with own_cluster() as cluster:
        log = await PostgresLog.open(cluster.url())
        large = [os.urandom(4 * 1_900) for _ in range(4)]
        seqs = await stored(log, A, 0, *large)
        for channel, data in zip("wxyz", large, strict=True):
            (last,) = await stored(log, channel, 0, b"small")
            await log.save_snapshot(StoredSnapshot(channel, last, data))
        await log.close()
        tables = ("entries", "snapshots")
        queries = [FILE.replace("{s}", "session_server") % table for table in tables]
        files = [cluster.data / cluster.execute(query)[0][0] for query in queries]
        cluster.stop()
        for path in files:
            with path.open("r+b") as file:
                file.seek(PAGE)
                file.write(bytes(PAGE))
        cluster.start()
        log = await PostgresLog.open(cluster.url())
        found = await everything(log, channels=[A])
        assert [(e.seq, e.data if e.is_intact else None) for e in found] == [
            (seqs[0], large[0]), (seqs[1], None), (seqs[2], large[2]), (seqs[3], large[3]),
        ]  # fmt: skip
        intact = {s.channel: s.is_intact for s in await log.snapshots()}
        assert intact == {"w": True, "x": False, "y": True, "z": True}
        assert len(await log.read_uncovered(after=0, limit=99)) == 4
        await stored(log, A, seqs[-1], b"goes on")
        await log.close()


# Opening


async def test_a_newer_form_is_not_touched(postgres: Postgres) -> None:
    async with postgres.opened():
        pass
    execute(postgres, "UPDATE {s}.meta SET version = 99")
    with pytest.raises(TooNewError, match="written by a newer session-server") as failure:
        await postgres.open()
    assert (failure.value.version, failure.value.known) == (99, len(STEPS))


async def test_another_applications_schema_is_not_touched(postgres: Postgres) -> None:
    execute(postgres, "CREATE SCHEMA {s}")
    execute(postgres, "CREATE TABLE {s}.orders (number integer)")
    with pytest.raises(DamagedError, match="another application's"):
        await postgres.open()


async def test_a_role_needs_no_right_to_create_when_its_schema_is_there() -> None:
    with own_cluster() as cluster:
        cluster.execute("CREATE ROLE plain LOGIN")
        with pytest.raises(NotWritableError, match="grant it the privileges"):
            await PostgresLog.open(cluster.url(user="plain"))
        cluster.execute("CREATE SCHEMA session_server AUTHORIZATION plain")
        log = await PostgresLog.open(cluster.url(user="plain"))
        await stored(log, A, 0, b"x")
        await log.close()


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("postgresql://h/d?schema=Large", "'Large' is not a valid schema name"),
        ("postgresql://h/d?schema=pg_x", "'pg_x' is not a valid schema name"),
        ("postgresql://h/d?schema=", "'' is not a valid schema name"),
        ("postgresql://h/d?unknown=1", "not a valid PostgreSQL URL"),
        ("postgresql://user:secret word@h:port/d", "Percent-encode special characters"),
        ("postgresql:", "not a valid PostgreSQL URL"),
    ],
)
async def test_a_wrong_url_is_explained_without_its_password(url: str, text: str) -> None:
    with pytest.raises(UrlError) as failure:
        await open_log(url)
    assert text in failure.value.reason
    assert "secret" not in failure.value.reason


async def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(OpenError, match=r"[Cc]onnection refused"):
        await open_log("postgresql://user:secret@127.0.0.1:1/d")


async def test_a_database_that_is_not_there_is_named() -> None:
    url = shared_cluster().url().replace("/postgres?", "/missing?")
    with pytest.raises(OpenError, match="does not exist"):
        await open_log(url)


async def test_a_standby_or_read_only_server_is_not_opened() -> None:
    with (
        own_cluster(default_transaction_read_only="on") as cluster,
        pytest.raises(OpenError, match=r"read-only|read-write"),
    ):
        await open_log(cluster.url())


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:s3/cr@t@h:5432/d?schema=x", "postgresql://me@h:5432/d?schema=x"),
        (
            "postgresql://me@h/d?password=s3cret&schema=x",
            "postgresql://me@h/d?password=•••&schema=x",
        ),
        ("postgresql://h/d", "postgresql://h/d"),
        ("sqlite:////a:b@c.db", "sqlite:////a:b@c.db"),
    ],
)
def test_passwords_are_not_shown(url: str, shown: str) -> None:
    assert redacted(url) == shown


@pytest.mark.proves("design.log.url")
@pytest.mark.parametrize(("sync", "expected"), [(Sync.FULL, "on"), (Sync.NORMAL, "local")])
async def test_a_commit_waits_for_the_disk_whatever_the_role_says(
    tmp_path, sync: Sync, expected: str
) -> None:
    with own_cluster(synchronous_commit="off") as cluster:
        log = await open_log(cluster.url(), sync=sync)
        assert isinstance(log, PostgresLog)

        async def setting(connection) -> str:
            return (await (await connection.execute("SHOW synchronous_commit")).fetchone())[0]

        assert await log._writer.answer(setting) == expected
        await log.close()
