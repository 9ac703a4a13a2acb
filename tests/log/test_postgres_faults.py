"""When PostgreSQL or the way to it fails: nothing acknowledged is lost, nothing stored twice."""

import asyncio
import os
import random
import signal
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from session_server.log import Batch, Durable, Refused, RefusedBecause, StoredSnapshot, Unknown
from session_server.log.errors import FailedError
from session_server.log.postgres import PostgresLog, link
from session_server.log.postgres import log as log_module
from session_server.log.postgres.schema import one
from tests.log.cutting_proxy import CuttingProxy, cutting
from tests.log.logs import BOUND, asked, batch, everything, following, settled, stored
from tests.postgres import Cluster, own_cluster, shared_cluster

A, B = "ahp-session:/a", "ahp-session:/b"
PAUSE = 0.02
PARTS = 3
"""Entries in a batch of `Load`."""


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(BOUND * 4):
        while not condition():  # noqa: ASYNC110  # what it waits for is another process
            await asyncio.sleep(PAUSE)


async def found(log: PostgresLog, wanted: Batch) -> dict[str, int]:
    """As the host does it: asked until it can be told."""
    async with asyncio.timeout(BOUND * 4):
        while True:
            try:
                return await log.find([entry.id for entry in wanted.entries])
            except FailedError:
                await asyncio.sleep(PAUSE)


async def writable(log: PostgresLog, channel: str = "probe") -> None:
    """Until something can be written again; `find` settles what is unknown."""
    await found(log, batch(channel, 0, b"x"))


