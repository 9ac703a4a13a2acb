"""What a host holds and how it comes back: many sessions, many clients, long histories, restarts.

Everything is measured from outside, on a server process of its own, each for several sizes.
"""

import contextlib
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from benchmarks.fanout.peers import (
    BROADCAST,
    LOOP,
    MEMORY,
    NODE,
    Api,
    Peer,
    RealAhp,
    host_command,
)
from benchmarks.load import Client, Server, connected, free_port, measure, scratch, serving
from benchmarks.results import Results

TYPING_PER_SECOND = 4
"""Drafts of one person who types: one for each key."""
TYPING_LIMIT_MS = 50.0
TYPING_MOST, TYPING_STEP = 3_000, 125

MISSED = 5
"""Actions in each session while its clients are away."""

# The tables that are filled
TYPING = "typing"
RECONNECTS = "reconnects"
SNAPSHOT = "snapshots"
IDLE = "idle"
START = "starts"
GROWTH = "growth"


def channels_of(count: int, prefix: str = "s") -> list[str]:
    return [f"ahp-session:/{prefix}{number}" for number in range(count)]


class Disk(NamedTuple):
    """A folder that outlives the servers on it."""

    folder: Path

    @contextlib.contextmanager
    def serving(self) -> Iterator[Server]:
        port = free_port()
        store = f"sqlite:///{self.folder / 'bench.db'}"
        with serving(host_command(port, self.folder, store), port) as server:
            yield server


@contextlib.contextmanager
def disk() -> Iterator[Disk]:
    with scratch() as folder:
        yield Disk(folder)


def crash(server: Server) -> None:
    server.process.send_signal(signal.SIGKILL)
    server.process.wait(30)


def typing(results: Results, most: int = TYPING_MOST, seconds: float = 4.0) -> None:
    """By bisection, how many sessions a core holds within the limit."""
    protocol = RealAhp()
    with disk() as store, store.serving() as server:
        channels = channels_of(most)
        protocol.prepare(server, channels)

        def attempt(count: int) -> bool:
            clients = protocol.clients(channels[:count], 5, 1)
            rate = count * TYPING_PER_SECOND
            found = measure(server, clients, rate=rate, seconds=seconds, warm=1.0)
            holds = found.p99 / 1e3 < TYPING_LIMIT_MS and not found.lost
            if holds or count == most:
                results.add(TYPING, f"{count:,} sessions", "p50, ms", found.p50 / 1e3)
                results.add(TYPING, f"{count:,} sessions", "p99, ms", found.p99 / 1e3)
                used = found.server_cpu / found.seconds
                results.add(TYPING, f"{count:,} sessions", "share of the core", used)
            return holds

        low, high = 0, most + TYPING_STEP
        while high - low > TYPING_STEP:
            middle = (low + high) // 2 // TYPING_STEP * TYPING_STEP
            low, high = (middle, high) if attempt(middle) else (low, middle)
        results.add(TYPING, "held with p99 < 50 ms", "sessions", low)


