"""Real server processes for tests: started on a free port, waited for, ended by their id."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

READY = re.compile(r"session-server at (http://\S+)")


class ServerProcess:
    def __init__(self, store: str, *arguments: str, port: int = 0) -> None:
        command = [sys.executable, "-m", "session_server", "serve"]
        self.process = subprocess.Popen(
            [*command, "--port", str(port), "--store", store, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        self.output: list[str] = []
        self.url = self._address()
        self.port = int(self.url.rpartition(":")[2])

    @property
    def ahp(self) -> str:
        return f"ws{self.url.removeprefix('http')}/ahp"

    @property
    def pid(self) -> int:
        return self.process.pid

    def _address(self) -> str:
        """The first line it prints; a server that ends instead says why."""
        out = self._out()
        for line in out:
            self.output.append(line)
            found = READY.search(line)
            if found is not None:
                return found[1]
        self._collect()
        raise RuntimeError(f"the server did not start: {''.join(self.output)}")

    def _out(self) -> IO[str]:
        assert self.process.stdout is not None
        return self.process.stdout

    def kill(self) -> None:
        """As a crash would: no goodbye, no clean-up."""
        self.process.send_signal(signal.SIGKILL)
        self._collect()

    def stop(self) -> int:
        """As an operator would."""
        self.process.send_signal(signal.SIGTERM)
        self._collect()
        return self.process.returncode

    def _collect(self) -> None:
        rest, _ = self.process.communicate(timeout=30)
        self.output.append(rest)


@contextlib.contextmanager
def serving(store: str, *arguments: str, port: int = 0) -> Iterator[ServerProcess]:
    server = ServerProcess(store, *arguments, port=port)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.kill()


def sqlite_store(folder: Path) -> str:
    return f"sqlite:///{folder / 'sessions.db'}"
