"""Real server processes for tests: started on a free port, waited for, ended by their id."""

import contextlib
import os
import re
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any

from tests.effort import PATIENCE
from tests.fork_server import IS_POSSIBLE, Forked, fork_server

READY = re.compile(r"session-server at (http://\S+)")


SERVE = (sys.executable, "-m", "session_server", "serve")
PLAIN = (sys.executable, "-m", "tests.end_to_end.asgi_server")
"""The same application under a WebSocket implementation that is not ours."""


AT_ANY_PACE = ("--actions-per-second", "0")
"""For tests that send as fast as they can."""


def started(command: Sequence[str]) -> "subprocess.Popen[str] | Forked":
    """Python programs are forked from one that is ready for it; others are started as usual."""
    if IS_POSSIBLE and tuple(command[:2]) == (sys.executable, "-m"):
        return fork_server().start(command[2], command[3:])
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )


class ServerProcess:
    """`output` is all that it has written so far. A thread reads it, or the pipe would fill up."""

    def __init__(
        self, store: str, *arguments: str, port: int = 0, command: Sequence[str] = SERVE
    ) -> None:
        self.process = started([*command, "--port", str(port), "--store", store, *arguments])
        self.output: list[str] = []
        self._heard = threading.Condition()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self.url = self._address()
        self.port = int(self.url.rpartition(":")[2])

    @property
    def ahp(self) -> str:
        return f"ws{self.url.removeprefix('http')}/ahp"

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def resident_kib(self) -> int:
        """Its memory, from `/proc`."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0])

    def _address(self) -> str:
        """The first line it prints; a server that ends instead says why."""
        out = self._out()
        for line in out:
            self.output.append(line)
            found = READY.search(line)
            if found is not None:
                self._listener.start()
                return found[1]
        self._collect()
        raise RuntimeError(f"the server did not start: {''.join(self.output)}")

    def _listen(self) -> None:
        for line in self._out():
            with self._heard:
                self.output.append(line)
                self._heard.notify_all()

    def wait_for(self, message: str, seconds: float = PATIENCE) -> None:
        """Until it has written this."""
        with self._heard:
            found = self._heard.wait_for(lambda: message in "".join(self.output), seconds)
        assert found, f"the server did not write {message!r}: {''.join(self.output)}"

    def _out(self) -> IO[str]:
        assert self.process.stdout is not None
        return self.process.stdout

    def kill(self) -> None:
        """As a crash would: no goodbye, no clean-up."""
        self.process.send_signal(signal.SIGKILL)
        self._collect()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """As an operator would; its exit code."""
        self.process.send_signal(number)
        self._collect()
        assert self.process.returncode is not None
        return self.process.returncode

    def _collect(self) -> None:
        self.process.wait(timeout=PATIENCE)
        if self._listener.is_alive():
            self._listener.join(timeout=PATIENCE)
        self._out().close()


@contextlib.contextmanager
def serving(
    store: str, *arguments: str, port: int = 0, command: Sequence[str] = SERVE
) -> Iterator[ServerProcess]:
    server = ServerProcess(store, *arguments, port=port, command=command)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.kill()


@contextlib.contextmanager
def web_server(
    handler: type[BaseHTTPRequestHandler], context: ssl.SSLContext | None = None
) -> Iterator[int]:
    """A web server in a thread of this process, which prints nothing; its port."""

    class Quiet(handler):
        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """To nobody."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def sqlite_store(folder: Path) -> str:
    return f"sqlite:///{folder / 'sessions.db'}"