def reconnects(results: Results, count: int) -> None:
    """They were connected, missed some actions, and come back to a server that has just started."""
    row = f"{count:,} clients"
    protocol = RealAhp()
    channels = channels_of(max(1, count // 10))
    with disk() as store:
        with store.serving() as server:
            protocol.prepare(server, channels)
            everyone = list(protocol.clients(channels, 10, 1))
            measure(server, everyone)
            with Api(server.port) as api:
                seen = api.position()
            clients = protocol.clients(channels, 1, 1)
            measure(server, clients, rate=MISSED * len(channels), seconds=1)
            crash(server)
        back = [
            Client(client.path, protocol.reconnecting(number, channels[number // 10], seen))
            for number, client in enumerate(everyone)
        ]
        for column, clients in (
            ("bare WebSocket connects", [Client(protocol.path) for _ in everyone]),
            ("`initialize` with a snapshot", everyone),
            ("`reconnect`", back),
        ):
            with store.serving() as server:
                found = measure(server, clients, at_once=count)
                results.add(RECONNECTS, row, column, found.connected)
                results.add(RECONNECTS, row, f"{column}, CPU", server.processor_seconds)
                crash(server)


def snapshot(results: Results, turns: int) -> None:
    row = f"{turns:,} turns"
    protocol = RealAhp(turns)
    (channel,) = channels_of(1)
    with disk() as store, store.serving() as server:
        protocol.prepare(server, [channel])
        for _ in range(20):
            cpu = server.processor_seconds
            found = measure(server, protocol.clients([channel], 1, 0))
            results.add(SNAPSHOT, row, "ms until it has arrived", found.connected * 1e3)
            used = (server.processor_seconds - cpu) * 1e3
            results.add(SNAPSHOT, row, "server CPU, ms", used)
            results.add(SNAPSHOT, row, "size, kB", found.greeted / 1e3)


def idle(results: Results, count: int, peers: Sequence[Peer]) -> None:
    """The difference between many connections and a fifth of them: the first ones fill the heap."""
    for peer in peers:
        with peer.serving() as (server, protocol):
            channels = channels_of(max(1, count // 50))
            protocol.prepare(server, channels)
            each = count // len(channels)
            used = []
            for subscribers in (each // 5, each):
                with connected(server, protocol.clients(channels, subscribers, 0)):
                    used.append(server.memory)
            more = (each - each // 5) * len(channels)
            results.add(IDLE, peer.name, f"at {count:,}", (used[1] - used[0]) / more / 1024)


def start(results: Results, sessions: int, actions: int) -> None:
    """After a crash and after an orderly stop, with some actions in each session."""
    row = f"{sessions:,} sessions, {actions} actions in each"
    protocol = RealAhp()
    channels = channels_of(sessions)
    with disk() as store:
        with store.serving() as server:
            protocol.prepare(server, channels)
            seconds = sessions * actions / 4_000
            if seconds:
                clients = protocol.clients(channels, 1, 1)
                measure(server, clients, rate=4_000, seconds=seconds)
            crash(server)
        for column in ("after a crash", "after a stop"):
            began = perf_counter()
            with store.serving() as server:
                results.add(START, row, column, perf_counter() - began)
                results.add(START, row, f"{column}, CPU", server.processor_seconds)


def growth(
    results: Results, row: str, others: int = 0, turns: int = 0, age: int = 0, seconds: float = 1.5
) -> None:
    """What an action costs in a host with other sessions, long ones, or many actions before it."""
    protocol = RealAhp(turns)
    with disk() as store, store.serving() as server:
        RealAhp().prepare(server, channels_of(others, "other"))
        channels = channels_of(10)
        protocol.prepare(server, channels)
        if age:
            clients = protocol.clients(channels, 1, 1)
            measure(server, clients, window=64, seconds=seconds, least=age)
        for _ in range(3):
            clients = protocol.clients(channels, 10, 1)
            found = measure(server, clients, window=1, seconds=seconds, warm=0.3)
            used = found.server_cpu / found.actions * 1e6
            results.add(GROWTH, row, "CPU per action, µs", used)


def run(results: Results) -> None:
    print("host: growth", flush=True)
    growth(results, "fresh host")
    growth(results, "2,000 other sessions", others=2_000)
    growth(results, "1,000 turns in each session", turns=1_000)
    for age in (10_000, 100_000):
        growth(results, f"{age:,} actions in the log", age=age)
    print("host: idle connections", flush=True)
    idle(results, 1_000, (MEMORY,))
    idle(results, 5_000, (MEMORY, LOOP, BROADCAST, NODE))
    print("host: snapshots", flush=True)
    for turns in (100, 1_000):
        snapshot(results, turns)
    print("host: reconnects", flush=True)
    for count in (100, 1_000):
        reconnects(results, count)
    print("host: starts", flush=True)
    for sessions, actions in ((0, 0), (500, 10), (2_000, 10), (500, 100)):
        start(results, sessions, actions)
    print("host: typing", flush=True)
    typing(results)
