"""The load: subscribers that count deliveries at the speed of `recv`, and one writer.

Runs as a process of its own and speaks WebSocket by hand, so that what is measured is the server:
frames are prepared once, and what comes back is only searched for the one word each delivery has.
"""

import base64
import os
import selectors
import socket
import struct
import sys
from collections import deque
from itertools import cycle, islice
from time import perf_counter, sleep

import msgspec

MARK = b'"serverSeq":'
BUFFER = 1 << 18
PATIENCE = 1.0
DRAFTS = tuple(f"Oslo, or maybe Bergen {number:02}" for number in range(64))


class Peer:
    """One connection, counting what it is sent."""

    def __init__(self, port: int, path: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        self._tail = b""
        self.count = 0
        self.read_until(b"\r\n\r\n")

    def read_until(self, wanted: bytes) -> bytes:
        seen = b""
        while wanted not in seen:
            chunk = self.socket.recv(BUFFER)
            if not chunk:
                raise ConnectionError(seen[-200:])
            seen += chunk
        return seen

    def call(self, request_id: int, method: str, **params: object) -> None:
        params = {"channel": "ahp-root://", **params}
        frame = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        self.socket.sendall(masked(msgspec.json.encode(frame)))
        self.read_until(b'"id":%d' % request_id)

    def is_cut_off(self) -> bool:
        """Reads what is left: whether it ends."""
        self.socket.settimeout(PATIENCE)
        try:
            while self.socket.recv(BUFFER):
                pass
        except TimeoutError:
            return False
        except OSError:
            pass
        return True

    def take(self) -> int:
        """Deliveries in what has arrived; a word that is cut in two is counted with the rest."""
        data = self._tail + self.socket.recv(BUFFER)
        found = data.count(MARK)
        self._tail = data[-(len(MARK) - 1) :]
        self.count += found
        return found


def masked(payload: bytes) -> bytes:
    """A client's text frame. The mask is zero, which the protocol allows and costs nothing."""
    size = len(payload)
    small = size < 126
    head = struct.pack("!BB", 0x81, 0x80 | size) if small else struct.pack("!BBH", 0x81, 0xFE, size)
    return head + b"\0\0\0\0" + payload


def draft_frame(channel: str, text: str) -> bytes:
    action = {
        "type": "session/inputAnswerChanged",
        "requestId": "t:trip",
        "questionId": "name",
        "answer": {"state": "draft", "value": {"kind": "text", "value": text}},
    }
    params = {"channel": channel, "clientSeq": 1, "action": action}
    frame = {"jsonrpc": "2.0", "method": "dispatchAction", "params": params}
    return masked(msgspec.json.encode(frame))


def ask(port: int, channel: str) -> None:
    """Makes a session with an open question of the demo agent, which the drafts answer."""
    peer = Peer(port, "/ahp")
    peer.call(1, "initialize", protocolVersions=["0.3.0"], clientId="asker")
    peer.call(2, "createSession", channel=channel, provider="demo")
    peer.call(3, "subscribe", channel=channel)
    message = {"text": "Go", "origin": {"kind": "user"}}
    action = {"type": "session/turnStarted", "turnId": "t", "message": message}
    params = {"channel": channel, "clientSeq": 1, "action": action}
    frame = {"jsonrpc": "2.0", "method": "dispatchAction", "params": params}
    peer.socket.sendall(masked(msgspec.json.encode(frame)))
    peer.read_until(b"session/inputRequested")
    peer.socket.close()


class Load:
    """Keeps `window` actions outstanding, and counts what all subscribers are sent.

    With a window of one, the next action waits until everybody has the last one, and the time is
    that of the slowest subscriber; otherwise it is that of the writer's own echo.
    """

    def __init__(self, peers: list[Peer], channel: str, window: int) -> None:
        self.peers = peers
        self.writer = peers[0]
        self.frames = cycle([draft_frame(channel, text) for text in DRAFTS])
        self.window = window
        self.delivered = 0
        self.seconds: list[float] = []
        self._sent: deque[float] = deque()
        self._selector = selectors.DefaultSelector()
        for peer in peers:
            peer.socket.settimeout(0)
            self._selector.register(peer.socket, selectors.EVENT_READ, peer)
        self.writer.socket.settimeout(None)

    def run(self, seconds: float) -> float:
        """How long it really took."""
        step = self._one if self.window == 1 else self._many
        started = perf_counter()
        while perf_counter() < started + seconds:
            step()
        return perf_counter() - started

    def _one(self) -> None:
        wanted = self.delivered + len(self.peers)
        sent = perf_counter()
        self.writer.socket.sendall(next(self.frames))
        while self.delivered < wanted and perf_counter() < sent + PATIENCE:
            for key, _ in self._selector.select(PATIENCE):
                self.delivered += key.data.take()
        self.seconds.append(perf_counter() - sent)

    def _many(self) -> None:
        missing = self.window - len(self._sent)
        if missing > 0:
            self._sent.extend([perf_counter()] * missing)
            self.writer.socket.sendall(b"".join(islice(self.frames, missing)))
        for key, _ in self._selector.select(PATIENCE):
            found = key.data.take()
            self.delivered += found
            if key.data is self.writer and found:
                now = perf_counter()
                self.seconds += [now - self._sent.popleft() for _ in range(found)]


def measure(
    port: int, path: str, channel: str, subscribers: int, window: int, seconds: float, stalled: int
) -> dict[str, object]:
    """`stalled` more are subscribed and never read."""
    peers = [Peer(port, path) for _ in range(subscribers + stalled)]
    if path == "/ahp":
        for number, peer in enumerate(peers):
            peer.call(
                1,
                "initialize",
                protocolVersions=["0.3.0"],
                clientId=f"load-{os.getpid()}-{number}",
                initialSubscriptions=[channel],
            )
    else:
        sleep(0.05 + subscribers / 20_000)
    load = Load(peers[:subscribers], channel, window)
    took = load.run(seconds)
    let_go = sum(peer.is_cut_off() for peer in peers[subscribers:])
    for peer in peers:
        peer.socket.close()
    times = sorted(load.seconds)
    return {
        "deliveries": load.delivered / took,
        "actions": load.writer.count / took,
        "sent": load.writer.count,
        "p50": times[len(times) // 2] * 1e6 if times else 0.0,
        "p99": times[len(times) * 99 // 100] * 1e6 if times else 0.0,
        "let_go": let_go,
    }


def main() -> None:
    port, path, channel, subscribers, window, seconds, stalled = sys.argv[1:]
    result = measure(
        int(port), path, channel, int(subscribers), int(window), float(seconds), int(stalled)
    )
    sys.stdout.write(msgspec.json.encode(result).decode())


if __name__ == "__main__":
    main()
