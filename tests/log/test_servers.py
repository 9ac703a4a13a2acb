"""Logs over a server, PostgreSQL or NATS: several nodes, cut connections, servers that end.

Nothing acknowledged is lost and nothing is stored twice. What only one of them has is in
`test_postgres*.py` and `test_nats*.py`.
"""

import asyncio
import random
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from session_server.log import Durable, Log, Refused, RefusedBecause, StoredSnapshot, Unknown
from session_server.log.nats import NatsLog, claim, jetstream_log, servers
from session_server.log.opening import open_log
from session_server.log.postgres import PostgresLog, link, worker
from session_server.log.postgres import log as postgres_log
from session_server.log.protocol import FailedError, InUseError
from tests.effort import IS_CI, tries
from tests.log.cutting_proxy import cutting
from tests.log.load import Load, found, writable
from tests.log.logs import (
    BOUND,
    Nats,
    NatsShared,
    Postgres,
    PostgresShared,
    asked,
    batch,
    everything,
    following,
    refused,
    settled,
    stored,
)
from tests.nats import NatsServer, own_server, shared_server
from tests.postgres import Cluster, own_cluster, shared_cluster
from tests.waiting import PAUSE, until

pytestmark = pytest.mark.slow

A, B = "ahp-session:/a", "ahp-session:/b"
CONFLICT = RefusedBecause.CONFLICT


