"""An active client that moves between two nodes on one log, in one event loop."""

import pytest

from session_server.host.clients.active_clients import GRACE_SECONDS
from session_server.host.host import Host
from session_server.host.host_limits import DEFAULT_LIMITS
from tests.ahp.actions import active_client_changed
from tests.host.harness import SESSION, back_as, record_of, with_session
from tests.host.manual_clock import ManualClock
from tests.host.test_follower import two_nodes

LEASE = DEFAULT_LIMITS.node_lease_seconds
ACTIVE = active_client_changed("laptop")


def is_active(host: Host) -> bool:
    return record_of(host).public.active_client is not None


@pytest.mark.proves("design.nodes.active-client")
async def test_an_active_client_that_moves_to_another_node_keeps_its_role() -> None:
    clock = ManualClock()
    async with two_nodes(clock=clock) as (one, other):
        here = await with_session(one)
        await here.act(ACTIVE)
        await clock.advance(LEASE)
        here.connection.closed()
        there, _ = await back_as(other, "laptop", other.position, SESSION)
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
    clock = ManualClock()
    async with two_nodes(clock=clock) as (one, other):
        here = await with_session(one)
        await here.act(ACTIVE)
        await clock.advance(LEASE)
        one.nodes.leave()
        there, _ = await back_as(other, "laptop", other.position, SESSION)
        await clock.advance(2 * GRACE_SECONDS)
        assert is_active(other)
        there.connection.closed()
        await clock.advance(GRACE_SECONDS + 1)
        assert not is_active(other)