class Load:
    """Channels that append, as the host does: what is unknown is found out, then it goes on."""

    def __init__(self, log: PostgresLog, channels: int = 12) -> None:
        self.log = log
        self.durable: dict[str, int] = {}
        self.attempted: set[str] = set()
        self.kinds: Counter[str] = Counter()
        self.is_over = False
        self._tasks = [asyncio.create_task(self._write(f"c{n}")) for n in range(channels)]

    async def _write(self, channel: str) -> None:
        last = number = 0
        while not self.is_over:
            wanted = batch(channel, last, *[b"%s %d" % (channel.encode(), number)] * PARTS)
            ids = [entry.id for entry in wanted.entries]
            self.attempted.update(ids)
            outcome = await settled(self.log, wanted)
            self.kinds[type(outcome).__name__] += 1
            if isinstance(outcome, Unknown):
                places = await found(self.log, wanted)
                assert len(places) in (0, PARTS), "a batch was stored by halves"
                self.kinds["stored after all" if places else "not stored"] += 1
                outcome = Durable(tuple(places[id_] for id_ in ids)) if places else outcome
            if isinstance(outcome, Durable):
                self.durable |= zip(ids, outcome.seqs, strict=True)
                last = outcome.seqs[-1]
                number += 1
            elif isinstance(outcome, Refused):
                assert outcome.because is not RefusedBecause.CONFLICT, outcome
                await asyncio.sleep(PAUSE)

    async def written(self, more: int) -> None:
        """Until so many entries more are durable."""
        target = len(self.durable) + more
        await until(lambda: len(self.durable) >= target or any(t.done() for t in self._tasks))

    async def ended(self) -> None:
        self.is_over = True
        await asyncio.wait_for(asyncio.gather(*self._tasks), BOUND * 8)

    async def check(self, log: PostgresLog) -> None:
        """What is stored is exactly what was reported, once, whole and in its place."""
        entries = await everything(log)
        assert max(Counter(entry.id for entry in entries).values()) == 1
        assert {entry.id: entry.seq for entry in entries} == self.durable
        for channel in {entry.channel for entry in entries}:
            datas = [entry.data for entry in entries if entry.channel == channel]
            numbers = [int(data.split()[1]) for data in datas]
            assert numbers == [n for n in range(len(datas) // PARTS) for _ in range(PARTS)]


def through(cluster: Cluster, proxy: CuttingProxy, schema: str) -> str:
    return cluster.url(schema, port=proxy.port)


def is_appending(kind: str, piece: bytes) -> bool:
    return kind == "request" and b".append(" in piece


@pytest.fixture
def schema(request: pytest.FixtureRequest) -> str:
    return f"f_{abs(hash(request.node.nodeid)):x}"


# A connection that is cut


@pytest.mark.proves("design.log.all-or-nothing")
@pytest.mark.parametrize("is_stored", [True, False])
async def test_a_connection_lost_at_the_commit_leaves_it_open_until_the_log_is_asked(
    schema: str, is_stored: bool
) -> None:
    """Cut before the server gets the call, or after it has committed and before that is known."""
    cluster = shared_cluster()
    async with cutting(cluster.port) as proxy:
        log = await PostgresLog.open(through(cluster, proxy, schema))
        first = await stored(log, A, 0, b"before")
        wanted = batch(A, first[-1], b"1", b"2")
        kind = "answer" if is_stored else "request"
        armed = [True]

        def cut_once(piece_kind: str, piece: bytes) -> bool:
            return piece_kind == kind and bool(armed) and bool(armed.pop())

        proxy.cut_at = cut_once
        outcome = await settled(log, wanted)
        assert isinstance(outcome, Unknown), outcome
        again = await settled(log, batch(A, first[-1], b"too soon"))
        assert again.because == RefusedBecause.CONFLICT
        assert await settled(log, batch(B, 0, b"elsewhere")) == Durable((log.last_seq,))
        places = await found(log, wanted)
        assert len(places) == (2 if is_stored else 0)
        last = max(places.values(), default=first[-1])
        await stored(log, A, last, b"after")
        assert len(await everything(log)) == 3 + len(places)
        await log.close()


async def test_what_reaches_the_server_after_find_has_answered_is_not_stored(
    schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call is still on its way when the client asks over a new connection.

    That one cannot end the old one, as when the role may not: it takes its place all the same.
    """
    monkeypatch.setattr(log_module, "END_OTHERS", "SELECT %s")
    cluster = shared_cluster()
    async with cutting(cluster.port) as proxy:
        log = await PostgresLog.open(through(cluster, proxy, schema), is_exclusive=False)
        (first,) = await stored(log, A, 0, b"before")
        pid = await log._writer.answer(lambda c: one(c, "SELECT pg_backend_pid()"))
        os.kill(pid, signal.SIGSTOP)
        try:
            wanted = batch(A, first, b"late")
            passed = proxy.passed
            outcome = asked(log, wanted)
            await until(lambda: proxy.passed > passed)
            proxy.cut()
            assert isinstance(await asyncio.wait_for(outcome, BOUND), Unknown)
            assert await found(log, wanted) == {}
        finally:
            os.kill(pid, signal.SIGCONT)
        gone = f"SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}"
        await until(lambda: cluster.execute(gone)[0][0] == 0)
        assert [e.data for e in await everything(log)] == [b"before"]
        await stored(log, A, first, b"after")
        await log.close()


@pytest.mark.proves("design.log.postgres", "design.log.all-or-nothing")
async def test_cuts_at_any_moment_lose_nothing_and_store_nothing_twice(
    schema: str, record_property: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "LONGEST_PAUSE", PAUSE)
    cluster, chance = shared_cluster(), random.Random(20261116)
    async with cutting(cluster.port) as proxy:
        log = await PostgresLog.open(through(cluster, proxy, schema))
        load = Load(log)
        await load.written(100)
        proxy.cut_at = lambda *_: chance.random() < 0.05
        await until(lambda: proxy.cuts >= 200)
        proxy.cut_at = lambda *_: False
        await load.written(100)
        await load.ended()
        await load.check(log)
        record_property("outcomes", dict(load.kinds))
        assert load.kinds["Unknown"] > 0
        await log.close()


@pytest.mark.proves("design.log.postgres", "design.log.all-or-nothing")
async def test_terminated_backends_lose_nothing_and_store_nothing_twice(schema: str) -> None:
    cluster = shared_cluster()
    log = await PostgresLog.open(cluster.url(schema))
    load = Load(log)
    end = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        f" WHERE application_name LIKE '%{log._name}%'"
    )
    for _ in range(20):
        await load.written(30)
        await asyncio.to_thread(cluster.execute, end)
    await load.written(100)
    await load.ended()
    await load.check(log)
    await log.close()


# A server that goes away


def crash(cluster: Cluster) -> None:
    cluster.crash()


def kill(cluster: Cluster) -> None:
    cluster.kill()


def stop(cluster: Cluster) -> None:
    cluster.stop()


@pytest.mark.slow
@pytest.mark.proves("design.log.postgres", "design.log.epoch")
@pytest.mark.parametrize("end", [stop, crash, kill])
async def test_a_server_that_ends_during_appends_has_all_that_it_reported(
    end: Callable[[Cluster], None], record_property: Any
) -> None:
    with own_cluster() as cluster:
        log = await PostgresLog.open(cluster.url())
        epoch = log.epoch
        load = Load(log)
        for _ in range(4):
            await load.written(100)
            await asyncio.to_thread(end, cluster)
            await asyncio.to_thread(cluster.start)
            await writable(log)
        await load.written(100)
        await load.ended()
        await load.check(log)
        assert log.epoch == epoch
        record_property("outcomes", dict(load.kinds))
        await log.close()
        log = await PostgresLog.open(cluster.url())
        await load.check(log)
        assert log.epoch == epoch
        await log.close()


async def test_a_log_without_its_server_refuses_in_words_and_goes_on_when_it_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(link, "PATIENCE_SECONDS", 0.0)
    with own_cluster() as cluster:
        log = await PostgresLog.open(cluster.url())
        (last,) = await stored(log, A, 0, b"before")
        await asyncio.to_thread(cluster.stop)
        for channel, expected in ((A, last), (B, 0)):
            outcome = await settled(log, batch(channel, expected, b"x"))
            assert isinstance(outcome, Refused), outcome
            assert outcome.because == RefusedBecause.BROKEN
            assert "PostgreSQL cannot be reached" in outcome.words
        for attempt in (log.find(["x"]), log.read(after=0, limit=1), log.drop(A)):
            with pytest.raises(FailedError) as failure:
                await attempt
            assert failure.value.because == RefusedBecause.BROKEN
        await asyncio.to_thread(cluster.start)
        await writable(log)
        await stored(log, A, last, b"after")
        assert [e.data for e in await everything(log)] == [b"before", b"after"]
        await log.close()


async def test_a_short_restart_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "PATIENCE_SECONDS", float(BOUND))
    with own_cluster() as cluster:
        log = await PostgresLog.open(cluster.url())
        (last,) = await stored(log, A, 0, b"before")
        await asyncio.to_thread(cluster.stop)
        outcome, reading = asked(log, batch(A, last, b"x")), asyncio.ensure_future(everything(log))
        await asyncio.to_thread(cluster.start)
        assert isinstance(await asyncio.wait_for(outcome, BOUND), Durable)
        assert [e.data for e in await asyncio.wait_for(reading, BOUND)][:1] == [b"before"]
        await log.close()


async def test_followers_go_on_after_a_restart() -> None:
    with own_cluster() as cluster:
        one = await PostgresLog.open(cluster.url(), is_exclusive=False)
        other = await PostgresLog.open(cluster.url(), is_exclusive=False)
        (last,) = await stored(one, A, 0, b"before")
        following_ = asyncio.ensure_future(following(other, last, 1))
        await asyncio.to_thread(cluster.stop)
        await asyncio.to_thread(cluster.start)
        await writable(one)
        await stored(one, A, last, b"after")
        assert [e.data for e in await asyncio.wait_for(following_, BOUND)] == [b"after"]
        await one.close()
        await other.close()


async def test_closing_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch, schema: str) -> None:
    monkeypatch.setattr("session_server.log.postgres.worker.CLOSING_SECONDS", 0.2)
    cluster = shared_cluster()
    log = await PostgresLog.open(cluster.url(schema))
    await stored(log, A, 0, b"x")
    with cluster.connected() as other, other.transaction():
        other.execute(f"SELECT FROM {schema}.counter FOR UPDATE".encode())
        flying, behind = asked(log, batch(B, 0, b"x")), asked(log, batch(B, 0, b"y"))
        await asyncio.wait_for(log.close(), BOUND)
        assert isinstance(flying.result(), Unknown)
        assert behind.result().because == RefusedBecause.CLOSED


# A server that refuses


async def test_a_server_that_becomes_read_only_is_reported_as_such(schema: str) -> None:
    cluster = shared_cluster()
    log = await PostgresLog.open(cluster.url(schema))
    (last,) = await stored(log, A, 0, b"before")

    async def tell(statement: bytes) -> None:
        await log._writer.answer(lambda connection: connection.execute(statement))

    await tell(b"SET default_transaction_read_only = on")
    outcome = await settled(log, batch(A, last, b"x"))
    assert outcome.because == RefusedBecause.READ_ONLY
    assert "takes no writes" in outcome.words
    with pytest.raises(FailedError, match="takes no writes"):
        await log.save_snapshot(StoredSnapshot(A, last, b""))
    assert [e.data for e in await everything(log)] == [b"before"]
    await tell(b"SET default_transaction_read_only = off")
    await stored(log, A, last, b"after")
    await log.close()


async def test_a_full_disk_is_reported_as_such_and_nobody_suffers_for_another(schema: str) -> None:
    """The server's own error code, raised by a trigger for entries of a certain content."""
    cluster = shared_cluster()
    log = await PostgresLog.open(cluster.url(schema))
    cluster.execute(
        f"CREATE FUNCTION {schema}.fill() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100';"
        " END $$",
        f"CREATE TRIGGER full_disk BEFORE INSERT ON {schema}.entries FOR EACH ROW"
        f" WHEN (NEW.data = 'large') EXECUTE FUNCTION {schema}.fill()",
    )
    outcomes = [asked(log, batch(f"c{n}", 0, b"large" if n == 2 else b"small")) for n in range(5)]
    done = await asyncio.gather(*outcomes)
    assert [type(outcome) for outcome in done] == [Durable, Durable, Refused, Durable, Durable]
    assert done[2].because == RefusedBecause.FULL
    assert "no disk space left" in done[2].words
    await log.close()


async def test_what_postgresql_cannot_store_is_refused_alone(schema: str) -> None:
    log = await PostgresLog.open(shared_cluster().url(schema))
    outcomes = await asyncio.gather(
        asked(log, batch("a\0b", 0, b"x")), asked(log, batch(B, 0, b"x"))
    )
    assert [type(outcome) for outcome in outcomes] == [Refused, Durable]
    assert outcomes[0].because == RefusedBecause.BROKEN
    await log.close()


# Failover


@pytest.mark.slow
@pytest.mark.proves("design.log.postgres", "design.log.epoch")
async def test_a_failover_to_a_synchronous_standby_loses_nothing_and_begins_an_epoch(
    record_property: Any,
) -> None:
    with own_cluster() as primary, own_cluster(primary) as standby:
        await synchronised(primary)
        url = (
            f"postgresql://postgres@127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
            "/postgres?schema=session_server"
        )
        log = await PostgresLog.open(url)
        epoch = log.epoch
        load = Load(log)
        await load.written(200)
        await asyncio.to_thread(primary.kill)
        before = log.last_seq
        await asyncio.to_thread(standby.promote)
        await writable(log)
        assert log.epoch.name != epoch.name
        assert log.epoch.first > before
        await load.written(200)
        await load.ended()
        await load.check(log)
        record_property("outcomes", dict(load.kinds))
        epoch = log.epoch
        await log.close()
        log = await PostgresLog.open(url)
        assert log.epoch == epoch
        await load.check(log)
        await log.close()


async def synchronised(primary: Cluster) -> None:
    """From now on commits wait for the standby, which has caught up."""
    streaming = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'"
    await until(lambda: primary.execute(streaming)[0][0] == 1)
    primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
    replicated = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
    await until(lambda: primary.execute(replicated)[0][0] == 1)


@pytest.mark.slow
async def test_a_log_leaves_a_server_that_takes_no_writes_any_more_for_one_that_does() -> None:
    with own_cluster() as primary, own_cluster(primary) as standby:
        await synchronised(primary)
        url = (
            f"postgresql://postgres@127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
            "/postgres?schema=session_server"
        )
        log = await PostgresLog.open(url)
        (last,) = await stored(log, A, 0, b"before")
        await asyncio.to_thread(standby.promote)
        read_only = "ALTER SYSTEM SET default_transaction_read_only = on"
        primary.execute(read_only, "SELECT pg_reload_conf()")
        await until(lambda: primary.execute("SHOW default_transaction_read_only") == [("on",)])
        outcome: Any = None
        async with asyncio.timeout(BOUND * 4):
            while not isinstance(outcome, Durable):
                outcome = await settled(log, batch(A, last, b"after"))
                if isinstance(outcome, Refused):
                    assert outcome.because == RefusedBecause.READ_ONLY, outcome
                    await asyncio.sleep(PAUSE)
        assert [e.data for e in await everything(log)] == [b"before", b"after"]
        entries = "SELECT count(*) FROM session_server.entries"
        assert (primary.execute(entries), standby.execute(entries)) == ([(1,)], [(2,)])
        await log.close()


@pytest.mark.slow
@pytest.mark.proves("design.log.epoch")
async def test_a_failover_that_lost_entries_stops_the_log_until_the_host_is_restarted() -> None:
    """The standby was promoted while the primary still took writes."""
    with own_cluster() as primary, own_cluster(primary) as standby:
        url = (
            f"postgresql://postgres@127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
            "/postgres?schema=session_server"
        )
        log = await PostgresLog.open(url)
        (kept,) = await stored(log, A, 0, b"kept")
        end = primary.execute("SELECT pg_current_wal_lsn()")[0][0]
        replayed = f"SELECT pg_last_wal_replay_lsn() >= '{end}'"
        await until(lambda: standby.execute(replayed)[0][0])
        await asyncio.to_thread(standby.promote)
        (lost,) = await stored(log, A, kept, b"lost")
        await asyncio.to_thread(primary.kill)

        async def lost_reported() -> str:
            async with asyncio.timeout(BOUND * 4):
                while True:
                    outcome = await settled(log, batch(B, 0, b"x"))
                    if isinstance(outcome, Unknown):
                        continue
                    assert isinstance(outcome, Refused), outcome
                    if "has lost entries" in outcome.words:
                        return outcome.words
                    await asyncio.sleep(PAUSE)

        assert f"ends at {kept}, and had come to {lost}" in await lost_reported()
        await log.close()
        log = await PostgresLog.open(url)
        assert log.epoch.first > lost
        assert [e.data for e in await everything(log)] == [b"kept"]
        await log.close()
