"""When NATS or the way to it fails: nothing acknowledged is lost, nothing stored twice."""

import asyncio
from typing import Any

import pytest

from session_server.log import Unknown
from session_server.log.nats import NatsLog, servers
from session_server.log.protocol import FailedError
from tests.log.cutting_proxy import cutting
from tests.log.load import Load, found
from tests.log.logs import BOUND, asked, batch, everything, settled, stored
from tests.nats import NatsServer, own_cluster, own_server, shared_server, url_of
from tests.waiting import until

pytestmark = pytest.mark.slow

A, B = "ahp-session:/a", "ahp-session:/b"


# A connection that is cut


async def test_what_reaches_the_server_after_find_has_answered_is_not_stored(place: str) -> None:
    """The batch is held on its way, and let go when the log has been asked about it."""
    async with cutting(shared_server().port) as proxy:
        log = await NatsLog.open(shared_server().url(place, port=proxy.port))
        (first,) = await stored(log, A, 0, b"before")
        wanted = batch(A, first, b"late")
        held: list[Any] = []
        publish = log._servers._client.publish

        async def hold(*arguments: Any, **options: Any) -> None:
            held.append((arguments, options))

        log._servers._client.publish = hold  # type: ignore[method-assign]
        outcome = asked(log, wanted)
        await until(lambda: bool(held))
        log._servers._client.publish = publish  # type: ignore[method-assign]
        proxy.cut()
        assert isinstance(await asyncio.wait_for(outcome, BOUND), Unknown)
        assert await found(log, wanted) == {}
        for arguments, options in held:
            await publish(*arguments, **options)
        await log._tail.barrier()
        assert [e.data for e in await everything(log)] == [b"before"]
        await stored(log, A, first, b"after")
        await log.close()


# A server that goes away


async def test_a_paused_server_makes_appends_unknown_and_they_are_found_when_it_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(servers, "ANSWER_SECONDS", 0.3)
    monkeypatch.setattr(servers.Servers.ask, "__kwdefaults__", {"is_many": False, "seconds": 0.3})
    with own_server() as server:
        log = await NatsLog.open(server.url())
        (last,) = await stored(log, A, 0, b"before")
        server.pause()
        wanted = batch(A, last, b"paused")
        try:
            assert isinstance(await settled(log, wanted), Unknown)
            with pytest.raises(FailedError):
                await log.find([wanted.entries[0].id])
        finally:
            server.resume()
        places = await found(log, wanted)
        last = max(places.values(), default=last)
        await stored(log, A, last, b"after")
        assert len(await everything(log)) == 2 + len(places)
        await log.close()


# Three servers


def leader_of(members: list[NatsServer], stream: str) -> NatsServer | None:
    """As the servers themselves say it; `None` while they elect one."""
    for member in members:
        if not member.is_running:
            continue
        accounts = member.monitored("jsz?streams=true")["account_details"]
        for detail in accounts[0].get("stream_detail", ()) if accounts else ():
            if detail["name"] == stream:
                name = detail["cluster"].get("leader")
                return next((m for m in members if m.name == name and m.is_running), None)
    return None


# The client library leaves a connection to a paused server to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.proves("design.log.nats", "design.log.epoch")
@pytest.mark.parametrize("fault", ["kill", "pause"])
async def test_a_cluster_that_loses_its_leader_loses_no_entry(
    fault: str, record_property: Any
) -> None:
    with own_cluster() as members:
        ports = [member.port for member in members]
        log = await NatsLog.open(url_of(ports, replicas="3"))
        epoch = log.epoch
        load = Load(log, channels=6)
        for _ in range(3):
            await load.written(60)
            found_leader: list[NatsServer] = []

            def has_leader(into: list[NatsServer] = found_leader) -> bool:
                into[:] = filter(None, [leader_of(members, "session_server")])
                return bool(into)

            await until(has_leader)
            (leader,) = found_leader
            if fault == "kill":
                await asyncio.to_thread(leader.kill)
                await load.written(60)
                await asyncio.to_thread(leader.start)
            else:
                leader.pause()
                try:
                    await load.written(60)
                finally:
                    leader.resume()
        await load.written(60)
        await load.ended()
        await load.check(log)
        assert log.epoch == epoch
        record_property("outcomes", dict(load.kinds))
        await log.close()
        log = await NatsLog.open(url_of(ports, replicas="3"))
        await load.check(log)
        assert log.epoch == epoch
        await log.close()
