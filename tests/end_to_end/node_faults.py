"""Three nodes on an engine that can be harmed, and everything that may happen to them."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from random import Random
from typing import Protocol

from tests.end_to_end.crowd import Crowd
from tests.end_to_end.test_nodes import node, until_ready
from tests.log.cutting_proxy import CuttingProxy, cutting
from tests.log.test_nats_faults import leader_of
from tests.log.test_postgres_faults import synchronised
from tests.nats import NatsServer, url_of
from tests.nats import own_cluster as nats_cluster
from tests.postgres import Cluster, own_cluster
from tests.servers import ServerProcess
from tests.waiting import until

NODES = 3
Fault = Callable[[Crowd], Awaitable[None]]


class Engine(Protocol):
    """`ports` are those of its servers; `url` is how they are reached at these or other ports."""

    ports: Sequence[int]

    def url(self, ports: Sequence[int]) -> str: ...

    def faults(self) -> Sequence[Fault]:
        """Each may happen once."""
        ...


class Postgres:
    """A primary, and a synchronous standby that may take its place."""

    def __init__(self, primary: Cluster, standby: Cluster) -> None:
        self._standby = standby
        self._current = primary
        self.ports = (primary.port, standby.port)

    @classmethod
    @asynccontextmanager
    async def running(cls) -> "AsyncIterator[Postgres]":
        with ExitStack() as stack:
            primary = stack.enter_context(own_cluster())
            standby = stack.enter_context(own_cluster(primary))
            await synchronised(primary)
            yield cls(primary, standby)

    def url(self, ports: Sequence[int]) -> str:
        hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
        return f"postgresql://postgres@{hosts}/postgres?schema=session_server"

    def faults(self) -> Sequence[Fault]:
        return (self.restart, self.terminate, self.fail_over)

    async def restart(self, crowd: Crowd) -> None:
        await asyncio.to_thread(self._current.crash)
        await asyncio.to_thread(self._current.start)
        await crowd.progress(30)

    async def terminate(self, crowd: Crowd) -> None:
        ours = "application_name LIKE 'session-server%'"
        end = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {ours}"
        for _ in range(3):
            await asyncio.to_thread(self._current.execute, end)
            await crowd.progress(10)

    async def fail_over(self, crowd: Crowd) -> None:
        await asyncio.to_thread(self._current.kill)
        self._current = self._standby
        await asyncio.to_thread(self._current.promote)
        await crowd.progress(30)


class Nats:
    """Three servers with a copy each."""

    def __init__(self, members: list[NatsServer]) -> None:
        self._members = members
        self.ports = [member.port for member in members]

    @classmethod
    @asynccontextmanager
    async def running(cls) -> "AsyncIterator[Nats]":
        with nats_cluster() as members:
            yield cls(members)

    def url(self, ports: Sequence[int]) -> str:
        return url_of(ports, replicas="3")

    def faults(self) -> Sequence[Fault]:
        return (self.kill_leader, self.pause_leader)

    async def kill_leader(self, crowd: Crowd) -> None:
        leader = await self._leader()
        await asyncio.to_thread(leader.kill)
        await crowd.progress(30)
        await asyncio.to_thread(leader.start)
        await asyncio.to_thread(leader.wait_until_ready)

    async def pause_leader(self, crowd: Crowd) -> None:
        leader = await self._leader()
        leader.pause()
        try:
            await crowd.progress(30)
        finally:
            leader.resume()

    async def _leader(self) -> NatsServer:
        found = await until(lambda: leader_of(self._members, "session_server"))
        assert found is not None
        return found


class Nodes:
    """Clients reach a node through its `front`, and it reaches the servers through its `back`."""

    def __init__(
        self, engine: Engine, folder: Path, arguments: Sequence[str], dice: Random
    ) -> None:
        self.engine = engine
        self.store = engine.url(engine.ports)
        self._folder = folder
        self._arguments = arguments
        self._dice = dice
        self.running: list[ServerProcess] = []
        self._fronts: list[CuttingProxy] = []
        self._backs: list[list[CuttingProxy]] = []

    @property
    def addresses(self) -> list[str]:
        return [f"http://127.0.0.1:{front.port}" for front in self._fronts]

    @asynccontextmanager
    async def started(self) -> "AsyncIterator[Nodes]":
        async with AsyncExitStack() as stack:
            stack.callback(self._kill_all)
            for number in range(NODES):
                enter = stack.enter_async_context
                self._backs.append([await enter(cutting(port)) for port in self.engine.ports])
                self.running.append(await self._start(number, 0))
                self._fronts.append(await enter(cutting(self.running[number].port)))
            for server in self.running:
                await until_ready(server)
            yield self

    async def _start(self, number: int, port: int) -> ServerProcess:
        store = self.engine.url([back.port for back in self._backs[number]])
        return await asyncio.to_thread(node, store, self._folder, *self._arguments, port=port)

    def _kill_all(self) -> None:
        for server in self.running:
            if server.process.poll() is None:
                server.kill()

    # Faults

    def faults(self) -> Sequence[Fault]:
        return (self.kill, self.pause, self.cut_clients, self.cut_store)

    async def kill(self, crowd: Crowd) -> None:
        number = self._dice.randrange(NODES)
        await asyncio.to_thread(self.running[number].kill)
        await crowd.progress(30)
        self.running[number] = await self._start(number, self.running[number].port)
        await until_ready(self.running[number])

    async def pause(self, crowd: Crowd) -> None:
        """Some of its clients lose patience, the others wait."""
        number = self._dice.randrange(NODES)
        os.kill(self.running[number].pid, signal.SIGSTOP)
        try:
            for person in crowd.people:
                if person.node == number and self._dice.random() < 0.5:
                    person.cut()
            await crowd.progress(100)
        finally:
            os.kill(self.running[number].pid, signal.SIGCONT)

    async def cut_clients(self, crowd: Crowd) -> None:
        for _ in range(3):
            self._dice.choice(self._fronts).cut()
            await crowd.progress(20)

    async def cut_store(self, crowd: Crowd) -> None:
        """Between any two pieces of what a node and its store say to each other."""
        backs = self._dice.choice(self._backs)
        for back in backs:
            back.cut_at = lambda *_: self._dice.random() < 0.1
        await crowd.progress(50)
        for back in backs:
            back.cut_at = lambda *_: False
            back.cut()
