"""A real PostgreSQL for tests: a cluster in a folder of its own, on a free port of loopback.

It runs as an unprivileged user, since PostgreSQL refuses to run as root, and ends with the process
that started it.
"""

import atexit
import contextlib
import ctypes
import functools
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

BOUND = 60
ROOM = 2 * 2**30
PORTS = range(20_000, 32_000)
"""Below those that the system gives to connections: a server comes back to its port."""


def _quick() -> str | None:
    """What is tested does not depend on the disk, and this one needs no time to sync."""
    folder = Path("/dev/shm")
    return str(folder) if folder.is_dir() and shutil.disk_usage(folder).free > ROOM else None


QUICK = _quick()

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "shared_buffers": "16MB",
    "max_connections": "60",
    "log_min_messages": "warning",
    "max_prepared_transactions": "5",
}
DIE_WITH_PARENT = 1
"""Linux' PR_SET_PDEATHSIG: a test run that is killed leaves no server behind."""


def programs() -> Path | None:
    """Where PostgreSQL's programs are; Debian does not put the server on the path."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda p: p.parts)
    on_path = shutil.which("postgres")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


def free_port() -> int:
    while True:
        port = random.choice(PORTS)
        with contextlib.suppress(OSError), socket.socket() as trial:
            trial.bind(("127.0.0.1", port))
            return port


def _unprivileged() -> pwd.struct_passwd:
    """Debian's package makes a user for it."""
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    return names.get("postgres") or names["nobody"]


def _end_with_parent() -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGQUIT)


clusters: list["Cluster"] = []
"""Those that are there."""


@atexit.register
def remove_clusters() -> None:
    """Also called when the last test is done: processes of xdist are ended soon after that."""
    for cluster in tuple(clusters):
        cluster.remove()


class Cluster:
    """`standby_of`: a copy of another cluster that follows it. `disk`: a folder, or `/tmp`."""

    def __init__(
        self, standby_of: "Cluster | None" = None, *, disk: str | None = QUICK, **settings: str
    ) -> None:
        found = programs()
        if found is None:
            pytest.skip("PostgreSQL is not installed")
        self.programs = found
        self.folder = Path(tempfile.mkdtemp(prefix="session-server-pg-", dir=disk))
        self.port = free_port()
        self.settings = SETTINGS | settings
        self._account: dict[str, Any] = {}
        if os.geteuid() == 0:
            entry = _unprivileged()
            os.chown(self.folder, entry.pw_uid, entry.pw_gid)
            self._account = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        clusters.append(self)
        self._server: subprocess.Popen[bytes] | None = None
        if standby_of is None:
            self.run("initdb", "-A", "trust", "-U", "postgres", "--locale=C", "-E", "UTF8", "-N")
        else:
            source = ("-h", "127.0.0.1", "-p", str(standby_of.port), "-U", "postgres")
            self.run("pg_basebackup", *source, "-R", "-X", "stream", "-c", "fast")
        self.start()

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def pid(self) -> int:
        return self._server.pid

    def run(self, program: str, *arguments: str) -> None:
        self._run([str(self.programs / program), "-D", str(self.data), *arguments])

    def _run(self, command: list[str]) -> None:
        done = subprocess.run(
            command, capture_output=True, check=False, timeout=BOUND, cwd="/", **self._account
        )
        assert done.returncode == 0, done.stderr.decode()

    def run_client(self, program: str, *arguments: str) -> None:
        where = ("-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "-d", "postgres")
        self._run([str(self.programs / program), *where, *arguments])

    def url(
        self, schema: str = "session_server", *, port: int | None = None, user: str = "postgres"
    ) -> str:
        return f"postgresql://{user}@127.0.0.1:{port or self.port}/postgres?schema={schema}"

    def start(self) -> None:
        """After a kill, the processes of the one before may need a moment to end."""
        settings = self.settings | {
            "port": str(self.port),
            "unix_socket_directories": str(self.folder),
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        until = time.monotonic() + BOUND
        while True:
            with (self.folder / "log").open("ab") as output:
                self._server = subprocess.Popen(
                    [str(self.programs / "postgres"), "-D", str(self.data), *options],
                    stdout=output,
                    stderr=output,
                    cwd="/",
                    preexec_fn=_end_with_parent,  # noqa: PLW1509  # calls nothing but the system
                    **self._account,
                )
            if self._is_ready(until):
                return
            assert time.monotonic() < until, (self.folder / "log").read_text()[-3_000:]
            time.sleep(0.1)

    def _is_ready(self, until: float) -> bool:
        """`False` if it ended instead."""
        assert self._server is not None
        while self._server.poll() is None and time.monotonic() < until:
            with contextlib.suppress(psycopg.OperationalError):
                assert self.execute("SHOW data_directory") == [(str(self.data),)]
                return True
            time.sleep(0.02)
        return False

    @contextlib.contextmanager
    def connected(self, database: str = "postgres") -> Iterator[psycopg.Connection]:
        with psycopg.connect(
            host="127.0.0.1", port=self.port, user="postgres", dbname=database, autocommit=True
        ) as connection:
            yield connection

    def execute(self, *statements: str, database: str = "postgres") -> list[Any]:
        """The rows of the last one."""
        with self.connected(database) as connection:
            for statement in statements:
                cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def _ended(self, number: signal.Signals) -> None:
        self._server.send_signal(number)
        self._server.wait(BOUND)

    def stop(self) -> None:
        """As `pg_ctl stop -m fast` does."""
        self._ended(signal.SIGINT)

    def crash(self) -> None:
        """As `pg_ctl stop -m immediate` does: no checkpoint, so that the next start recovers."""
        self._ended(signal.SIGQUIT)

    def kill(self) -> None:
        self._ended(signal.SIGKILL)

    def put_back(self, copy: Path) -> None:
        """Replaces its files, while it is stopped."""
        shutil.rmtree(self.data)
        shutil.copytree(copy, self.data)
        if self._account:
            for path in (self.data, *self.data.rglob("*")):
                os.chown(path, self._account["user"], self._account["group"])
        self.data.chmod(0o700)

    def promote(self) -> None:
        self.run("pg_ctl", "promote", "-w")

    def remove(self) -> None:
        if self._server is not None and self._server.poll() is None:
            self.crash()
        until = time.monotonic() + BOUND
        while self.folder.exists() and time.monotonic() < until:
            # After a kill, its processes may need a moment to end, and write until then.
            shutil.rmtree(self.folder, ignore_errors=True)
        clusters.remove(self)


@functools.cache
def shared_cluster() -> Cluster:
    """One for all tests of this process that harm no server."""
    return Cluster()


@contextlib.contextmanager
def own_cluster(standby_of: Cluster | None = None, **settings: str) -> Iterator[Cluster]:
    """One that a test may harm."""
    cluster = Cluster(standby_of, **settings)
    try:
        yield cluster
    finally:
        cluster.remove()
