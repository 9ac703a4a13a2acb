"""Calls at two nodes: which one sends a leg, and when the same request is a new call."""

import asyncio
import sys
from pathlib import Path

import pytest

from session_server.host.channels.changes import Change, ReadChange
from session_server.host.effects import SessionChannel
from session_server.log.memory import MemoryLog
from session_server.mcp_client.config import ServerConfig
from session_server.reducers.effects import SendCall, effects_of
from tests.calls.running_host import OWNER, PATIENCE, RunningHost, http, running_host
from tests.effort import tries
from tests.host.manual_clock import ManualClock
from tests.mcp import zoo
from tests.mcp.servers import odd

TIMES = tries(in_ci=50, at_hand=20)


def send_too(node: RunningHost) -> None:
    """This node also sends what another one has made due, as if it took over from that one."""

    def committed(channel: SessionChannel, change: Change) -> None:
        if isinstance(change, ReadChange):
            for effect in effects_of(change.before, change.actions, change.after):
                if isinstance(effect, SendCall):
                    node.calls.driver.send(channel, effect)

    node.host.on_committed.append(committed)


@pytest.mark.slow
@pytest.mark.proves("design.nodes.one-retry")
async def test_of_two_nodes_that_would_both_send_a_leg_one_does(tmp_path: Path) -> None:
    file, log = tmp_path / "effects", MemoryLog()
    with zoo.http_server("modern", "--effects", str(file)) as server:
        config = http(server.url)
        async with running_host(config, shared=log) as one, running_host(config, shared=log) as two:
            send_too(one)
            send_too(two)
            senders: list[str] = []
            for number in range(TIMES):
                node = (one, two)[number % 2]
                call = await node.call("weather", key=str(number))
                await node.answer("city", city=f"Oslo-{number}")
                assert await node.text(call) == f"Sunny in Oslo-{number}"
                senders.append(node.record.private.calls[call].node)
    cities = [row["city"] for row in zoo.effects(file, "weather")]
    assert cities == [f"Oslo-{number}" for number in range(TIMES)]
    assert set(senders) == {one.host.node, two.host.node}


async def test_a_result_that_was_fetched_at_one_node_is_noted_at_once() -> None:
    """Until then another node takes the same request for the same call, and does not run it."""
    log, config = MemoryLog(), ServerConfig(command=sys.executable, args=(odd.__file__,))
    async with (
        running_host(config, shared=log, clock=ManualClock()) as one,
        running_host(config, shared=log) as two,
    ):
        first = await one.call("untyped")
        await one.ended(first)
        async with asyncio.timeout(PATIENCE):  # at this node no time passes
            await one.calls.collect(OWNER, first)
        await two.until(lambda record: record.private.calls[first].collected or None)
        assert await two.call("untyped") != first
