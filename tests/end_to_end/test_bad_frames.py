"""Frames that nobody should send: each gets its code, and other clients never notice."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, get_args

import msgspec
import orjson
import pytest
from websockets.frames import Opcode

from session_server.reducers.ahp1.uris import chat_uri
from session_server.schemas.ahp import actions as ahp
from session_server.schemas.ahp1 import actions as ahp1
from session_server.schemas.limits import FRAME_BYTES, JSON_DEPTH
from tests.ahp.actions import title_changed
from tests.ahp.client import ROOT, SocketClient
from tests.effort import tries
from tests.end_to_end.byte_client import RawClient, greeting, masked, raw_client, request
from tests.servers import AT_ANY_PACE, PLAIN, SERVE, ServerProcess, serving

SESSION = "ahp-session:/bystander"
FRAMES = tries(in_ci=4_000, at_hand=1_000)
BLOCK = 100
METHODS = ("ping", "initialize", "reconnect", "subscribe", "fetchTurns", "dispatchAction")
CHANNELS = (ROOT, "ahp-session:/none", "", "x:/y")
AHP1_CHANNELS = (
    *CHANNELS,
    "people:/none",
    "ahp-chat:/none",
    chat_uri("ahp-session:/none"),
    "ahp-chat://default/",
    "ahp-chat://default/%ff",
    "ahp-chat://other/x",
)
FIELDS = ("turnId", "requestId", "questionId", "answer", "answers", "message", "draft", "title")
ACTIONS = {False: get_args(ahp.Action), True: get_args(ahp1.ClientAction | ahp1.HostAction)}
both = pytest.mark.parametrize("command", [SERVE, PLAIN], ids=["ours", "plain"])


@asynccontextmanager
async def bystander(server: ServerProcess) -> AsyncIterator[SocketClient]:
    """Somebody else, who works on while the frames come, and in the end saw only its own doing."""
    client = await SocketClient.joined(server.ahp, "bystander", ROOT)
    await client.call("createSession", SESSION, provider="people")
    await client.call("subscribe", SESSION)
    working = asyncio.create_task(work(client))
    yield client
    working.cancel()
    await asyncio.wait([working])
    assert working.cancelled()
    mine = {"clientId": "bystander"}
    for frame in client.received:
        if frame.get("method") == "action" and frame["params"]["channel"] == SESSION:
            origin = frame["params"].get("origin", mine)
            assert origin["clientId"] == "bystander"
            assert "rejectionReason" not in frame["params"]
    await client.close()
    server.kill()
    assert "Traceback" not in "".join(server.output)


async def work(client: SocketClient) -> None:
    while True:
        title = title_changed(f"{len(client.received)}")
        await client.act(title, SESSION)
        await asyncio.sleep(0.001)


# Frames that end the connection


def oversized(opcode: Opcode = Opcode.TEXT) -> bytes:
    return masked(b" " * (FRAME_BYTES + 1), opcode)


def in_pieces(data: bytes, pieces: int) -> bytes:
    size = -(-len(data) // pieces)
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    return b"".join(
        masked(part, Opcode.CONT if n else Opcode.TEXT, fin=n == len(parts) - 1)
        for n, part in enumerate(parts)
    )


FATAL: dict[str, tuple[bytes, int]] = {
    "binary": (masked(b'{"jsonrpc":"2.0"}', Opcode.BINARY), 1003),
    "empty binary": (masked(b"", Opcode.BINARY), 1003),
    "binary in pieces": (
        masked(b"a", Opcode.BINARY, fin=False) + masked(b"b", Opcode.CONT),
        1003,
    ),
    "oversized": (oversized(), 1009),
    "oversized binary": (oversized(Opcode.BINARY), 1009),
    "oversized in pieces": (in_pieces(b" " * (FRAME_BYTES + 1), 7), 1009),
    "said to be oversized": (b"\x81\xff" + b"\x7f" + b"\xff" * 7 + b"mask", 1009),
    "oversized, and then a lot more": (oversized() * 8, 1009),
    "not UTF-8": (masked(b'{"a":"\xff"}'), 1007),
    "half a character": (masked("🙂".encode()[:2]), 1007),
    "a surrogate": (masked(b'{"a":"\xed\xa0\x80"}'), 1007),
    "not masked": (b"\x81\x02{}", 1002),
    "a reserved bit": (b"\xc1\x80mask", 1002),
    "an unknown opcode": (b"\x83\x80mask", 1002),
    "nothing to continue": (masked(b"{}", Opcode.CONT), 1002),
    "a text within a text": (masked(b"{", fin=False) + masked(b"}"), 1002),
    "a ping in pieces": (b"\x09\x80mask", 1002),
    "a ping that is too long": (b"\x89\xfe\x00\x80mask" + b"x" * 128, 1002),
    "a goodbye without sense": (masked(b"\x00", Opcode.CLOSE), 1002),
    "a goodbye with a code that is none": (masked(b"\x00\x01", Opcode.CLOSE), 1002),
}


@pytest.mark.proves("ahp.frames.text-only")
async def test_frames_that_cannot_be_read_end_the_connection_with_their_code() -> None:
    with serving("memory:") as server:
        async with bystander(server):
            for name, (data, code) in FATAL.items():
                for greeted in (False, True):
                    async with raw_client(server.ahp) as client:
                        if greeted:
                            await client.send(greeting("client"))
                            await client.frame()
                        await client.send(data)
                        assert await client.close_code() == code, name


async def test_another_server_ends_them_too() -> None:
    """It reads frames itself; what it lets through is bounded all the same."""
    with serving("memory:", command=PLAIN) as server:
        async with bystander(server):
            for name in ("binary", "oversized", "oversized in pieces", "not masked"):
                data, code = FATAL[name]
                async with raw_client(server.ahp) as client:
                    await client.send(data)
                    assert await client.close_code() == code, name


async def test_what_came_before_a_broken_frame_still_counts() -> None:
    with serving("memory:") as server:
        async with bystander(server), raw_client(server.ahp) as client:
            await client.send(request(7, "ping") + b"\xc1\x80mask")
            assert await client.frame() == (Opcode.TEXT, b'{"jsonrpc":"2.0","id":7,"result":null}')
            assert await client.close_code() == 1002


# Frames that are answered


ANSWERED: dict[str, tuple[str, Any, int]] = {
    "nothing": ("", None, -32700),
    "not JSON": ("nonsense", None, -32700),
    "half of it": ('{"jsonrpc":"2.0","id":3,', None, -32700),
    "two of them": ("{}{}", None, -32700),
    "too deep": ("[" * (JSON_DEPTH + 1) + "]" * (JSON_DEPTH + 1), None, -32700),
    "too deep, in a request": (
        '{"jsonrpc":"2.0","params":' + "[" * 99 + "]" * 99 + ',"id":3,"method":"ping"}',
        3,
        -32700,
    ),
    "a lone surrogate": ('{"jsonrpc":"2.0","id":3,"method":"\\ud800"}', 3, -32601),
    "a number": ("5", None, -32600),
    "a batch": ('[{"jsonrpc":"2.0","id":3,"method":"ping"}]', None, -32600),
    "an empty object": ("{}", None, -32600),
    "another version": ('{"jsonrpc":"1.0","id":3,"method":"ping","params":{}}', 3, -32600),
    "no version": ('{"id":3,"method":"ping","params":{}}', 3, -32600),
    "a list for an id": ('{"jsonrpc":"2.0","id":[],"method":"ping"}', None, -32600),
    "a yes for an id": ('{"jsonrpc":"2.0","id":true,"method":"ping"}', None, -32600),
    "a name for an id": ('{"jsonrpc":"2.0","id":"x","method":"ping"}', "x", -32602),
    "a fraction for an id": ('{"jsonrpc":"2.0","id":1.5,"method":"ping"}', 1.5, -32602),
    "a number for a method": ('{"jsonrpc":"2.0","id":3,"method":5}', 3, -32600),
    "neither a request nor an answer": ('{"jsonrpc":"2.0","id":3}', 3, -32600),
    "an unknown method": ('{"jsonrpc":"2.0","id":3,"method":"nothing","params":{}}', 3, -32601),
    "no parameters": ('{"jsonrpc":"2.0","id":3,"method":"subscribe"}', 3, -32602),
    "a wrong type": (
        '{"jsonrpc":"2.0","id":3,"method":"subscribe","params":{"channel":5}}',
        3,
        -32602,
    ),
    "a list of parameters": ('{"jsonrpc":"2.0","id":3,"method":"ping","params":[]}', 3, -32602),
}


@pytest.mark.proves("ahp.errors.answered")
@both
async def test_frames_that_are_not_understood_are_answered_and_the_connection_goes_on(
    command: Sequence[str],
) -> None:
    with serving("memory:", command=command) as server:
        async with bystander(server):
            for version in (None, "0.3.0", "1.0.0"):
                client = await SocketClient.open(server.ahp)
                if version is not None:
                    await client.call("initialize", protocolVersions=[version], clientId="client")
                for name, (text, id_, code) in ANSWERED.items():
                    await client.socket.send(text)
                    answer = await client.until(lambda _: True)
                    assert (answer["id"], answer["error"]["code"]) == (id_, code), name
                    assert answer["error"]["message"], name
                assert await client.call("ping") is None
                await client.close()


# Ten thousand random ones


Heading = tuple[Any, int | None]
"""The `id` and the code of an answer; no code for a result."""


class RandomFrames:
    """Random frames, from noise to nearly right, and which answers each may get."""

    def __init__(self, seed: int, version: str | None) -> None:
        self.dice = random.Random(seed)
        is_later = version not in (None, "0.3.0")
        self._channels = AHP1_CHANNELS if is_later else CHANNELS
        self._actions = [kind.__struct_config__.tag for kind in ACTIONS[is_later]]
        self._kinds: tuple[Callable[[], str], ...] = (
            self._noise,
            self._wild,
            self._nearly,
            self._damaged,
            self._whole,
        )

    def frame(self) -> str:
        return self.dice.choice(self._kinds)()

    def _noise(self) -> str:
        alphabet = '{}[]":,0123456789.-eE tfn\\u"jsonrpcmethodid\u00e9\U0001f642'
        return "".join(self.dice.choices(alphabet, k=self.dice.randrange(60)))

    def _wild(self) -> str:
        return msgspec.json.encode(self._value(4)).decode()

    def _value(self, depth: int) -> Any:
        dice = self.dice
        match dice.randrange(7 if depth else 5):
            case 0:
                return dice.choice([None, True, False])
            case 1:
                return dice.choice([0, -1, 2**53, 10**18, 1.5, -1e300])
            case 2 | 3:
                return dice.choice(["", "x", "2.0", "é🙂", "\0", *METHODS, ROOT, SESSION])
            case 4:
                return {}
            case 5:
                return [self._value(depth - 1) for _ in range(dice.randrange(4))]
            case _:
                keys = dice.sample(["jsonrpc", "id", "method", "params", "channel", "x"], 3)
                return {key: self._value(depth - 1) for key in keys}

    def _nearly(self) -> str:
        frame = self._request()
        frame[self.dice.choice(list(frame))] = self._value(2)
        return msgspec.json.encode(frame).decode()

    def _damaged(self) -> str:
        text = msgspec.json.encode(self._request()).decode()
        at = self.dice.randrange(len(text))
        return text[:at] + self.dice.choice(["", '"', "}", "\\", "é", "0"]) + text[at + 1 :]

    def _whole(self) -> str:
        return msgspec.json.encode(self._request()).decode()

    def _request(self) -> dict[str, Any]:
        method = self.dice.choice([*METHODS[:1], *METHODS[3:], "nothing", ""])
        params: dict[str, Any] = {"channel": self.dice.choice(self._channels)}
        if method == "dispatchAction":
            params["clientSeq"] = self.dice.choice([0, 1, 7, -1, "x"])
            params["action"] = self._action()
        frame = {"jsonrpc": "2.0", "id": self.dice.randrange(9), "method": method, "params": params}
        if self.dice.random() < 0.2:
            del frame["id"]
        return frame

    def _action(self) -> Any:
        """Of a known kind, mostly, with fields of any kind."""
        if self.dice.random() < 0.1:
            return self._value(2)
        some = self.dice.sample(FIELDS, self.dice.randrange(len(FIELDS)))
        return {"type": self.dice.choice(self._actions), **{f: self._value(2) for f in some}}


def allowed(text: str) -> set[Heading | None]:
    """By another JSON reader and the words of JSON-RPC; `None` is silence."""
    try:
        frame = orjson.loads(text)
    except orjson.JSONDecodeError:
        if "dispatchAction" not in text:
            return {(None, -32700)}
        # An action that is refused for another reason is not read to its end.
        codes = (-32700, -32600, -32601, -32602, -32001, -32011)
        return {None, *((id_, code) for id_ in (None, *range(9)) for code in codes)}
    if not isinstance(frame, dict):
        return {(None, -32600)}
    id_ = frame.get("id")
    has_id = isinstance(id_, int | float | str) and not isinstance(id_, bool)
    is_sound = frame.get("jsonrpc") == "2.0" and isinstance(frame.get("method"), str)
    if is_sound and frame["method"] == "dispatchAction":
        codes = (None, -32600, -32601, -32602, -32001, -32011)
        answered = {(id_, code) for code in codes} if has_id else set()
        return {None, (None, -32600), *answered}
    if not is_sound or not (has_id or id_ is None):
        return {(id_ if has_id else None, -32600)}
    if not has_id:
        return {None}
    if frame["method"] not in METHODS:
        return {(id_, -32601)}
    codes = (None, -32600, -32601, -32602, -32001, -32008)
    return {(id_, code) for code in codes}


async def test_a_response_without_a_request_is_ignored() -> None:
    with serving("memory:") as server:
        client = await SocketClient.open(server.ahp)
        for text in (
            '{"jsonrpc":"2.0","id":3,"result":{}}',
            '{"jsonrpc":"2.0","id":3,"result":null}',
            '{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"no"}}',
        ):
            await client.socket.send(text)
        assert await client.call("ping") is None
        assert len(client.received) == 1
        await client.close()


async def answers(client: RawClient, sentinel: int) -> list[Heading]:
    """All that come before the answer to the sentinel's ping."""
    found: list[Heading] = []
    while True:
        frame = msgspec.json.decode(await client.until(Opcode.TEXT))
        if "method" in frame:
            continue  # news from somewhere that it subscribed to
        heading = (frame["id"], frame.get("error", {}).get("code"))
        if heading == (sentinel, None):
            return found
        found.append(heading)


