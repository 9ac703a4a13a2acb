"""A fork server: a process that has imported everything forks one for each program that is started.

Importing takes a server longer than all else it does in most tests. What is forked is a process of
its own like any other, with an id, signals and an end. Used by `servers`; run as a program it is
the process that forks. The workers of a test run share it, and it ends with the last of them.
"""

import atexit
import contextlib
import io
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any

import msgspec

from tests.waiting import wait_until

PRELOADED = (
    "session_server.app",
    "session_server.calls.replies",
    "session_server.calls.running_leg",
    "session_server.cli.commands.serve",
    "session_server.gateway.endpoints",
    "session_server.server",
    "uvloop",
)
LONGEST = 1 << 20
IS_POSSIBLE = hasattr(os, "pidfd_open")


class Order(msgspec.Struct):
    """Start a program, or say how one ended."""

    module: str = ""
    arguments: list[str] = []
    environment: dict[str, str] = {}
    folder: str = ""
    ended: int = 0


class ForkServer:
    def __init__(self) -> None:
        run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(os.getpid())
        address = f"\0fork-server-{run}"
        self._line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if not self._is_connected(address):
            command = [sys.executable, "-m", "tests.fork_server", run]
            os.posix_spawn(sys.executable, command, {**os.environ, "PYTHONUNBUFFERED": "1"})
            wait_until(lambda: self._is_connected(address))
        self._line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LONGEST)
        atexit.register(self._line.close)

    def _is_connected(self, address: str) -> bool:
        try:
            self._line.connect(address)
        except ConnectionRefusedError:
            return False
        return True

    def start(
        self,
        module: str,
        arguments: Sequence[str],
        environment: Mapping[str, str] = os.environ,
        *,
        own_errors: bool = False,
    ) -> "Forked":
        """With `own_errors`, what it writes to stderr is not part of its output."""
        order = Order(
            module=module,
            arguments=list(arguments),
            environment=dict(environment),
            folder=str(Path.cwd()),
        )
        pipes = [os.pipe() for _ in range(1 + own_errors)]
        pid = self._asked(order, *(theirs for _, theirs in pipes))
        for _, theirs in pipes:
            os.close(theirs)
        return Forked(self, pid, *(ours for ours, _ in pipes))

    def ended(self, pid: int) -> int:
        return self._asked(Order(ended=pid))

    def _asked(self, order: Order, *files: int) -> int:
        socket.send_fds(self._line, [msgspec.json.encode(order)], files)
        answer = self._line.recv(64)
        assert answer, "the process that forks is gone"
        return int(answer)


class Forked:
    """As much of `subprocess.Popen` as is needed."""

    def __init__(
        self, server: ForkServer, pid: int, output: int, errors: int | None = None
    ) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self.stdout = read_from(output)
        self.stderr = None if errors is None else read_from(errors)
        self._server = server
        self._handle = os.pidfd_open(pid)

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float) -> int:
        if self.returncode is None:
            ready, _, _ = select.select([self._handle], [], [], timeout)
            if not ready:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout)
            os.close(self._handle)
            self.returncode = self._server.ended(self.pid)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            signal.pidfd_send_signal(self._handle, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def read_from(pipe: int) -> IO[str]:
    return io.TextIOWrapper(os.fdopen(pipe, "rb"), errors="replace")


@cache
def fork_server() -> ForkServer:
    """The one of this test run, started when it is first needed."""
    return ForkServer()


# The process that forks


def serve(run: str) -> None:
    door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        door.bind(f"\0fork-server-{run}")
    except OSError:
        return  # another worker was faster
    door.listen()
    for name in PRELOADED:
        __import__(name)
    lines = [door.accept()[0]]
    while lines:
        ready, _, _ = select.select([door, *lines], [], [])
        if door in ready:
            ready.remove(door)
            lines.append(door.accept()[0])
        for line in ready:
            if not obey(line, (door, *lines)):
                lines.remove(line)
                line.close()


def obey(line: socket.socket, inherited: Sequence[socket.socket]) -> bool:
    """One order; False if there will be no more."""
    data, files, _, _ = socket.recv_fds(line, LONGEST, 2)
    if not data:
        return False
    order = msgspec.json.decode(data, type=Order)
    if order.ended:
        answer = os.waitstatus_to_exitcode(os.waitpid(order.ended, 0)[1])
    else:
        answer = os.fork()
        if answer == 0:
            for one in inherited:
                one.close()
            os._exit(ended_with(order, files))
        for file in files:
            os.close(file)
    line.send(str(answer).encode())
    return True


def ended_with(order: Order, files: Sequence[int]) -> int:
    """Becomes the program; its exit code."""
    os.dup2(files[0], 1)
    os.dup2(files[-1], 2)
    for file in files:
        os.close(file)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.environ.clear()
    os.environ.update(order.environment)
    os.chdir(order.folder)
    sys.argv = [order.module, *order.arguments]
    try:
        runpy.run_module(order.module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        return code_of(end.code)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.raise_signal(signal.SIGINT)
    except Exception:  # noqa: BLE001 - as the interpreter itself would
        sys.excepthook(*sys.exc_info())
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def code_of(value: Any) -> int:
    if isinstance(value, int):
        return value
    if value is not None:
        sys.stderr.write(f"{value}\n")
    return 0 if value is None else 1


if __name__ == "__main__":
    serve(sys.argv[1])
