"""The command as its users run it: real processes, in pipes or in a terminal of their own."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, NamedTuple

import httpx2
import pexpect
import pyte
from typer.testing import CliRunner

from session_server.cli.program import app
from tests.effort import PATIENCE
from tests.fork_server import IS_POSSIBLE, Forked, fork_server
from tests.servers import ServerProcess

PROGRAM = (sys.executable, "-m", "session_server")
DEADLINE = 60


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def json_lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


def environment(url: str | None, **more: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("SESSION_SERVER_")}
    told = {} if url is None else {"SESSION_SERVER_URL": url}
    return {**kept, "PYTHONUNBUFFERED": "1", **told, **more}


class Shell:
    """Runs commands against one host."""

    def __init__(self, url: str | None) -> None:
        self.url = url

    def __call__(self, *arguments: str, stdin: str | None = None, **env: str) -> Done:
        """Within this process: the same program, without the time that its start takes."""
        unset = {name: None for name in os.environ if name.startswith("SESSION_SERVER_")}
        told = {} if self.url is None else {"SESSION_SERVER_URL": self.url}
        result = CliRunner().invoke(app, arguments, input=stdin, env={**unset, **told, **env})
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Done(result.exit_code, result.stdout, result.stderr)

    def process(self, *arguments: str, **env: str) -> Done:
        """A process of its own."""
        with self.running(*arguments, **env) as running:
            return running.end()

    @contextmanager
    def running(self, *arguments: str, **env: str) -> Iterator["Running"]:
        running = Running(started(arguments, environment(self.url, **env)))
        try:
            yield running
        finally:
            running.close()

    @contextmanager
    def terminal(
        self, *arguments: str, size: tuple[int, int] = (40, 110), **env: str
    ) -> Iterator["Terminal"]:
        terminal = Terminal(arguments, environment(self.url, **env), size)
        try:
            yield terminal
        finally:
            terminal.close()


def started(arguments: Sequence[str], env: dict[str, str]) -> "subprocess.Popen[str] | Forked":
    if IS_POSSIBLE:
        return fork_server().start("session_server", arguments, env, own_errors=True)
    return subprocess.Popen(
        [*PROGRAM, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    )


def shell_of(server: ServerProcess) -> Shell:
    return Shell(server.url)


def requests_in(server: ServerProcess, session: str, state: str = "open") -> list[Any]:
    path = f"{server.url}/v1/sessions/{session}/requests"
    items: list[Any] = httpx2.get(path, params={"state": state}).json()["items"]
    return items


class Running:
    """A command that is still at work; threads read what it says."""

    def __init__(self, process: "subprocess.Popen[str] | Forked") -> None:
        self.process = process
        self.out: list[str] = []
        self.err: list[str] = []
        self._heard = threading.Condition()
        assert process.stdout is not None
        assert process.stderr is not None
        self._threads = [
            threading.Thread(target=self._listen, args=(stream, lines), daemon=True)
            for stream, lines in ((process.stdout, self.out), (process.stderr, self.err))
        ]
        for thread in self._threads:
            thread.start()

    def _listen(self, stream: IO[str], lines: list[str]) -> None:
        for line in stream:
            with self._heard:
                lines.append(line)
                self._heard.notify_all()

    def hear(self, message: str, *, on: str = "out") -> str:
        """The first line with these words."""
        lines: list[str] = getattr(self, on)
        with self._heard:
            self._heard.wait_for(lambda: any(message in line for line in lines), PATIENCE)
            found = [line for line in lines if message in line]
        assert found, f"{message!r} was not said: {self.out} {self.err}"
        return found[0]

    def end(self) -> Done:
        code = self.process.wait(timeout=DEADLINE)
        for thread in self._threads:
            thread.join(timeout=PATIENCE)
        return Done(code, "".join(self.out), "".join(self.err))

    def interrupt(self, number: int) -> Done:
        self.process.send_signal(number)
        return self.end()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.end()
        for stream in (self.process.stdout, self.process.stderr):
            stream.close()


KEYS = {
    "enter": "\r",
    "escape": "\x1b",
    "down": "\x1b[B",
    "backspace": "\x7f",
    "ctrl-c": "\x03",
    "ctrl-s": "\x13",
}


class Terminal:
    """A command on a screen: keys in, and what a person would see."""

    def __init__(
        self, arguments: tuple[str, ...], env: dict[str, str], size: tuple[int, int]
    ) -> None:
        rows, columns = size
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.Stream(self._screen)
        self._child = pexpect.spawn(
            PROGRAM[0],
            [*PROGRAM[1:], *arguments],
            env={**env, "TERM": "xterm-256color", "COLUMNS": str(columns), "LINES": str(rows)},
            dimensions=size,
            encoding="utf-8",
            timeout=PATIENCE,
        )

    @property
    def screen(self) -> str:
        return "\n".join(line.rstrip() for line in self._screen.display).strip()

    def press(self, *keys: str) -> None:
        """Names of keys, or text."""
        for key in keys:
            self._child.send(KEYS.get(key, key))

    def see(self, *patterns: str) -> str:
        """Waits until all of this is on the screen at once."""
        self._until(lambda: all(re.search(p, self.screen) for p in patterns), str(patterns))
        return self.screen

    def see_no(self, pattern: str) -> None:
        self._until(lambda: not re.search(pattern, self.screen), f"no {pattern}")

    def end(self) -> int:
        """The exit code, once it is over."""
        self._until(lambda: not self._child.isalive() and not self._read(), "the end")
        self._child.close()
        assert isinstance(self._child.exitstatus, int)
        return self._child.exitstatus

    def close(self) -> None:
        """Waits for the end: pexpect alone gives a killed process a tenth of a second."""
        if self._child.isalive():
            self._child.kill(signal.SIGKILL)
            self._child.wait()
        self._child.close()

    def _until(self, is_so: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not is_so():
            assert time.monotonic() < deadline, f"{what} was not seen:\n{self.screen}"
            self._read()

    def _read(self) -> bool:
        """Takes in what the command has written; whether there was anything."""
        try:
            self._stream.feed(self._child.read_nonblocking(65_536, timeout=0.05))
        except pexpect.TIMEOUT:
            return False
        except pexpect.EOF:
            return False
        return True