@pytest.mark.parametrize("version", [None, "0.3.0", "0.9.0", "1.0.0"])
async def test_random_frames_get_allowed_answers_only(version: str | None) -> None:
    """Before the handshake, and after it in each version."""
    random_frames = RandomFrames(7, version)
    with serving("memory:", *AT_ANY_PACE) as server:
        async with bystander(server), raw_client(server.ahp) as client:
            if version is not None:
                await client.send(greeting("random_frames", version=version))
                await client.frame()
            for number in range(0, FRAMES, BLOCK):
                frames = [random_frames.frame() for _ in range(BLOCK)]
                await client.send(
                    b"".join(
                        masked(text.encode()) + request(1_000_000 + number + n, "ping")
                        for n, text in enumerate(frames)
                    )
                )
                for n, text in enumerate(frames):
                    got = await answers(client, 1_000_000 + number + n)
                    assert len(got) < 2, text
                    assert (got[0] if got else None) in allowed(text), (text, got)


@pytest.mark.proves("design.limits.frame")
async def test_a_frame_of_just_the_limit_is_read() -> None:
    with serving("memory:") as server:
        async with raw_client(server.ahp) as client:
            ping = b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"channel":"ahp-root://"}}'
            await client.send(
                masked(ping.ljust(FRAME_BYTES)) + in_pieces(ping.ljust(FRAME_BYTES), 9)
            )
            for _ in range(2):
                assert b'"id":7' in await client.until(Opcode.TEXT)
