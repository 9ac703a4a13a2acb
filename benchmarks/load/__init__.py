"""The load: servers as processes on one core, and the generator (`load.c`) on the other."""

import contextlib
import os
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple

import msgspec

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "bench"
SERVER_CORE, GENERATOR_CORE = 0, 1
START_SECONDS = 300


class CompilerMissingError(Exception):
    def __init__(self) -> None:
        super().__init__("There is no C compiler; the load generator needs one (apt install gcc).")


def compiled(source: Path) -> Path:
    """The program made from a C file, compiled again when the file is newer."""
    compiler = os.environ.get("CC") or next(filter(shutil.which, ("cc", "gcc", "clang")), None)
    if compiler is None:
        raise CompilerMissingError
    BUILD.mkdir(parents=True, exist_ok=True)
    program = BUILD / f"{source.parent.name}-{source.stem}"
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        fresh = program.with_suffix(f".{os.getpid()}")
        subprocess.run([compiler, "-O2", "-o", fresh, source], check=True)
        fresh.replace(program)
    return program


class Action(NamedTuple):
    """A frame that a writer repeats, and where the number of the action is put (see `load.c`)."""

    frame: bytes
    numbers: Sequence[tuple[str, int]]


class Client(NamedTuple):
    """A connection: what it sends first and waits for, and what it writes then."""

    path: str
    greeting: Sequence[tuple[bytes, bytes]] = ()
    action: Action | None = None
    reads: bool = True

    def script(self) -> Iterator[str]:
        yield f"{'c' if self.reads else 'z'} {self.path}"
        for frame, expected in self.greeting:
            yield f"s {frame.hex()} {expected.hex()}"
        if self.action is not None:
            places = " ".join(f"{kind}{offset}" for kind, offset in self.action.numbers)
            yield f"a {self.action.frame.hex()} {places}"


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the generator. Seconds; the latencies are in microseconds."""

    connected: float
    greeted: int
    refused: int
    seconds: float
    actions: int
    deliveries: int
    bytes: int
    server_cpu: float
    generator_cpu: float
    p50: float
    p99: float
    slowest: float
    rejected: int
    lost: int
    let_go: int


def pinned(command: Sequence[str | Path], core: int) -> list[str]:
    """One core for the server and one for the load, where the system lets us choose."""
    prefix = ["taskset", "-c", str(core)] if shutil.which("taskset") else []
    return [*prefix, *map(str, command)]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder for what a server stores, on the same disk as the project: /tmp may be memory."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        yield Path(folder)


class Server(NamedTuple):
    port: int
    process: "subprocess.Popen[bytes]"

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def memory(self) -> int:
        """Bytes of its own, in memory or swapped out; pages of files come and go."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return sum(int(size) for size in re.findall(r"(?:RssAnon|VmSwap):\s+(\d+)", status)) * 1024

    @property
    def open_files(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    def wait_for_closing(self, open_files: int) -> None:
        """Until it has let go of connections that ended; the next measurement is not to pay."""
        deadline = monotonic() + START_SECONDS
        while monotonic() < deadline and self.open_files > open_files:
            sleep(0.005)

    @property
    def processor_seconds(self) -> float:
        tasks = Path(f"/proc/{self.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


@contextlib.contextmanager
def serving(
    command: Sequence[str | Path], port: int, *, core: int = SERVER_CORE
) -> Iterator[Server]:
    """A server from when it listens."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            pinned(command, core), stdout=output, stderr=subprocess.STDOUT, cwd=ROOT
        )
        with process:
            try:
                if not _listens(port, process):
                    output.seek(0)
                    raise RuntimeError(f"{command} does not listen: {output.read().decode()}")
                yield Server(port, process)
            finally:
                process.terminate()
                process.wait(30)


def _listens(port: int, process: "subprocess.Popen[bytes]") -> bool:
    deadline = monotonic() + START_SECONDS
    while monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return True
        sleep(0.002)
    return False


@contextlib.contextmanager
def _generator(
    server: Server, clients: Iterable[Client], options: dict[str, float]
) -> Iterator["subprocess.Popen[bytes]"]:
    program = compiled(Path(__file__).with_name("load.c"))
    with tempfile.NamedTemporaryFile("w", suffix=".script") as script:
        for client in clients:
            script.writelines(f"{line}\n" for line in client.script())
        script.flush()
        options = {"port": server.port, "pid": server.pid, **options}
        words = [f"{name}={value}" for name, value in options.items()]
        command = pinned([program, script.name, *words], GENERATOR_CORE)
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            yield process


def measure(server: Server, clients: Iterable[Client], **options: float) -> Measured:
    """Connects the clients and, with `seconds`, has them write.

    Each writer keeps `window` actions in flight, or `rate` actions a second are sent in all. What
    comes in the first `warm` seconds is not counted. It lasts until `least` actions have come back.
    """
    with connected(server, clients, **options) as measured:
        return measured


@contextlib.contextmanager
def connected(server: Server, clients: Iterable[Client], **options: float) -> Iterator[Measured]:
    """The same, and the clients stay connected until the end of the block."""
    open_files = server.open_files
    with _generator(server, clients, {**options, "hold": 1}) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"the load generator ended with {process.wait()}")
        yield msgspec.json.decode(line, type=Measured)
        process.stdin.close()
    server.wait_for_closing(open_files)
