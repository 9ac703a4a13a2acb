"""Several nodes on one store: what an action costs, how many a second, and how long they take.

Each node has sessions whose clients are all connected to it, and applies what the others write. On
a machine with few cores the nodes, the engine and the load share them: processor time per action
says more about larger ones than the rate does.
"""

import contextlib
import secrets
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple, TypeAlias

import httpx2

from benchmarks.fanout.peers import RealAhp, host_command
from benchmarks.host import channels_of
from benchmarks.load import START_SECONDS, Measured, Server, free_port, measure, scratch, serving
from benchmarks.results import Results
from tests import nats, postgres

COST = "nodes"
"""Processor time, which a busy machine hardly changes."""
PACE = "nodes-pace"

NODES = (1, 2, 3)
SESSIONS, SUBSCRIBERS = 12, 5
"""Per node; one subscriber of each session writes."""
RATE = 240
"""Actions a second in all when latencies are measured: 60 people who type."""
WINDOW = 8
ROUNDS = 3
SECONDS = 2.0

Pids: TypeAlias = Callable[[], list[int]]


class Store(NamedTuple):
    """`pids` are the processes of the engine, if it has any."""

    name: str
    url: str
    pids: Pids
    is_shared: bool = True


OnStore: TypeAlias = Callable[[Path], contextlib.AbstractContextManager[Store]]


def processor_seconds(pids: Sequence[int]) -> float:
    times = [path for pid in pids for path in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    return sum(int(path.read_text().split()[0]) for path in times) / 1e9


def descendants(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(found for child in children for found in descendants(int(child)))]


# The stores


@contextlib.contextmanager
def on_sqlite(folder: Path) -> Iterator[Store]:
    yield Store("SQLite", f"sqlite:///{folder / 'bench.db'}", list, is_shared=False)


@contextlib.contextmanager
def on_postgres(folder: Path) -> Iterator[Store]:
    """As delivered, but for its port and `shared_buffers`."""
    del folder
    cluster = postgres.Cluster(disk=None, shared_buffers="128MB")
    try:
        yield Store("PostgreSQL", cluster.url(), partial(descendants, cluster.pid))
    finally:
        cluster.remove()


@contextlib.contextmanager
def on_nats(folder: Path) -> Iterator[Store]:
    """Three servers that hold a copy each, and sync before they acknowledge."""
    del folder
    with nats.own_cluster(sync="always", disk=None) as members:
        url = nats.url_of((member.port for member in members), replicas="3")
        yield Store("NATS, three servers", url, lambda: [member.pid for member in members])


# One measurement


@contextlib.contextmanager
def running(store: Store, folder: Path, count: int) -> Iterator[list[Server]]:
    """So many nodes, from when they are ready."""
    key = folder / "secret.key"
    key.touch(0o600)
    key.write_text(secrets.token_hex(32))
    shared = ("--shared",) if store.is_shared else ()
    with contextlib.ExitStack() as stack:
        servers = []
        for number in range(count):
            port = free_port()
            command = host_command(port, folder, store.url, *shared)
            servers.append(stack.enter_context(serving(command, port, core=number % 2)))
        for server in servers:
            wait_until_ready(server)
        yield servers


def wait_until_ready(server: Server) -> None:
    deadline = monotonic() + START_SECONDS
    while httpx2.get(f"http://127.0.0.1:{server.port}/readyz", timeout=60).status_code != 200:
        assert monotonic() < deadline, "a node did not catch up"
        sleep(0.02)


class Crowd:
    """Sessions with their clients for each node; all nodes are under load at the same time."""

    def __init__(self, servers: Sequence[Server]) -> None:
        self._servers = servers
        self._protocol = RealAhp()
        self._channels = [channels_of(SESSIONS, f"n{n}-") for n in range(len(servers))]
        self._protocol.prepare(servers[0], [uri for group in self._channels for uri in group])
        for server in servers:
            wait_until_ready(server)

    def measured(self, **options: float) -> list[Measured]:
        with ThreadPoolExecutor(len(self._servers)) as threads:
            return list(
                threads.map(
                    lambda server, channels: measure(
                        server, self._protocol.clients(channels, SUBSCRIBERS, 1), **options
                    ),
                    self._servers,
                    self._channels,
                )
            )


def measured(results: Results, store: Store, folder: Path, count: int, seconds: float) -> float:
    """Fills a row; returns the actions a second."""
    row = store.name if not store.is_shared else f"{store.name}, nodes: {count}"
    with running(store, folder, count) as servers:
        crowd = Crowd(servers)
        pids = store.pids()
        engine = processor_seconds(pids)
        found = crowd.measured(window=WINDOW, seconds=seconds, warm=seconds / 4)
        engine = processor_seconds(pids) - engine
        actions = sum(each.actions for each in found)
        per_second = sum(each.actions / each.seconds for each in found)
        nodes = sum(each.server_cpu for each in found)
        results.add(COST, row, "CPU of all nodes per action, µs", nodes / actions * 1e6)
        if store.is_shared:
            # It is measured from the start to the end, and the actions without the warm-up.
            share = seconds / (seconds + seconds / 4)
            results.add(COST, row, "CPU of the engine, µs", engine * share / actions * 1e6)
        results.add(PACE, row, "actions a second", per_second)
        found = crowd.measured(rate=RATE / count, seconds=seconds, warm=seconds / 4)
        results.add(PACE, row, "p50, ms", max(each.p50 for each in found) / 1e3)
        results.add(PACE, row, "p99, ms", max(each.p99 for each in found) / 1e3)
    return per_second


def run(results: Results, rounds: int = ROUNDS, seconds: float = SECONDS) -> None:
    """In each round every store and number of nodes, so that a busy moment hits all alike."""
    for number in range(rounds):
        print(f"nodes: round {number + 1} of {rounds}", flush=True)
        with scratch() as folder, on_sqlite(folder) as store:
            alone = measured(results, store, folder, 1, seconds)
        for on_store in (on_postgres, on_nats):
            for count in NODES:
                with scratch() as folder, on_store(folder) as store:
                    rate = measured(results, store, folder, count, seconds)
                    row = f"{store.name}, nodes: {count}"
                    results.add(PACE, row, "of SQLite's rate", rate / alone)