class OverPostgres:
    exclusive, shared = Postgres, PostgresShared
    open = PostgresLog.open
    shared_server, own_server = staticmethod(shared_cluster), staticmethod(own_cluster)
    append_mark, answer_mark = b"", b""
    cut_rounds, cuts_per_round, chance = 1, tries(in_ci=100, at_hand=20), 0.05
    claiming, patience, closing = postgres_log, link, worker

    @staticmethod
    def prepare(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(link, "LONGEST_PAUSE", PAUSE)

    @staticmethod
    def has_noticed(_: PostgresLog) -> bool:
        """It connects when it is used."""
        return True

    is_back = has_noticed

    @staticmethod
    def attempts(log: PostgresLog) -> list[Any]:
        return [log.find(["x"]), log.read(after=0, limit=1), log.drop(A)]

    @staticmethod
    @contextmanager
    def stuck(server: Cluster, log: PostgresLog) -> Iterator[None]:
        with server.connected() as other, other.transaction():
            schema = log._address.schema
            other.execute(f"SELECT FROM {schema}.counter FOR UPDATE".encode())
            yield


class OverNats:
    exclusive, shared = Nats, NatsShared
    open = NatsLog.open
    shared_server, own_server = staticmethod(shared_server), staticmethod(own_server)
    append_mark, answer_mark = b"entries", b'"seq":'
    cut_rounds, cuts_per_round, chance = 8, 1, 0.2
    claiming, patience, closing = claim, servers, jetstream_log

    @staticmethod
    def prepare(monkeypatch: pytest.MonkeyPatch) -> None: ...

    @staticmethod
    def is_back(log: NatsLog) -> bool:
        return log._servers._is_back.is_set()

    @staticmethod
    def has_noticed(log: NatsLog) -> bool:
        return not log._servers._is_back.is_set()

    @staticmethod
    def attempts(log: NatsLog) -> list[Any]:
        return [log.drop(A)]

    @staticmethod
    @contextmanager
    def stuck(server: NatsServer, _: NatsLog) -> Iterator[None]:
        server.pause()
        try:
            yield
        finally:
            server.resume()


OVER = [
    pytest.param(OverPostgres, id="PostgreSQL", marks=pytest.mark.proves("design.log.postgres")),
    pytest.param(OverNats, id="NATS", marks=pytest.mark.proves("design.log.nats")),
]
each = pytest.mark.parametrize("over", OVER)


@asynccontextmanager
async def nodes(over: Any, folder: Path, number: int) -> AsyncIterator[list[Any]]:
    backend = over.shared(folder)
    opened = await asyncio.gather(*(backend.open() for _ in range(number)))
    try:
        yield opened
    finally:
        await asyncio.gather(*(log.close() for log in opened))


# Several nodes


@each
@pytest.mark.proves("design.log.all-or-nothing")
async def test_of_batches_of_several_nodes_for_one_place_one_is_stored(
    over: Any, tmp_path: Path
) -> None:
    async with nodes(over, tmp_path, 3) as logs:
        last = 0
        for _ in range(20):
            outcomes = await asyncio.gather(*(asked(log, batch(A, last, b"x")) for log in logs))
            (won,) = [outcome for outcome in outcomes if isinstance(outcome, Durable)]
            assert {o.because for o in outcomes if o is not won} == {CONFLICT}
            seen = await asyncio.gather(*(following(log, last, 1) for log in logs))
            (last,) = won.seqs
            assert [entry.seq for (entry,) in seen] == [last] * 3
        assert len(await everything(logs[0])) == 20


@each
@pytest.mark.proves("design.log.read")
async def test_nodes_follow_each_other_without_gaps(over: Any, tmp_path: Path) -> None:
    """Each follower sees the same order, and nothing turns up behind what it has seen."""
    async with nodes(over, tmp_path, 3) as logs:

        async def write(log: Log, channel: str) -> None:
            last = 0
            for n in range(15):
                (*_, last) = await stored(log, channel, last, *[b"%d" % n] * (1 + n % 3))

        total = 3 * 5 * sum(1 + n % 3 for n in range(15))
        async with asyncio.TaskGroup() as tasks:
            followers = [tasks.create_task(following(log, 0, total)) for log in logs]
            for number, log in enumerate(logs):
                for channel in range(5):
                    tasks.create_task(write(log, f"c{number}/{channel}"))
        everyone = await everything(logs[0])
        assert len(everyone) == total
        assert [follower.result() for follower in followers] == [everyone] * 3


@each
async def test_only_one_process_has_an_exclusive_log_open(
    over: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(over.claiming, "CLAIMED_SECONDS", 0.2)
    backend = over.exclusive(tmp_path)
    async with backend.opened() as log:
        with pytest.raises(InUseError, match="is in use by"):
            await backend.open()
        await stored(log, A, 0, b"x")
    async with backend.opened() as log:
        assert len(await everything(log)) == 1


# A connection that is cut


@each
@pytest.mark.proves("design.log.all-or-nothing")
@pytest.mark.parametrize("is_stored", [True, False])
async def test_a_lost_acknowledgement_leaves_it_open_until_the_log_is_asked(
    over: Any, place: str, is_stored: bool
) -> None:
    """Cut before the server gets the batch, or after it has stored it and before that is known."""
    server = over.shared_server()
    async with cutting(server.port) as proxy:
        log = await over.open(server.url(place, port=proxy.port))
        (first,) = await stored(log, A, 0, b"before")
        wanted = batch(A, first, b"1", b"2")
        kind, mark = ("answer", over.answer_mark) if is_stored else ("request", over.append_mark)
        armed = [True]

        def cut_once(piece_kind: str, piece: bytes) -> bool:
            return piece_kind == kind and mark in piece and bool(armed) and bool(armed.pop())

        proxy.cut_at = cut_once
        outcome = await settled(log, wanted)
        assert isinstance(outcome, Unknown), outcome
        assert await refused(log, batch(A, first, b"too soon")) == CONFLICT
        await stored(log, B, 0, b"elsewhere")
        places = await found(log, wanted)
        assert len(places) == (2 if is_stored else 0)
        last = max(places.values(), default=first)
        await stored(log, A, last, b"after")
        assert len(await everything(log)) == 3 + len(places)
        await log.close()


@each
@pytest.mark.proves("design.log.all-or-nothing")
async def test_cuts_at_any_moment_lose_nothing_and_store_nothing_twice(
    over: Any, place: str, record_property: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    over.prepare(monkeypatch)
    server, chance = over.shared_server(), random.Random(20261117)
    async with cutting(server.port) as proxy:
        log = await over.open(server.url(place, port=proxy.port))
        load = Load(log)
        await load.written(100)
        for _ in range(over.cut_rounds):
            target = proxy.cuts + over.cuts_per_round
            proxy.cut_at = lambda *_: chance.random() < over.chance
            await until(lambda target=target: proxy.cuts >= target)
            proxy.cut_at = lambda *_: False
            await load.written(50)
        await load.ended()
        await load.check(log)
        record_property("outcomes", dict(load.kinds))
        assert load.kinds["Unknown"] > 0 or not IS_CI
        await log.close()


# A server that goes away


@pytest.mark.proves("design.log.epoch")
@pytest.mark.parametrize(
    ("over", "end"),
    [
        (OverPostgres, Cluster.stop),
        (OverPostgres, Cluster.crash),
        (OverPostgres, Cluster.kill),
        (OverNats, NatsServer.stop),
        (OverNats, NatsServer.kill),
    ],
)
async def test_a_server_that_ends_during_appends_has_all_that_it_reported(
    over: Any, end: Callable[[Any], None], record_property: Any
) -> None:
    with over.own_server() as server:
        log = await over.open(server.url())
        epoch = log.epoch
        load = Load(log)
        for _ in range(3):
            await load.written(100)
            await asyncio.to_thread(end, server)
            await asyncio.to_thread(server.start)
            await writable(log)
        await load.written(100)
        await load.ended()
        await load.check(log)
        assert log.epoch == epoch
        record_property("outcomes", dict(load.kinds))
        await log.close()
        log = await over.open(server.url())
        await load.check(log)
        assert log.epoch == epoch
        await log.close()


@each
async def test_a_log_without_its_server_refuses_with_a_reason_and_continues_when_it_is_back(
    over: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(over.patience, "PATIENCE_SECONDS", 0.1)
    with over.own_server() as server:
        log = await over.open(server.url())
        (last,) = await stored(log, A, 0, b"before")
        await asyncio.to_thread(server.stop)
        await until(lambda: over.has_noticed(log))
        for channel, expected in ((A, last), (B, 0)):
            outcome = await settled(log, batch(channel, expected, b"x"))
            assert isinstance(outcome, Refused), outcome
            assert outcome.because == RefusedBecause.BROKEN
            assert "cannot be reached" in outcome.reason
        for attempt in over.attempts(log):
            with pytest.raises(FailedError) as failure:
                await attempt
            assert failure.value.because == RefusedBecause.BROKEN
        await asyncio.to_thread(server.start)
        await until(lambda: over.is_back(log))
        await writable(log)
        await stored(log, A, last, b"after")
        assert [e.data for e in await everything(log)] == [b"before", b"after"]
        await log.close()


@each
async def test_closing_does_not_wait_for_ever(
    over: Any, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(over.closing, "CLOSING_SECONDS", 0.2)
    server = over.shared_server()
    log = await over.open(server.url(place))
    await stored(log, A, 0, b"x")
    with over.stuck(server, log):
        flying, behind = asked(log, batch(B, 0, b"x")), asked(log, batch(B, 0, b"y"))
        await asyncio.wait_for(log.close(), BOUND)
        assert isinstance(flying.result(), Unknown)
        assert behind.result().because == RefusedBecause.CLOSED


# Lost history


@each
@pytest.mark.proves("design.log.epoch", "design.log.backup")
async def test_a_copy_of_the_files_that_was_put_back_has_a_new_epoch(
    over: Any, tmp_path: Path
) -> None:
    """While the host was stopped: all that the server says of itself is what was known."""
    with over.own_server() as server:
        url = server.url()
        log = await open_log(url, data_dir=tmp_path)
        (kept,) = await stored(log, A, 0, b"kept")
        await log.close()
        copy = server.folder / "copy"
        await asyncio.to_thread(server.stop)
        shutil.copytree(server.data, copy)
        await asyncio.to_thread(server.start)
        log = await open_log(url, data_dir=tmp_path)
        epoch = log.epoch
        (lost,) = await stored(log, A, kept, b"lost")
        await log.save_snapshot(StoredSnapshot(A, lost, b"lost"))
        await log.close()
        await asyncio.to_thread(server.stop)
        server.put_back(copy)
        await asyncio.to_thread(server.start)
        log = await open_log(url, data_dir=tmp_path)
        assert log.epoch.name != epoch.name
        assert log.epoch.first > lost
        assert [e.data for e in await everything(log)] == [b"kept"]
        assert await log.snapshots() == []
        (after,) = await stored(log, A, kept, b"after")
        assert after > lost
        epoch = log.epoch
        await log.close()
        log = await open_log(url, data_dir=tmp_path)
        assert log.epoch == epoch
        await log.close()
