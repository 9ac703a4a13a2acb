"""Real NATS servers for tests, in folders of their own, on free ports of loopback.

They end with the process that started them.
"""

import atexit
import contextlib
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.postgres import BOUND, QUICK, _end_with_parent, free_port

servers: list["NatsServer"] = []
"""Those that are there."""


def program() -> str | None:
    """The one that was installed next to this Python, or else any."""
    beside = Path(sys.executable).parent / "nats-server"
    return str(beside) if beside.exists() else shutil.which("nats-server")


@atexit.register
def remove_servers() -> None:
    for server in tuple(servers):
        server.remove()


class NatsServer:
    """`routes` are the ports of the other servers in its cluster; its own is `cluster_port`."""

    def __init__(
        self,
        *,
        name: str = "",
        cluster_port: int = 0,
        routes: Sequence[int] = (),
        sync: str = "2m",
        has_jetstream: bool = True,
        disk: str | None = QUICK,
    ) -> None:
        found = program()
        if found is None:
            pytest.skip("nats-server is not installed")
        self._program = found
        self.folder = Path(tempfile.mkdtemp(prefix="session-server-nats-", dir=disk))
        self.port, self.monitor_port = free_port(), free_port()
        self.name = name
        self._config: dict[str, Any] = {
            "listen": f"127.0.0.1:{self.port}",
            "http": f"127.0.0.1:{self.monitor_port}",
            "jetstream": {
                "store_dir": str(self.data),
                "sync_interval": sync,
                "max_memory_store": 2**26,
                "max_file_store": 2**30,
            },
        }
        if not has_jetstream:
            del self._config["jetstream"]
        if name:
            self._config["server_name"] = name
            self._config["cluster"] = {
                "name": "tests",
                "listen": f"127.0.0.1:{cluster_port}",
                "routes": [f"nats://127.0.0.1:{port}" for port in routes],
                "no_advertise": True,
            }
        servers.append(self)
        self._server: subprocess.Popen[bytes] | None = None
        self._launch()

    def url(
        self, stream: str = "session_server", *, port: int | None = None, **options: str
    ) -> str:
        return url_of([port or self.port], stream, **{"replicas": "1"} | options)

    @property
    def data(self) -> Path:
        return self.folder / "store"

    def start(self) -> None:
        self._launch()
        self.wait_until_ready()

    def _launch(self) -> None:
        path = self.folder / "server.conf"
        path.write_text(json.dumps(self._config))
        with (self.folder / "log").open("ab") as output:
            self._server = subprocess.Popen(
                [self._program, "-c", str(path)],
                stdout=output,
                stderr=output,
                cwd="/",
                preexec_fn=_end_with_parent,  # noqa: PLW1509  # calls nothing but the system
            )

    def wait_until_ready(self) -> None:
        until = time.monotonic() + BOUND
        while not self._is_ready():
            assert time.monotonic() < until, (self.folder / "log").read_text()[-3_000:]
            time.sleep(0.02)

    def _is_ready(self) -> bool:
        with contextlib.suppress(OSError, ValueError):
            return self.monitored("healthz")["status"] == "ok"
        return False

    def monitored(self, page: str) -> Any:
        url = f"http://127.0.0.1:{self.monitor_port}/{page}"
        with urllib.request.urlopen(url, timeout=BOUND) as answer:
            return json.load(answer)

    @property
    def pid(self) -> int:
        return self._server.pid

    @property
    def is_running(self) -> bool:
        return self._server is not None and self._server.poll() is None

    def send(self, number: signal.Signals) -> None:
        self._server.send_signal(number)

    def pause(self) -> None:
        """When this returns, none of its threads runs."""
        self.send(signal.SIGSTOP)
        os.waitpid(self._server.pid, os.WUNTRACED)

    def resume(self) -> None:
        self.send(signal.SIGCONT)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        self.send(number)
        self._server.wait(BOUND)

    def put_back(self, copy: Path) -> None:
        """Replaces its files, while it is stopped."""
        shutil.rmtree(self.data)
        shutil.copytree(copy, self.data)

    def remove(self) -> None:
        if self.is_running:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        servers.remove(self)


def url_of(ports: Iterable[int], stream: str = "session_server", **options: str) -> str:
    hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
    rest = "".join(f"&{name}={value}" for name, value in options.items())
    return f"nats://{hosts}?stream={stream}{rest}"


@functools.cache
def shared_server() -> NatsServer:
    """One for all tests of this process that harm no server."""
    server = NatsServer()
    server.wait_until_ready()
    return server


@contextlib.contextmanager
def own_server(**options: Any) -> Iterator[NatsServer]:
    """One that a test may harm."""
    server = NatsServer(**options)
    try:
        server.wait_until_ready()
        yield server
    finally:
        server.remove()


@contextlib.contextmanager
def own_cluster(**options: Any) -> Iterator[list[NatsServer]]:
    """Three servers that hold copies of each other's streams."""
    ports = [free_port() for _ in range(3)]
    members = [
        NatsServer(name=f"n{n}", cluster_port=port, routes=ports, **options)
        for n, port in enumerate(ports)
    ]
    try:
        for member in members:
            member.wait_until_ready()
        yield members
    finally:
        for member in members:
            member.remove()
