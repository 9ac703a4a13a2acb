"""When PostgreSQL or the way to it fails: nothing acknowledged is lost, nothing stored twice."""

import asyncio
import os
import signal
from typing import Any

import pytest

from session_server.log import Durable, Refused, RefusedBecause, StoredSnapshot, Unknown
from session_server.log.postgres import PostgresLog, link
from session_server.log.postgres import log as log_module
from session_server.log.postgres.schema import one
from session_server.log.protocol import FailedError
from tests.log.cutting_proxy import cutting
from tests.log.load import Load, found, writable
from tests.log.logs import BOUND, asked, batch, everything, following, settled, stored
from tests.postgres import Cluster, own_cluster, shared_cluster
from tests.waiting import PAUSE, until

pytestmark = pytest.mark.slow

A, B = "ahp-session:/a", "ahp-session:/b"


# A connection that is cut


async def test_what_reaches_the_server_after_find_has_answered_is_not_stored(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call is still on its way when the client asks over a new connection.

    That one cannot end the old one, as when the role may not: it takes its place all the same.
    """
    monkeypatch.setattr(log_module, "END_OTHERS", "SELECT %s")
    cluster = shared_cluster()
    async with cutting(cluster.port) as proxy:
        log = await PostgresLog.open(cluster.url(place, port=proxy.port), is_exclusive=False)
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
async def test_terminated_backends_lose_nothing_and_store_nothing_twice(place: str) -> None:
    cluster = shared_cluster()
    log = await PostgresLog.open(cluster.url(place))
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


# A server that refuses


async def test_a_server_that_becomes_read_only_is_reported_as_such(place: str) -> None:
    cluster = shared_cluster()
    log = await PostgresLog.open(cluster.url(place))
    (last,) = await stored(log, A, 0, b"before")

    async def tell(statement: bytes) -> None:
        await log._writer.answer(lambda connection: connection.execute(statement))

    await tell(b"SET default_transaction_read_only = on")
    outcome = await settled(log, batch(A, last, b"x"))
    assert outcome.because == RefusedBecause.READ_ONLY
    assert "does not accept writes" in outcome.reason
    with pytest.raises(FailedError, match="does not accept writes"):
        await log.save_snapshot(StoredSnapshot(A, last, b""))
    assert [e.data for e in await everything(log)] == [b"before"]
    await tell(b"SET default_transaction_read_only = off")
    await stored(log, A, last, b"after")
    await log.close()


async def test_a_full_disk_is_reported_as_such_and_nobody_suffers_for_another(place: str) -> None:
    """The server's own error code, raised by a trigger for entries of a certain content."""
    cluster = shared_cluster()
    log = await PostgresLog.open(cluster.url(place))
    cluster.execute(
        f"CREATE FUNCTION {place}.fill() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100';"
        " END $$",
        f"CREATE TRIGGER full_disk BEFORE INSERT ON {place}.entries FOR EACH ROW"
        f" WHEN (NEW.data = 'large') EXECUTE FUNCTION {place}.fill()",
    )
    outcomes = [asked(log, batch(f"c{n}", 0, b"large" if n == 2 else b"small")) for n in range(5)]
    done = await asyncio.gather(*outcomes)
    assert [type(outcome) for outcome in done] == [Durable, Durable, Refused, Durable, Durable]
    assert done[2].because == RefusedBecause.FULL
    assert "no disk space left" in done[2].reason
    await log.close()


async def test_what_postgresql_cannot_store_is_refused_alone(place: str) -> None:
    log = await PostgresLog.open(shared_cluster().url(place))
    outcomes = await asyncio.gather(
        asked(log, batch("a\0b", 0, b"x")), asked(log, batch(B, 0, b"x"))
    )
    assert [type(outcome) for outcome in outcomes] == [Refused, Durable]
    assert outcomes[0].because == RefusedBecause.BROKEN
    await log.close()


# Failover


def url_of_both(primary: Cluster, standby: Cluster) -> str:
    return primary.url().replace(f":{primary.port}", f":{primary.port},127.0.0.1:{standby.port}")


@pytest.mark.proves("design.log.postgres", "design.log.epoch")
async def test_a_failover_to_a_synchronous_standby_loses_nothing_and_begins_an_epoch(
    record_property: Any,
) -> None:
    with own_cluster() as primary, own_cluster(primary) as standby:
        await synchronised(primary)
        url = url_of_both(primary, standby)
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


async def test_a_log_leaves_a_server_that_takes_no_writes_any_more_for_one_that_does() -> None:
    with own_cluster() as primary, own_cluster(primary) as standby:
        await synchronised(primary)
        url = url_of_both(primary, standby)
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


@pytest.mark.proves("design.log.epoch")
async def test_a_failover_that_lost_entries_stops_the_log_until_the_host_is_restarted() -> None:
    """The standby was promoted while the primary still took writes."""
    with own_cluster() as primary, own_cluster(primary) as standby:
        url = url_of_both(primary, standby)
        log = await PostgresLog.open(url)
        (kept,) = await stored(log, A, 0, b"kept")
        end = primary.execute("SELECT pg_current_wal_lsn()")[0][0]
        replayed = f"SELECT pg_last_wal_replay_lsn() >= '{end}'"
        await until(lambda: standby.execute(replayed)[0][0])
        await asyncio.to_thread(standby.promote)
        (lost,) = await stored(log, A, kept, b"lost")
        await asyncio.to_thread(primary.kill)

        async def lost_reported() -> str:
            nonlocal lost
            async with asyncio.timeout(BOUND * 4):
                while True:
                    outcome = await settled(log, batch(B, 0, b"lost too"))
                    if isinstance(outcome, Durable):  # its connections outlive a killed primary
                        lost = outcome.seqs[-1]
                    elif isinstance(outcome, Refused) and "has lost entries" in outcome.reason:
                        return outcome.reason
                    await asyncio.sleep(PAUSE)

        reason = await lost_reported()
        assert f"ends at {kept}, and had come to {lost}" in reason
        await log.close()
        log = await PostgresLog.open(url)
        assert log.epoch.first > lost
        assert [e.data for e in await everything(log)] == [b"kept"]
        await log.close()
