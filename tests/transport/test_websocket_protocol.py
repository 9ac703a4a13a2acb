"""Frames as they are read from a socket, compared with how the `websockets` library reads them."""

import asyncio
import gc
import weakref
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pytest
import uvicorn
from hypothesis import given, settings
from hypothesis import strategies as st
from uvicorn.server import ServerState
from websockets.frames import Frame, Opcode
from websockets.protocol import Protocol, Side

from session_server.host.channels.messages import LoopTurns, Message
from session_server.schemas.errors import CloseCode
from session_server.schemas.limits import FRAME_BYTES, OUTBOX_PAUSE_BYTES
from session_server.transport import websocket_protocol
from session_server.transport.outbox import FrameOutbox
from session_server.transport.websocket_protocol import (
    BYTES_AFTER_CLOSE,
    READ_BYTES,
    SinkProtocol,
    sink_protocol,
)
from tests.effort import PATIENCE, tries

REQUEST = (
    b"GET /ahp HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
LIMIT = 300
"""Bytes per message in the comparison, so that short streams reach it too."""

MASK = b"\x01\xfe\x10\x7f"


class Transport(asyncio.Transport):
    """What was written, and whether it is read from."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.is_reading = True
        self.has_ended = False

    def write(self, data: Any) -> None:
        self.written += data

    def write_eof(self) -> None: ...

    def can_write_eof(self) -> bool:
        return True

    def pause_reading(self) -> None:
        assert self.is_reading
        self.is_reading = False

    def resume_reading(self) -> None:
        assert not self.is_reading
        self.is_reading = True

    def is_closing(self) -> bool:
        return self.has_ended

    def close(self) -> None:
        self.has_ended = True

    def abort(self) -> None:
        self.has_ended = True


class Recorder:
    """A sink that answers each message; `busy_for` says for how many turns it is then busy."""

    def __init__(self, outbox: FrameOutbox, busy_for: Iterator[int]) -> None:
        self.outbox = outbox
        self.messages: list[bytes] = []
        self.closings = 0
        self._busy_for = busy_for
        self._busy = 0

    @property
    def is_busy(self) -> bool:
        return self._busy > 0

    def receive(self, text: bytes) -> None:
        assert not self.is_busy
        self.messages.append(text)
        self._busy = next(self._busy_for, 0)
        self._go_on()

    def _go_on(self) -> None:
        if self._busy:
            self._busy -= 1
            asyncio.get_running_loop().call_soon(self._go_on)
        else:
            self.outbox.send(Message(b"taken"))

    def charge(self, messages: int, size: int) -> bool:  # noqa: ARG002
        return True

    def closed(self) -> None:
        self.closings += 1


class Link:
    """A connection that the application has taken over, on a transport without a socket."""

    protocol: SinkProtocol
    sink: Recorder

    def __init__(self, busy_for: Sequence[int] = ()) -> None:
        self.transport = Transport()
        self.busy_for = busy_for

    async def open(self) -> "Link":
        async def app(scope: Any, receive: Any, send: Any) -> None:
            await receive()
            await send({"type": "websocket.accept"})
            protocol = sink_protocol(scope)
            self.sink = Recorder(protocol.take_over(LoopTurns()), iter(self.busy_for))
            protocol.feed(self.sink)

        config = uvicorn.Config(
            app,
            log_config=None,
            ws=SinkProtocol,
            ws_max_size=websocket_protocol.FRAME_BYTES,
            ws_per_message_deflate=False,
            ws_ping_interval=None,
        )
        self.protocol = SinkProtocol(config, ServerState(), {})
        self.protocol.connection_made(self.transport)
        self.protocol.data_received(REQUEST)
        await turns()
        del self.transport.written[:]
        return self

    async def feed(self, chunks: Sequence[bytes]) -> None:
        """As a socket would: nothing comes while reading is paused, nor after the end."""
        for chunk in chunks:
            for _ in range(1_000):
                if self.transport.is_reading or self.transport.has_ended:
                    break
                await asyncio.sleep(0)
            else:
                raise AssertionError("reading was never resumed")
            if self.transport.has_ended:
                break
            self.protocol.data_received(chunk)
        await turns()

    def end(self) -> None:
        self.transport.has_ended = True
        self.protocol.connection_lost(None)


async def turns(number: int = 50) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


class Read(NamedTuple):
    """What came of a stream of bytes."""

    messages: list[bytes]
    pongs: list[bytes]
    close_code: int | None


def read_by_library(data: bytes) -> Read:
    """The same bytes, read as the library reads them, and judged as AHP asks."""
    library = Protocol(Side.SERVER, max_size=LIMIT)
    library.receive_data(data)
    found = Read([], [], None)
    parts: list[bytes] = []
    kind = Opcode.TEXT
    for frame in library.events_received():
        assert isinstance(frame, Frame)
        match frame.opcode:
            case Opcode.PING:
                found.pongs.append(bytes(frame.data))
            case Opcode.TEXT | Opcode.BINARY | Opcode.CONT:
                kind = kind if frame.opcode is Opcode.CONT else frame.opcode
                parts.append(bytes(frame.data))
                if not frame.fin:
                    continue
                message, parts = b"".join(parts), []
                if kind is Opcode.BINARY:
                    return found._replace(close_code=CloseCode.UNSUPPORTED_DATA)
                try:
                    message.decode()
                except UnicodeDecodeError:
                    return found._replace(close_code=CloseCode.INVALID_DATA)
                found.messages.append(message)
            case _:
                pass
    return found._replace(close_code=library.close_sent.code if library.close_sent else None)


def written(data: bytes) -> Read:
    """What a client reads."""
    client = Protocol(Side.CLIENT)
    client.receive_data(data)
    frames = [frame for frame in client.events_received() if isinstance(frame, Frame)]
    assert client.parser_exc is None or isinstance(client.parser_exc, EOFError)
    return Read(
        [bytes(frame.data) for frame in frames if frame.opcode is Opcode.TEXT],
        [bytes(frame.data) for frame in frames if frame.opcode is Opcode.PONG],
        client.close_rcvd.code if client.close_rcvd else None,
    )


async def read_by_us(chunks: Sequence[bytes], busy_for: Sequence[int]) -> Read:
    link = await Link(busy_for).open()
    await link.feed(chunks)
    await turns(200)
    answers = written(bytes(link.transport.written))
    link.end()
    await turns(2)
    assert link.sink.closings == 1
    return Read(link.sink.messages, answers.pongs, answers.close_code)


# Streams


def frame(first: int, payload: bytes, mask: bytes | None = MASK) -> bytes:
    """A frame with the shortest length that fits."""
    return framed(first, payload, len(payload), 0 if len(payload) < 126 else 2, mask)


def framed(first: int, payload: bytes, length: int, extended: int, mask: bytes | None) -> bytes:
    marked = 0 if mask is None else 128
    header = {
        0: lambda: bytes([first, marked | length & 127]),
        2: lambda: bytes([first, marked | 126]) + (length & 0xFFFF).to_bytes(2),
        8: lambda: bytes([first, marked | 127]) + length.to_bytes(8),
    }[extended]()
    if mask is None:
        return header + payload
    masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))
    return header + mask + masked


PAYLOADS = st.one_of(
    st.sampled_from(["", "a", "für", "\N{GRINNING FACE}" * 3]).map(str.encode),
    st.binary(max_size=12),
    st.integers(100, LIMIT + 3).map(lambda size: b"x" * size),
    st.sampled_from([b"\xc3", b"\xbc", b"\xf0\x9f", b"\x98\x80", b"\xed\xa0\x80", b"\xff"]),
    st.sampled_from([1000, 1001, 1004, 1005, 1006, 3000, 5000, 0]).map(
        lambda code: code.to_bytes(2) + b"bye"
    ),
)
FIRSTS = st.one_of(
    st.sampled_from([0x81, 0x81, 0x81, 0x01, 0x00, 0x80, 0x80, 0x82, 0x02]),
    st.sampled_from([0x88, 0x89, 0x89, 0x8A, 0x08, 0x09, 0x0A, 0x83, 0x8B, 0xC1, 0xA1, 0x91, 0xC0]),
)
GOOD_FRAMES = st.builds(frame, FIRSTS, PAYLOADS, st.binary(min_size=4, max_size=4))
TEXT_FRAMES = st.builds(frame, st.just(0x81), PAYLOADS)
ODD_FRAMES = st.one_of(
    st.builds(frame, FIRSTS, PAYLOADS, st.none()),
    st.builds(
        lambda first, payload, extended: framed(first, payload, len(payload), extended, MASK),
        FIRSTS,
        PAYLOADS,
        st.sampled_from([2, 8]),
    ),
    st.builds(
        lambda first, length: framed(first, b"", length, 8, MASK),
        FIRSTS,
        st.sampled_from([0, 1, 125, 126, LIMIT, LIMIT + 1, 2**31, 2**63 - 1, 2**63, 2**64 - 1]),
    ),
    st.binary(max_size=20),
)
STREAMS = st.lists(
    st.one_of(TEXT_FRAMES, TEXT_FRAMES, GOOD_FRAMES, GOOD_FRAMES, ODD_FRAMES), max_size=8
).map(b"".join)


@st.composite
def chunked(draw: st.DrawFn) -> list[bytes]:
    """A stream in chunks: one byte at a time, whole, or cut anywhere."""
    data = draw(STREAMS)
    size = draw(st.sampled_from([1, 2, 3, 0]))
    if size:
        return [data[at : at + size] for at in range(0, len(data), size)]
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=6)))
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True) if a < b]


@settings(max_examples=tries(in_ci=1_000, at_hand=100))
@given(chunked(), st.lists(st.integers(0, 3), max_size=6))
def test_any_stream_is_read_as_the_library_reads_it(
    chunks: list[bytes], busy_for: list[int]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(websocket_protocol, "FRAME_BYTES", LIMIT)
        found = asyncio.run(read_by_us(chunks, busy_for))
    assert found == read_by_library(b"".join(chunks))


# What it costs


async def test_a_fragment_that_makes_its_message_too_big_is_refused_before_it_is_there() -> None:
    """Otherwise a connection could keep twice as much as one message may have."""
    link = await Link().open()
    await link.feed([frame(0x01, b"x" * 200), framed(0x80, b"", FRAME_BYTES - 100, 8, MASK)])
    assert written(bytes(link.transport.written)).close_code == CloseCode.TOO_BIG
    link.end()


async def test_a_frame_that_never_ends_is_kept_without_being_looked_through_again() -> None:
    link = await Link().open()
    await link.feed([framed(0x81, b"", FRAME_BYTES, 8, bytes(4))])
    await link.feed([b"x" * 1_000] * 1_000)
    assert link.transport.is_reading
    assert link.sink.messages == []
    await link.feed([b"x" * (FRAME_BYTES - 1_000_000)])
    assert [len(message) for message in link.sink.messages] == [FRAME_BYTES]
    link.end()


async def test_who_sends_much_after_our_close_is_still_read_from() -> None:
    """A socket that is closed with something unread is reset, and the reason would be lost."""
    link = await Link().open()
    link.protocol.data_received(frame(0x81, b"x" * 100) * 3_000)
    link.protocol.close(CloseCode.TOO_MANY_REQUESTS, "enough")
    await turns(100)
    assert 3_000 * 106 - READ_BYTES > BYTES_AFTER_CLOSE
    assert link.transport.is_reading
    link.end()


async def test_a_large_chunk_is_read_in_turns() -> None:
    link = await Link().open()
    size = len(frame(0x81, b"hi"))
    link.protocol.data_received(frame(0x81, b"hi") * (4 * READ_BYTES // size))
    assert len(link.sink.messages) == READ_BYTES // size
    assert not link.transport.is_reading
    await turns()
    assert len(link.sink.messages) == 4 * READ_BYTES // size
    assert link.transport.is_reading
    link.end()


async def test_nobody_is_read_from_while_what_it_asked_for_is_not_taken() -> None:
    link = await Link().open()
    link.protocol.pause_writing()
    link.sink.outbox.send(Message(b"x" * OUTBOX_PAUSE_BYTES))
    link.protocol.data_received(frame(0x81, b"more"))
    await turns()
    assert link.sink.messages == []
    assert not link.transport.is_reading
    link.protocol.resume_writing()
    await turns()
    assert link.sink.messages == [b"more"]
    assert link.transport.is_reading
    link.end()


async def test_a_pong_that_came_in_time_counts_although_the_process_had_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(websocket_protocol, "UNREAD_SECONDS", PATIENCE)
    link = await Link().open()
    link.protocol.ping_interval = link.protocol.ping_timeout = PATIENCE
    link.protocol.send_keepalive_ping()
    link.protocol.keepalive_timeout()
    ping = link.protocol.pending_ping_payload
    assert ping is not None
    await link.feed([frame(0x8A, ping)])
    assert not link.transport.is_closing()
    assert link.protocol.pong_timer is None
    link.end()


async def test_a_pong_counts_although_much_that_came_before_it_is_not_read_yet() -> None:
    link = await Link().open()
    link.protocol.ping_interval = link.protocol.ping_timeout = PATIENCE
    link.protocol.send_keepalive_ping()
    ping = link.protocol.pending_ping_payload
    assert ping is not None
    link.protocol.data_received(frame(0x81, b"x" * READ_BYTES) * 3 + frame(0x8A, ping))
    link.protocol._close_without_pong()
    assert not link.transport.is_closing()
    await turns()
    assert len(link.sink.messages) == 3
    assert link.protocol.pong_timer is None
    link.end()


@pytest.mark.parametrize("rest", [b"", frame(0x01, b"x" * 1_000), frame(0x81, b"half")[:-1]])
async def test_a_connection_that_ended_needs_no_garbage_collection(rest: bytes) -> None:
    """Collections are rare, and each connection may have kept a large message."""
    link = await Link().open()
    await link.feed([frame(0x81, b"hi"), rest])
    link.end()
    await turns()
    gone = weakref.ref(link.protocol)
    gc.disable()
    try:
        del link.protocol, link.sink
        await turns()
        assert gone() is None
    finally:
        gc.enable()
