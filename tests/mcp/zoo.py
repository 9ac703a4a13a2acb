"""Real MCP servers and clients for tests, as processes: how each is started and talked to.

`modern`      Python SDK 2.x, revision 2026-07-28
`typescript`  TypeScript SDK 2.x, revision 2026-07-28
`legacy`      Python SDK 1.30, revision 2025-11-25, in an environment of its own
`conformance` what the official suite expects of a server; no client
`changing`    a server of `modern` whose lists change; no client
`dual`        a server of `modern` whose tools ask on the connection, or by their results; no client
`fastmcp`     the same with FastMCP 4, in an environment of its own; no client

`make zoo` installs what they need under build/mcp; without it the tests are skipped with a message.
"""

import asyncio
import atexit
import contextlib
import functools
import itertools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, Literal

import pytest

from tests.fork_server import IS_POSSIBLE
from tests.mcp.clients.modern import Reporter
from tests.npm_modules import node

Kind = Literal["modern", "typescript", "legacy", "conformance", "changing", "dual", "fastmcp"]
Changing = Literal["modern", "legacy"]

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
BUILD = ROOT / "build" / "mcp"
LEGACY_PYTHON = BUILD / "legacy" / "bin" / "python"
FASTMCP_PYTHON = BUILD / "fastmcp" / "bin" / "python"
NODE_PACKAGES = BUILD / "node"

SERVERS = {
    "modern": HERE / "servers" / "modern.py",
    "typescript": HERE / "node" / "server.mjs",
    "legacy": HERE / "servers" / "legacy.py",
    "conformance": HERE / "servers" / "conformance.py",
    "changing": HERE / "servers" / "changing.py",
    "dual": HERE / "servers" / "dual.py",
    "fastmcp": HERE / "servers" / "dual.py",
}
CHANGING = {
    "modern": HERE / "servers" / "changing.py",
    "legacy": HERE / "servers" / "changing_legacy.py",
}
CLIENTS = {
    "modern": HERE / "clients" / "modern.py",
    "typescript": HERE / "node" / "client.mjs",
    "legacy": HERE / "clients" / "legacy.py",
}

FORKING = HERE / "forking.py"

READY_SECONDS = 60

_doors = itertools.count()


def runtime(kind: Kind) -> str:
    """What runs files of this kind; skips the test where it has not been set up."""
    if kind in ("modern", "conformance", "changing", "dual"):
        return sys.executable
    programs = {"legacy": LEGACY_PYTHON, "fastmcp": FASTMCP_PYTHON}
    needed = programs.get(kind, NODE_PACKAGES / "node_modules")
    if not needed.exists():
        pytest.skip(f"{needed.relative_to(ROOT)} is not there; run `make zoo`")
    return str(needed) if kind in programs else node()


def command(kind: Kind, *arguments: str, is_forked: bool = True) -> list[str]:
    """The command line of a server that speaks on stdin and stdout."""
    more = ("--framework", "fastmcp") if kind == "fastmcp" else ()
    if not is_forked:
        return [runtime(kind), str(SERVERS[kind]), *more, *arguments]
    return [*program(kind, SERVERS[kind], *more), *more, *arguments]


def program(kind: Kind, file: Path, *loading: str) -> tuple[str, ...]:
    """What runs a file of this kind. Python is forked where that is possible, from a process that
    has loaded the file with the arguments `loading`: importing takes longer than all else.
    """
    is_forked = IS_POSSIBLE and kind != "typescript"
    return forked(runtime(kind), str(file), *loading) if is_forked else (runtime(kind), str(file))


def stdio_entry(kind: Kind, *arguments: str, is_forked: bool = True, **more: Any) -> dict[str, Any]:
    """The server as an entry of `mcpServers` in an `mcp.json`."""
    first, *rest = command(kind, *arguments, is_forked=is_forked)
    return {"command": first, "args": rest, **more}


def changing_entry(kind: Changing, **more: Any) -> dict[str, Any]:
    """A server whose lists change, likewise."""
    first, *rest = program(kind, CHANGING[kind])
    return {"command": first, "args": rest, **more}


