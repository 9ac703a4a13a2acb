"""An active client that moves between two nodes on one log, in one event loop."""

import pytest

from session_server.host.active_clients import GRACE_SECONDS
from session_server.host.bounds import DEFAULT_BOUNDS
from session_server.host.host import Host
from session_server.log.memory import MemoryLog
from tests.host.harness import SESSION, Client, hosting, with_session
from tests.host.manual_clock import ManualClock

LEASE = DEFAULT_BOUNDS.node_lease_seconds
ACTIVE = {
    "type": "session/activeClientChanged",
    "activeClient": {"clientId": "laptop", "tools": []},
}


def is_active(host: Host) -> bool:
    record = host.record(SESSION)
    assert record is not None
    return record.public.active_client is not None


async def moved_to(host: Host) -> Client:
    client = Client(host)
    await client.call(
        "reconnect", clientId="laptop", lastSeenServerSeq=host.position, subscriptions=[SESSION]
    )
    return client


@pytest.mark.proves("design.nodes.active-client")
async def test_an_active_client_that_moves_to_another_node_keeps_its_role() -> None:
    clock, log = ManualClock(), MemoryLog()
    async with (
        hosting(log, clock=clock, is_shared=True) as one,
        hosting(log, clock=clock, is_shared=True) as other,
    ):
        here = await with_session(one)
        await here.act(ACTIVE)
        await clock.advance(LEASE)
        here.connection.closed()
        there = await moved_to(other)
        await clock.advance(2 * GRACE_SECONDS)
        assert is_active(one)
        assert is_active(other)
        there.connection.closed()
        await clock.advance(GRACE_SECONDS - 1)
        assert is_active(one)
        await clock.advance(2)
        assert not is_active(one)
        assert not is_active(other)


@pytest.mark.proves("design.nodes.active-client")
async def test_an_active_client_whose_node_died_loses_its_role_unless_it_comes_back() -> None:
    clock, log = ManualClock(), MemoryLog()
    async with (
        hosting(log, clock=clock, is_shared=True) as one,
        hosting(log, clock=clock, is_shared=True) as other,
    ):
        here = await with_session(one)
        await here.act(ACTIVE)
        await clock.advance(LEASE)
        assert one.nodes is not None
        one.nodes.leave()
        there = await moved_to(other)
        await clock.advance(2 * GRACE_SECONDS)
        assert is_active(other)
        there.connection.closed()
        await clock.advance(GRACE_SECONDS + 1)
        assert not is_active(other)
