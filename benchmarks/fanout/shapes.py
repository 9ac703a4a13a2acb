"""The loads, and what each peer makes of them."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from benchmarks.fanout.peers import LOOP, MEMORY, PEERS, SQLITE, Peer, Protocol
from benchmarks.load import Measured, Server, measure
from benchmarks.results import Results


class Shape(NamedTuple):
    """`writers` are of each session; each keeps `window` actions in flight.

    `rate` is a moderate load in actions a second, at which latency is measured; 0: not measured.
    """

    name: str
    sessions: int
    subscribers: int
    writers: int
    window: int = 1
    rate: int = 0
    stalled: int = 0


SHAPES = (
    Shape("100 × 1", 100, 1, 1, rate=1_000),
    Shape("10 × 10", 10, 10, 1, rate=500),
    Shape("1 × 100", 1, 100, 10, rate=100),
    Shape("1 × 1,000", 1, 1_000, 10, rate=10),
)
SATURATED = (
    Shape("1 × 1, saturated", 1, 1, 1, window=64),
    Shape("1 × 100, saturated", 1, 100, 1, window=64),
    Shape("1 × 1,000, saturated", 1, 1_000, 1, window=64),
)
FREE = Shape("without a stalled one", 1, 100, 1, window=64)
STALLED = Shape("with a stalled one", 1, 100, 1, window=64, stalled=1)
STALLING = (MEMORY, SQLITE, LOOP)
STALL_SECONDS = 4.0
WARM_SECONDS = 0.3

# The tables that are filled
RATE = "rates"
"""Deliveries a second, in thousands."""
CPU_ACTION, CPU_DELIVERY = "cpu-per-action", "cpu-per-delivery"
"""Processor time of the server, µs."""
P50, P99 = "p50", "p99"
"""Latency at a moderate load, ms."""
SERVER, GENERATOR = "server-share", "generator-share"
"""Of its core, while as much is sent as the server takes."""
STALLS = "stalls"
"""Deliveries next to a stalled subscriber, as a part of those without it."""


class Run:
    """A server under several loads, each in sessions of its own."""

    def __init__(self, server: Server, protocol: Protocol) -> None:
        self.server = server
        self.protocol = protocol
        self.loads = 0

    def load(self, shape: Shape, seconds: float, rate: float = 0) -> Measured:
        self.loads += 1
        channels = [f"ahp-session:/{self.loads}-{number}" for number in range(shape.sessions)]
        self.protocol.prepare(self.server, channels)
        clients = self.protocol.clients(channels, shape.subscribers, shape.writers, shape.stalled)
        pace = {"rate": rate} if rate else {"window": shape.window}
        found = measure(self.server, clients, seconds=seconds, warm=WARM_SECONDS, **pace)
        if found.rejected or found.lost or not found.actions:
            raise RuntimeError(f"{shape.name} went wrong: {found}")
        return found


def run_peer(peer: Peer, shapes: Sequence[Shape], results: Results, seconds: float) -> None:
    with peer.serving() as (server, protocol):
        run = Run(server, protocol)
        for shape in shapes:
            found = run.load(shape, seconds)
            for table, value in rates(found):
                results.add(table, peer.name, shape.name, value)
            if shape.rate:
                found = run.load(shape, 1.5 * seconds, shape.rate)
                results.add(P50, peer.name, shape.name, found.p50 / 1e3)
                results.add(P99, peer.name, shape.name, found.p99 / 1e3)


def run_stalled(peer: Peer, results: Results, seconds: float) -> None:
    with peer.serving() as (server, protocol):
        run = Run(server, protocol)
        free, held_up = (run.load(shape, seconds) for shape in (FREE, STALLED))
        part = held_up.deliveries / held_up.seconds * free.seconds / free.deliveries
        results.add(STALLS, peer.name, "part", part)
        results.add(STALLS, peer.name, "disconnected", held_up.let_go)


def rates(found: Measured) -> Iterator[tuple[str, float]]:
    yield RATE, found.deliveries / found.seconds / 1e3
    yield CPU_ACTION, found.server_cpu / found.actions * 1e6
    yield CPU_DELIVERY, found.server_cpu / found.deliveries * 1e6
    yield SERVER, found.server_cpu / found.seconds
    yield GENERATOR, found.generator_cpu / found.seconds


def run(
    results: Results,
    peers: Sequence[Peer] = PEERS,
    shapes: Sequence[Shape] = SHAPES + SATURATED,
    rounds: int = 3,
    seconds: float = 1.0,
    stalling: Sequence[Peer] = STALLING,
) -> None:
    """The peers take turns, so that what disturbs the machine disturbs all alike."""
    for number in range(rounds):
        for peer in peers:
            print(f"fan-out {number + 1}/{rounds}: {peer.name}", flush=True)
            run_peer(peer, shapes, results, seconds)
            if peer in stalling:
                run_stalled(peer, results, STALL_SECONDS)
