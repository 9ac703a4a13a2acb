"""Three nodes, dozens of clients, and faults from a seeded schedule: in the end all agree."""

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.ahp.mirror import ROOT, Mirror
from tests.effort import tries
from tests.end_to_end.crowd import SESSIONS, Crowd
from tests.end_to_end.mirror_client import Device
from tests.end_to_end.node_faults import Engine, Fault, Nats, Nodes, Postgres
from tests.mcp import zoo

SEED = 15
LEASE = ("--node-lease-seconds", "3")
"""The work of a killed node is taken over while the schedule goes on."""
MORE = tries(in_ci=1, at_hand=0)
"""Faults of nodes beyond one of each kind."""


def schedule(nodes: Nodes, dice: Random) -> list[list[Fault]]:
    """Each fault of the engine happens at the same time as one of a node, or after it."""
    of_nodes = [*nodes.faults(), *(dice.choice(nodes.faults()) for _ in range(MORE))]
    of_engine = list(nodes.engine.faults())
    dice.shuffle(of_nodes)
    dice.shuffle(of_engine)
    steps = [[fault] for fault in of_nodes]
    joined = dice.sample(steps, len(of_engine))
    for step, fault in zip(joined, of_engine, strict=True):
        if dice.random() < 0.5:
            step.append(fault)
        else:
            steps.insert(steps.index(step) + 1, [fault])
    return steps


async def newcomers(nodes: Nodes) -> list[Device]:
    """One at each node, who has only its snapshots."""
    found = []
    for number, server in enumerate(nodes.running):
        device = Device(Mirror(f"late{number}", [ROOT, *SESSIONS]))
        await device.connect(server.ahp)
        found.append(device)
    return found


@pytest.mark.proves("design.nodes.faults", "design.nodes.engine", "design.nodes.killed")
@pytest.mark.parametrize("engine", [Postgres, Nats])
async def test_all_agree_after_faults_of_nodes_connections_and_the_engine(
    engine: Any, tmp_path: Path, record_property: Any
) -> None:
    dice = Random(SEED)
    file = tmp_path / "effects"
    running: AbstractAsyncContextManager[Engine] = engine.running()
    with zoo.http_server("modern", "--effects", str(file)) as server:
        config = zoo.mcp_json(tmp_path, {"zoo": {"url": server.url}})
        async with running as store:
            nodes = Nodes(store, tmp_path, ("--mcp-config", str(config), *LEASE), dice)
            async with nodes.started():
                crowd = Crowd(nodes.addresses, dice)
                await crowd.come()
                try:
                    for step in schedule(nodes, dice):
                        await crowd.progress(100)
                        await asyncio.gather(*(fault(crowd) for fault in step))
                    await crowd.progress(100)
                    await crowd.finish()
                    ran = [row["city"].partition("/")[0] for row in zoo.effects(file, "weather")]
                    counts = await crowd.judged(nodes.store, ran, await newcomers(nodes))
                finally:
                    await crowd.leave()
    for name, count in counts.items():
        record_property(name, count)
    record_property("answers", dict(crowd.answers))
