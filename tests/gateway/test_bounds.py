"""How much the gateway keeps, and for how long, where the numbers are the host's own."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError
from mcp.server import Server

from session_server.calls.config import load_servers
from session_server.calls.errors import UnreachableError
from session_server.calls.servers import Servers
from session_server.gateway.relayed import RelayedLeg, RelayedLegs
from session_server.gateway.seals import sealing
from session_server.gateway.served import Served
from session_server.gateway.upstreams import Upstream
from session_server.schemas.limits import (
    CAPABILITY_SETS,
    MCP_SESSION_IDLE_SECONDS,
    RELAYED_CALL_SECONDS,
    RELAYED_CALLS,
    SEALED_STATE_SECONDS,
)
from tests.host.harness import hosting, run


@run
async def test_so_many_calls_are_under_way_and_no_more() -> None:
    legs = RelayedLegs()
    for number in range(RELAYED_CALLS):
        legs.add(RelayedLeg(f"n{number}", f"k{number}"))
    with pytest.raises(MCPError, match=f"{RELAYED_CALLS} calls are under way; try again later"):
        legs.add(RelayedLeg("more", "more"))
    first = legs.named("n0")
    assert first is not None
    legs.drop(first)
    legs.add(RelayedLeg("more", "more"))


class Clock:
    """A loop's own, which can be put forward."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._real: Callable[[], float] = loop.time
        self._ahead = 0.0
        loop.time = self  # type: ignore[method-assign]

    def __call__(self) -> float:
        return self._real() + self._ahead

    async def pass_by(self, seconds: float) -> None:
        self._ahead += seconds
        await asyncio.sleep(0.01)


def in_a_loop(story: Coroutine[Any, Any, None]) -> None:
    """asyncio's own kind, whose clock can be replaced."""
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        runner.run(story)


def test_a_call_whose_client_stays_away_is_given_up_in_time() -> None:
    async def story() -> None:
        clock = Clock(asyncio.get_running_loop())
        legs = RelayedLegs()
        legs.add(RelayedLeg("name", "key"))
        await clock.pass_by(RELAYED_CALL_SECONDS - 60)
        assert legs.named("name") is not None
        await clock.pass_by(61)
        assert legs.named("name") is None
        assert legs.same("key") is None

    in_a_loop(story())


@run
async def test_so_many_sets_of_capabilities_are_in_use_and_no_more(tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    config.write_text('{"mcpServers": {"never": {"command": "never-started"}}}')
    servers = Servers(load_servers(config), asyncio.create_task, lambda *_: None)
    upstream = Upstream(servers, "never", asyncio.create_task)
    used = [await upstream._set({"experimental": {str(n): {}}}) for n in range(CAPABILITY_SETS)]
    for one in used:
        one.users += 1
    with pytest.raises(UnreachableError, match=f"{CAPABILITY_SETS} different sets"):
        await upstream._set({"roots": {}})
    used[0].users -= 1
    await upstream._set({"roots": {}})


# The SDK keeps these for us; that it was told is all there is to see.


def test_a_sealed_state_is_good_for_its_time() -> None:
    boundary = sealing(lambda: b"k" * 32, "here")
    assert boundary._security.ttl == SEALED_STATE_SECONDS


@run
async def test_a_session_of_the_older_kind_ends_when_it_is_not_used() -> None:
    async with hosting() as host:
        served = Served(host, Server("any"), asyncio.Event())
        assert served._manager.session_idle_timeout == MCP_SESSION_IDLE_SECONDS
