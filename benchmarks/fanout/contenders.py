"""The servers under load, each as a process of its own on one core."""

import contextlib
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple

from benchmarks.fanout.load import ask
from benchmarks.fanout.peers import ENVELOPE

HERE = Path(__file__).parent
BUILD = HERE.parents[1] / "build" / "bench"
CHANNEL = "ahp-session:/bench"
MEMORY = "session-server, memory"
SQLITE = "session-server, SQLite full sync"
FASTAPI = "FastAPI, await send_text"
BROADCAST = "websockets broadcast()"
NODE = "Node ws"


class Door(NamedTuple):
    """Where a server listens, and which process it is."""

    port: int
    path: str
    pid: int


Start = Callable[[], AbstractContextManager[Door]]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def pinned(command: list[str], core: int) -> list[str]:
    """One core for the server and one for the load, where the system lets us choose."""
    return ["taskset", "-c", str(core), *command] if shutil.which("taskset") else command


@contextlib.contextmanager
def running(command: list[str], port: int) -> Iterator[int]:
    """A server's process, by its id."""
    process = subprocess.Popen(
        pinned(command, 0), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    with process:
        try:
            wait_for(port, process)
            yield process.pid
        finally:
            process.terminate()
            process.wait(20)


def wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    deadline = monotonic() + 30
    while monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        sleep(0.02)
    raise RuntimeError(f"{process.args} does not listen")


@contextlib.contextmanager
def session_server(store: str) -> Iterator[Door]:
    port = free_port()
    command = [sys.executable, "-m", "session_server", "serve", "--port", str(port)]
    limits = ["--actions-per-second", "0", "--connections-per-principal", "0"]
    with running([*command, *limits, "--store", store], port) as pid:
        ask(port, CHANNEL)
        yield Door(port, "/ahp", pid)


@contextlib.contextmanager
def on_sqlite(folder: Path) -> Iterator[Door]:
    for old in folder.glob("bench.db*"):
        old.unlink()
    with session_server(f"sqlite:///{folder / 'bench.db'}") as door:
        yield door


@contextlib.contextmanager
def python_peer(kind: str) -> Iterator[Door]:
    port = free_port()
    with running([sys.executable, "-m", "benchmarks.fanout.peers", kind, str(port)], port) as pid:
        yield Door(port, "/", pid)


@contextlib.contextmanager
def node_peer() -> Iterator[Door]:
    port = free_port()
    envelope = BUILD / "envelope.json"
    envelope.write_text(ENVELOPE)
    script = (HERE / "peer.mjs").as_posix()
    with running(["node", script, str(port), str(BUILD), str(envelope)], port) as pid:
        yield Door(port, "/", pid)


def contenders(folder: Path) -> dict[str, Start]:
    found: dict[str, Start] = {
        MEMORY: lambda: session_server("memory:"),
        SQLITE: lambda: on_sqlite(folder),
        FASTAPI: lambda: python_peer("fastapi"),
        BROADCAST: lambda: python_peer("websockets"),
    }
    if has_node_ws():
        found[NODE] = node_peer
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
