"""Runs every server under the same load, in turns, and prints ratios: `make bench`."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import monotonic, sleep
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.fanout.load import ask
from benchmarks.fanout.peers import ENVELOPE

HERE = Path(__file__).parent
BUILD = HERE.parents[1] / "build" / "bench"
CHANNEL = "ahp-session:/bench"
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
SECONDS = float(os.environ.get("BENCH_SECONDS", "1.5"))
SUBSCRIBERS = (1, 10, 100, 1000)
SATURATED, LONE = 64, 1
console = Console(width=110)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def pinned(command: list[str], core: int) -> list[str]:
    """One core for the server and one for the load, where the system lets us choose."""
    return ["taskset", "-c", str(core), *command] if shutil.which("taskset") else command


@contextlib.contextmanager
def running(command: list[str], port: int) -> Iterator[None]:
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(pinned(command, 0), **quiet) as process:
        try:
            deadline = monotonic() + 20
            while monotonic() < deadline:
                with contextlib.suppress(OSError):
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                sleep(0.02)
            yield
        finally:
            process.terminate()
            process.wait(10)


@contextlib.contextmanager
def session_server(store: str) -> Iterator[tuple[int, str]]:
    port = free_port()
    command = [sys.executable, "-m", "session_server", "serve", "--port", str(port)]
    command += ["--actions-per-second", "0"]
    with running([*command, "--store", store], port):
        ask(port, CHANNEL)
        yield port, "/ahp"


@contextlib.contextmanager
def python_peer(kind: str) -> Iterator[tuple[int, str]]:
    port = free_port()
    with running([sys.executable, "-m", "benchmarks.fanout.peers", kind, str(port)], port):
        yield port, "/"


@contextlib.contextmanager
def node_peer() -> Iterator[tuple[int, str]]:
    port = free_port()
    envelope = BUILD / "envelope.json"
    envelope.write_text(ENVELOPE)
    script = (HERE / "peer.mjs").as_posix()
    with running(["node", script, str(port), str(BUILD), str(envelope)], port):
        yield port, "/"


def load(port: int, path: str, subscribers: int, window: int, stalled: int = 0) -> dict[str, Any]:
    script = (HERE / "load.py").as_posix()
    arguments = [port, path, CHANNEL, subscribers, window, SECONDS, stalled]
    done = subprocess.run(
        pinned([sys.executable, script, *map(str, arguments)], 1),
        check=True,
        capture_output=True,
        timeout=120,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def contenders(folder: Path) -> dict[str, Any]:
    database = folder / "bench.db"
    found = {
        "session-server, memory": lambda: session_server("memory:"),
        "session-server, SQLite full sync": lambda: session_server(f"sqlite:///{database}"),
        "FastAPI, await send_text": lambda: python_peer("fastapi"),
        "websockets broadcast()": lambda: python_peer("websockets"),
    }
    if has_node_ws():
        found["Node ws"] = node_peer
    return found


def has_node_ws() -> bool:
    """Fetched once into the build folder; without Node or its registry, one peer is missing."""
    if shutil.which("npm") is None:
        return False
    BUILD.mkdir(parents=True, exist_ok=True)
    if not (BUILD / "node_modules" / "ws").is_dir():
        subprocess.run(
            ["npm", "install", "--prefix", str(BUILD), "ws@8"], capture_output=True, check=False
        )
    return (BUILD / "node_modules" / "ws").is_dir()


def main() -> None:
    samples: dict[tuple[str, int, int], list[dict[str, Any]]] = {}
    stalls: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        for number in range(ROUNDS):
            for contender, start in contenders(Path(name)).items():
                for database in Path(name).glob("bench.db*"):
                    database.unlink()
                with start() as (port, path):
                    for subscribers in SUBSCRIBERS:
                        for window in (SATURATED, LONE):
                            result = load(port, path, subscribers, window)
                            samples.setdefault((contender, subscribers, window), []).append(result)
                    if contender.startswith("session-server"):
                        stalled = load(port, path, 100, SATURATED, stalled=1)["deliveries"]
                        stalls.setdefault(contender, []).append(stalled)
            console.print(f"round {number + 1} of {ROUNDS} done", style="dim")
    show(samples, stalls)


def show(
    samples: dict[tuple[str, int, int], list[dict[str, Any]]], stalls: dict[str, list[float]]
) -> None:
    names = list(dict.fromkeys(name for name, _, _ in samples))

    def figure(name: str, subscribers: int, window: int, key: str) -> float:
        return median(s[key] for s in samples[name, subscribers, window])

    table = Table(title="Deliveries per second, 64 actions outstanding (× the FastAPI loop)")
    table.add_column("subscribers")
    for name in names:
        table.add_column(name, justify="right")
    for subscribers in SUBSCRIBERS:
        base = figure("FastAPI, await send_text", subscribers, SATURATED, "deliveries")
        rates = [figure(name, subscribers, SATURATED, "deliveries") for name in names]
        table.add_row(str(subscribers), *(f"{rate:,.0f} ×{rate / base:.1f}" for rate in rates))
    console.print(table)
    table = Table(title="Time to the writer's own echo, one in flight: p50 / p99 in µs")
    table.add_column("subscribers")
    for name in names:
        table.add_column(name, justify="right")
    for subscribers in SUBSCRIBERS:
        cells = [
            f"{figure(name, subscribers, LONE, 'p50'):,.0f} / "
            f"{figure(name, subscribers, LONE, 'p99'):,.0f}"
            for name in names
        ]
        table.add_row(str(subscribers), *cells)
    console.print(table)
    for name, rates in stalls.items():
        free = figure(name, 100, SATURATED, "deliveries")
        console.print(
            f"{name}: with one stalled subscriber beside 100, ×{median(rates) / free:.2f}"
        )


main()
