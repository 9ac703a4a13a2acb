"""A flood by one principal, and what everyone else notices: `python -m benchmarks.flood`.

Starts a server of its own and three kinds of visitors: threads that send as fast as they can over
raw sockets and reconnect at once when they are closed; a person of another principal who types; and
a probe of `/healthz`. Prints the latency of the last two and the memory of the server, before the
flood, during it and after it. Pass `--python` to measure another installation.
"""

import argparse
import http.client
import json
import os
import re
import select
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

TOKEN = "benchmark-owner-token-0123456789"
SESSION = "ahp-session:/flood"
KINDS = ("small", "big", "pings", "reconnects", "presence", "requests")


def frame(value: Any) -> bytes:
    """A masked text frame; with a mask of zeros the payload stays as it is."""
    data = json.dumps(value).encode()
    size = len(data)
    if size < 126:
        head = struct.pack("!BB", 0x81, 0x80 | size)
    elif size < 65_536:
        head = struct.pack("!BBH", 0x81, 0x80 | 126, size)
    else:
        head = struct.pack("!BBQ", 0x81, 0x80 | 127, size)
    return head + bytes(4) + data


def request(number: int, method: str, **params: Any) -> bytes:
    params = {"channel": "ahp-root://", **params}
    return frame({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def draft(seq: int, question: str, text: str) -> bytes:
    value = {"kind": "text", "value": text}
    action = {
        "type": "session/inputAnswerChanged",
        "requestId": "r",
        "questionId": question,
        "answer": {"state": "draft", "value": value},
    }
    params = {"channel": SESSION, "clientSeq": seq, "action": action}
    return frame({"jsonrpc": "2.0", "method": "dispatchAction", "params": params})


class AccessError(Exception):
    """Not let in; the status of the refusal."""


def connect(port: int, token: str, client: str, *channels: str) -> socket.socket:
    raw = socket.create_connection(("127.0.0.1", port), timeout=30)
    raw.sendall(
        f"GET /ahp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
        f"Connection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
        f"Sec-WebSocket-Version: 13\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    )
    head = b""
    while b"\r\n\r\n" not in head:
        piece = raw.recv(1)
        if not piece:
            raise AccessError("closed")
        head += piece
    status = head.split(b" ", 2)[1].decode()
    if status != "101":
        raw.close()
        raise AccessError(status)
    raw.sendall(
        request(
            1,
            "initialize",
            protocolVersions=["0.3.0"],
            clientId=client,
            initialSubscriptions=channels,
        )
    )
    return raw


class Flooder(threading.Thread):
    def __init__(self, port: int, token: str, kind: str, number: int) -> None:
        super().__init__(daemon=True)
        self.port, self.token, self.kind, self.number = port, token, kind, number
        self.over = threading.Event()
        self.seen: Counter[str] = Counter()

    def run(self) -> None:
        while not self.over.is_set():
            try:
                if self.kind == "requests":
                    self.send_requests()
                    continue
                self.flood(connect(self.port, self.token, f"flood-{self.number}", SESSION))
            except AccessError as error:
                self.seen[f"refused {error}"] += 1
            except OSError as error:
                self.seen[type(error).__name__] += 1

    def send_requests(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        headers = {"Authorization": f"Bearer {self.token}"}
        while not self.over.is_set():
            connection.request("GET", "/v1/sessions/flood", headers=headers)
            answer = connection.getresponse()
            answer.read()
            self.seen[f"status {answer.status}"] += 1

    def flood(self, raw: socket.socket) -> None:
        self.seen["connections"] += 1
        if self.kind == "reconnects":
            raw.close()
            return
        piece, frames = self.piece()
        raw.settimeout(0)
        rest = memoryview(piece)
        with raw:
            while not self.over.is_set():
                readable, writable, _ = select.select([raw], [raw], [], 1)
                if readable and not raw.recv(1 << 20):
                    return
                if writable:
                    rest = rest[raw.send(rest) :]
                    if not rest:
                        rest = memoryview(piece)
                        self.seen["messages"] += frames

    def piece(self) -> tuple[bytes, int]:
        if self.kind == "pings":
            return request(2, "ping") * 100, 100
        if self.kind == "presence":
            place = {"requestId": "r" * 500_000, "questionId": "q"}
            params = {"channel": "ahp-presence:/flood", "editing": place}
            return frame({"jsonrpc": "2.0", "method": "presence/update", "params": params}), 1
        text = "x" * (60_000 if self.kind == "big" else 20)
        return b"".join(draft(n, f"q{self.number % 50}", text) for n in range(20)), 20


class Probe(threading.Thread):
    """Does something again and again and keeps how long it took."""

    def __init__(self, attempt: Callable[[], None]) -> None:
        super().__init__(daemon=True)
        self.attempt = attempt
        self.over = threading.Event()
        self.times: list[tuple[float, float]] = []
        self.failures = 0

    def run(self) -> None:
        while not self.over.is_set():
            began = time.perf_counter()
            try:
                self.attempt()
            except (OSError, http.client.HTTPException):
                self.failures += 1
                time.sleep(0.1)
            self.times.append((began, time.perf_counter() - began))
            time.sleep(0.02)

    def between(self, since: float, until: float) -> str:
        taken = sorted(took for at, took in self.times if since <= at < until)
        if not taken:
            return "nothing came back"
        p99 = taken[min(len(taken) - 1, int(len(taken) * 0.99))]
        return (
            f"{len(taken):4} times, median {statistics.median(taken) * 1e3:6.1f} ms,"
            f" p99 {p99 * 1e3:7.1f} ms, worst {taken[-1] * 1e3:7.1f} ms"
        )


class Typist:
    """Sends a draft and waits until it comes back."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.raw: socket.socket | None = None
        self.seq = 0
        self.data = b""

    def __call__(self) -> None:
        try:
            self.type()
        except OSError:
            self.raw = None
            raise

    def type(self) -> None:
        if self.raw is None:
            self.raw = connect(self.port, TOKEN, "typist", SESSION)
            self.raw.settimeout(60)
        self.seq += 1
        self.raw.sendall(draft(self.seq, "mine", f"draft {self.seq}"))
        wanted = f'"clientId":"typist","clientSeq":{self.seq}}}'.encode()
        while wanted not in self.data:
            piece = self.raw.recv(1 << 20)
            if not piece:
                raise ConnectionError
            self.data = self.data[-200:] + piece


def api(port: int, method: str, path: str, body: Any = None) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    if answer.status >= 400:
        raise OSError(data)
    return json.loads(data) if data.startswith(b"{") else data


@contextmanager
def serving(python: str) -> Iterator[tuple[int, int]]:
    """The port and the process id of a server with a log on disk."""
    with tempfile.TemporaryDirectory() as folder:
        command = [python, "-m", "session_server", "serve", "--port", "0", "--data-dir", folder]
        server = subprocess.Popen(
            [*command, "--connection-token", TOKEN],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=folder,
        )
        assert server.stdout is not None
        try:
            for line in server.stdout:
                found = re.search(r":(\d+)", line)
                if found:
                    threading.Thread(target=server.stdout.read, daemon=True).start()
                    yield int(found[1]), server.pid
                    return
        finally:
            server.terminate()
            server.wait(30)


def resident(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+)", status)
    assert found is not None
    return int(found[1]) / 1024


def prepare(port: int) -> str:
    """A session with a form, and the token of somebody who may answer in it."""
    api(port, "POST", "/v1/sessions", {"resource": SESSION, "title": "Flood"})
    names = ["mine", *(f"q{number}" for number in range(50))]
    questions = [{"kind": "text", "id": name, "message": name} for name in names]
    owner = connect(port, TOKEN, "owner", SESSION)
    agent = api(port, "POST", "/v1/tokens", {"name": "asker", "role": "agent"})["token"]
    asker = connect(port, agent, "asker", SESSION)
    action = {"type": "session/inputRequested", "request": {"id": "r", "questions": questions}}
    params = {"channel": SESSION, "clientSeq": 1, "action": action}
    asker.sendall(frame({"jsonrpc": "2.0", "method": "dispatchAction", "params": params}))
    data = b""
    while b"inputRequested" not in data:
        data += owner.recv(1 << 20)
    asker.close()
    owner.close()
    wanted = {"name": "flooder", "role": "answerer", "sessions": [SESSION]}
    token: str = api(port, "POST", "/v1/tokens", wanted)["token"]
    return token


def measure(python: str, kind: str, threads: int, seconds: float) -> None:
    with serving(python) as (port, pid):
        token = prepare(port)
        probes = {
            "/healthz": Probe(lambda: api(port, "GET", "/healthz")),
            "an action": Probe(Typist(port)),
        }
        for probe in probes.values():
            probe.start()
        time.sleep(3)
        marks, memory = [time.perf_counter()], [resident(pid)]
        floods = [Flooder(port, token, kind, number) for number in range(threads)]
        for flooder in floods:
            flooder.start()
        peak = 0.0
        while time.perf_counter() < marks[0] + seconds:
            time.sleep(0.1)
            peak = max(peak, resident(pid))
        for flooder in floods:
            flooder.over.set()
        marks.append(time.perf_counter())
        time.sleep(8)
        marks.append(time.perf_counter())
        memory += [peak, resident(pid)]
        for probe in probes.values():
            probe.over.set()
        seen = sum((flooder.seen for flooder in floods), Counter[str]())
        print(f"\n{kind}: {threads} connections at a time for {seconds:.0f} s; {dict(seen)}")
        print(f"  memory: before {memory[0]:.0f} MB, peak {peak:.0f} MB, after {memory[2]:.0f} MB")
        for name, probe in probes.items():
            spans = {
                "before": (0.0, marks[0]),
                "during": (marks[0], marks[1]),
                "after": (marks[1], marks[2]),
            }
            for when, span in spans.items():
                print(f"  {name:9} {when}: {probe.between(*span)}")
            if probe.failures:
                print(f"  {name:9} failed {probe.failures} times")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", default=KINDS, help=", ".join(KINDS))
    parser.add_argument("--python", default=sys.executable, help="of the installation to measure")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=8.0)
    given = parser.parse_args()
    os.environ.pop("PYTHONPATH", None)
    for kind in given.kinds or KINDS:
        measure(given.python, kind, given.threads, given.seconds)


if __name__ == "__main__":
    main()
