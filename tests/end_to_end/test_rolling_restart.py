"""All nodes behind a load balancer are restarted in turn while clients are at work."""

import asyncio
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import httpx2
import pytest

from session_server.client import Client, Session, connect
from session_server.schemas.errors import CloseCode
from tests.effort import PATIENCE
from tests.end_to_end.crowd import Crowd
from tests.mcp import zoo
from tests.nats import url_of
from tests.waiting import until

CLUSTER = Path(__file__).parents[2] / "examples" / "cluster" / "cluster.py"
NODES = 3
PROGRAMS = 3


class RunningCluster:
    """`examples/cluster`, as it is started by hand; what it prints says where everything is."""

    def __init__(self) -> None:
        self.output = ""

    @asynccontextmanager
    async def running(self, **settings: str) -> "AsyncIterator[RunningCluster]":
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, str(CLUSTER), "--port", "0"),
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, **settings},
        )
        reading = asyncio.create_task(self._read(process))
        try:
            await until(lambda: " nodes at http" in self.output)
            yield self
        finally:
            process.send_signal(signal.SIGINT)
            await asyncio.wait_for(process.wait(), PATIENCE)
            await reading
        assert process.returncode == 0

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            self.output += line.decode()

    def found(self, pattern: str) -> list[str]:
        return re.findall(pattern, self.output)

    @property
    def url(self) -> str:
        return self.found(r" nodes at (http://\S+)/")[0]

    @property
    def store(self) -> str:
        return url_of(map(int, self.found(r"NATS .*port (\d+)")), "cluster", replicas="3")

    async def restart(self, number: int) -> None:
        """As an operator does: the next one only when this one is ready again."""
        pids = self.found(rf"node {number}: process (\d+)")
        os.kill(int(pids[-1]), signal.SIGTERM)
        await until(lambda: len(self.found(rf"node {number}: process (\d+)")) > len(pids))
        port = self.found(rf"node {number}: process \d+, port (\d+)")[-1]
        async with httpx2.AsyncClient(
            base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE
        ) as http:
            await until(lambda: _is_ready(http))


async def _is_ready(http: httpx2.AsyncClient) -> bool:
    try:
        return (await http.get("/readyz")).status_code == 200
    except httpx2.TransportError:
        return False


class Program:
    """Asks and answers with the Python client: nothing that it calls may fail."""

    def __init__(self, url: str, number: int) -> None:
        self._url = url
        self._session = f"ahp-session:/program{number}"
        self.answered = 0
        self.is_over = False
        self.task = asyncio.create_task(self._run())

    def has_answered(self, number: int) -> bool:
        if self.task.done():
            self.task.result()
        return self.answered >= number

    async def _run(self) -> None:
        async with connect(self._url) as client:
            await client.create_session("people", uri=self._session)
            async with client.session(self._session) as here:
                while not self.is_over:
                    await asyncio.gather(self._ask(client), self._answer(here))

    async def _ask(self, client: Client) -> None:
        question = {"id": "city", "question": "Where to?"}
        result = await client.ask("A trip", [question], session=self._session)
        assert result.answers == {"city": f"city {self.answered}"}
        self.answered += 1

    async def _answer(self, here: Session) -> None:
        request = await here.wait_for_request(timeout=PATIENCE)
        await here.complete(request.id, answers={"city": f"city {self.answered}"})


@pytest.mark.proves("design.nodes.rolling")
async def test_a_rolling_restart_is_noticed_by_no_client(
    tmp_path: Path, record_property: Any
) -> None:
    """WebSockets are closed with the code that means reconnect, and nothing else happens."""
    file = tmp_path / "effects"
    with zoo.http_server("modern", "--effects", str(file)) as server:
        config = zoo.mcp_json(tmp_path, {"zoo": {"url": server.url}})
        async with RunningCluster().running(SESSION_SERVER_MCP_CONFIG=str(config)) as cluster:
            crowd = Crowd([cluster.url], Random(4), people=12, patience=PATIENCE)
            await crowd.come()
            programs = [Program(cluster.url, number) for number in range(PROGRAMS)]
            try:
                for number in range(NODES):
                    await at_work(crowd, programs)
                    await cluster.restart(number)
                await at_work(crowd, programs)
                for program in programs:
                    program.is_over = True
                async with asyncio.timeout(PATIENCE):
                    await asyncio.gather(*(program.task for program in programs))
                await crowd.finish()
                ran = [row["city"].partition("/")[0] for row in zoo.effects(file, "weather")]
                counts = await crowd.judged(cluster.store, ran)
            finally:
                await crowd.leave()
    for name, count in counts.items():
        record_property(name, count)
    closes = Counter(code for person in crowd.people for code in person.closes)
    record_property("closes", dict(closes))
    record_property("answered_by_programs", [program.answered for program in programs])
    record_property("answers", dict(crowd.answers))
    assert set(closes) <= {CloseCode.RESTARTING}
    assert not sum((person.failures for person in crowd.people), Counter())
    assert set(crowd.answers) <= {"200", "201", "call finished"}
    reasons = {r.reason for person in crowd.people for r in person.mirror.rejections}
    assert not [reason for reason in reasons if "saved" in reason]


async def at_work(crowd: Crowd, programs: Sequence[Program]) -> None:
    """Everybody gets on."""
    goals = [program.answered + 3 for program in programs]
    await crowd.progress(60)
    for program, goal in zip(programs, goals, strict=True):
        await until(lambda program=program, goal=goal: program.has_answered(goal))