@functools.cache
def forked(python: str, file: str, *arguments: str) -> tuple[str, ...]:
    """The command of such programs. What forks them ends with this process."""
    door = f"zoo-{os.getpid()}-{next(_doors)}"
    line = [python, str(FORKING), "serve", door, file, *arguments]
    forks = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(forks.communicate)
    assert forks.stdout.readline() == "ready\n"
    return python, "-I", "-S", str(FORKING), "start", door


def mcp_json(folder: Path, servers: dict[str, dict[str, Any]]) -> Path:
    """Writes an `mcp.json` with these entries."""
    file = folder / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}, indent=2))
    return file


class ZooServer:
    """A server over HTTP: `url` is its MCP endpoint, `output` all that it has written so far.

    Signals to `process` reach only one that is not forked.
    """

    def __init__(self, kind: Kind, *arguments: str, port: int = 0, is_forked: bool = True) -> None:
        self.process = subprocess.Popen(
            command(kind, "--port", str(port), *arguments, is_forked=is_forked),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.output: list[str] = []
        self.url = self._address()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    @property
    def port(self) -> int:
        return int(self.url.removesuffix("/mcp").rpartition(":")[2])

    def _out(self) -> IO[str]:
        assert self.process.stdout is not None
        return self.process.stdout

    def _address(self) -> str:
        alarm = threading.Timer(READY_SECONDS, self.process.kill)
        alarm.start()
        try:
            for line in self._out():
                self.output.append(line)
                if line.startswith("ready "):
                    return line.split()[1]
        finally:
            alarm.cancel()
        raise RuntimeError(f"the server did not start: {''.join(self.output)}")

    def _listen(self) -> None:
        self.output.extend(self._out())

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(timeout=60)
        self._listener.join(timeout=60)
        self._out().close()


@contextlib.contextmanager
def http_server(
    kind: Kind, *arguments: str, port: int = 0, is_forked: bool = True
) -> Iterator[ZooServer]:
    server = ZooServer(kind, *arguments, port=port, is_forked=is_forked)
    try:
        yield server
    finally:
        server.kill()


def effects(file: Path, tool: str) -> list[dict[str, Any]]:
    """What a server's `--effects` file says of one tool: a row for each time it really ran."""
    lines = file.read_text().splitlines() if file.exists() else []
    return [row for line in lines if (row := json.loads(line))["tool"] == tool]


class ZooClient:
    """A client process that does what `spec` says (see clients/README.md) and reports in JSON."""

    def __init__(self, kind: Kind, spec: dict[str, Any]) -> None:
        self.process = subprocess.Popen(
            [*program(kind, CLIENTS[kind], "{}"), json.dumps(spec)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "NODE_NO_WARNINGS": "1"},
        )

    def report(self, seconds: float = 60) -> dict[str, Any]:
        """What it has to say when it is done."""
        out, err = self.process.communicate(timeout=seconds)
        lines = out.splitlines()
        assert self.process.returncode == 0, f"the client failed: {out}{err}"
        report: dict[str, Any] = json.loads(lines[-1])
        return report

    def kill(self) -> None:
        """Goes away without a word."""
        self.process.kill()
        self.process.communicate(timeout=60)


class ZooThread:
    """The client of the Python SDK in a thread of this process; it cannot be killed."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._done = self._pool.submit(lambda: asyncio.run(Reporter(spec).report()))

    def report(self, seconds: float = 60) -> dict[str, Any]:
        return self._done.result(seconds)

    def close(self) -> None:
        self._pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def client(kind: Kind, spec: dict[str, Any]) -> Iterator[ZooClient | ZooThread]:
    """At work until the block ends. What must be killed is a `ZooClient` of its own."""
    started = ZooThread(spec) if kind == "modern" else ZooClient(kind, spec)
    try:
        yield started
    finally:
        if isinstance(started, ZooThread):
            started.close()
        elif started.process.poll() is None:
            started.kill()


def run_client(kind: Kind, spec: dict[str, Any], seconds: float = 60) -> dict[str, Any]:
    """A client from beginning to end."""
    with client(kind, spec) as started:
        return started.report(seconds)


def text_of(result: dict[str, Any]) -> str:
    """The first text of a tool's result, in a client's report."""
    content: Sequence[dict[str, Any]] = result["content"]
    return str(content[0]["text"])
