"""Frames for one socket: joined, kept back while it is full, and bounded."""

import asyncio

import pytest
from websockets.frames import Frame, Opcode

from session_server.host.channels.messages import Burst, LoopTurns, Message, deliver
from session_server.schemas.errors import CloseCode
from session_server.schemas.limits import OUTBOX_BYTES, OUTBOX_PAUSE_BYTES
from session_server.transport.outbox import FrameOutbox

BIG = b"x" * (OUTBOX_BYTES // 4)


class Socket:
    """What was written to it, and how it was closed."""

    def __init__(self, turns: LoopTurns | None = None) -> None:
        self.writes: list[bytes] = []
        self.closed: list[int] = []
        self.outbox = FrameOutbox(self.writes.append, turns or LoopTurns(), self.close)

    def close(self, code: int, _: str) -> None:
        self.closed.append(code)
        self.outbox.finish()

    def send(self, *texts: bytes) -> None:
        for text in texts:
            self.outbox.send(Message(text))


def framed(*texts: bytes) -> bytes:
    return b"".join(Frame(Opcode.TEXT, text).serialize(mask=False) for text in texts)


async def next_turn() -> None:
    await asyncio.sleep(0)


@pytest.mark.proves("design.speed.joined")
async def test_the_first_message_of_a_turn_leaves_at_once_and_the_rest_together() -> None:
    socket = Socket()
    socket.send(b"1", b"2", b"3")
    assert socket.writes == [framed(b"1")]
    await next_turn()
    assert socket.writes == [framed(b"1"), framed(b"2", b"3")]
    socket.send(b"4", b"5")
    assert socket.writes[2:] == [framed(b"4")]
    await next_turn()
    assert socket.writes[3:] == [framed(b"5")]


async def test_what_is_sent_while_others_are_flushed_does_not_overtake() -> None:
    """An outbox whose turn has not come yet gets something from one that is woken before it."""
    turns = LoopTurns()
    first, second = Socket(turns), Socket(turns)
    first.outbox.wake = lambda: second.send(b"3")
    first.send(b"1")
    second.send(b"1", b"2")
    await next_turn()
    await next_turn()
    assert b"".join(second.writes) == framed(b"1", b"2", b"3")


async def test_a_burst_is_the_same_as_its_messages_and_is_made_once_for_all() -> None:
    sockets = [Socket() for _ in range(3)]
    messages = [Message(b"2"), Message(b"3" * 200)]
    for socket in sockets:
        socket.send(b"1")
    deliver(messages, [socket.outbox for socket in sockets])
    deliver([Message(b"4")], [socket.outbox for socket in sockets])
    await next_turn()
    for socket in sockets:
        assert b"".join(socket.writes) == framed(b"1", b"2", b"3" * 200, b"4")
    burst = Burst(messages)
    for socket in sockets:
        socket.outbox.send_all(burst)
    await next_turn()
    assert len({id(socket.writes[-1]) for socket in sockets}) == 1


@pytest.mark.proves("design.speed.paused")
async def test_a_full_socket_is_not_written_to_until_it_has_room() -> None:
    socket = Socket()
    socket.send(b"1", b"2")
    socket.outbox.pause()
    await next_turn()
    socket.send(b"3", b"4")
    await next_turn()
    assert socket.writes == [framed(b"1")]
    socket.outbox.resume()
    assert socket.writes[1:] == [framed(b"2", b"3", b"4")]
    socket.send(b"5")
    assert socket.writes[2:] == [framed(b"5")]


@pytest.mark.proves("design.speed.paused")
async def test_one_that_stays_full_is_closed_at_the_bound() -> None:
    socket = Socket()
    socket.outbox.pause()
    for _ in range(4):
        socket.send(BIG)
    assert socket.closed == []
    socket.send(b"one too many", b"and more")
    await next_turn()
    socket.outbox.resume()
    assert socket.closed == [CloseCode.TOO_SLOW]
    assert socket.writes == []


async def test_a_message_beyond_the_bound_gets_through_alone() -> None:
    socket = Socket()
    socket.outbox.pause()
    huge = b"x" * (2 * OUTBOX_BYTES)
    socket.send(huge)
    assert socket.closed == []
    socket.outbox.resume()
    assert socket.writes == [framed(huge)]


async def test_nothing_is_written_after_the_end() -> None:
    finished, dropped = Socket(), Socket()
    for socket in (finished, dropped):
        socket.send(b"1", b"2")
    finished.outbox.finish()
    dropped.outbox.drop()
    for socket in (finished, dropped):
        socket.send(b"3", b"4")
        socket.outbox.pause()
        await next_turn()
        socket.outbox.resume()
        socket.send(b"5", b"6")
        await next_turn()
    assert finished.writes == [framed(b"1"), framed(b"2")]
    assert dropped.writes == [framed(b"1")]


async def test_bytes_are_counted_while_they_are_gathered() -> None:
    socket = Socket()
    socket.send(b"first", *[BIG] * 5)
    assert socket.writes[1:] == [framed(*[BIG] * 4)], "written before it becomes more than that"
    socket.outbox.pause()
    socket.send(*[BIG] * 3)
    assert socket.closed == []
    socket.send(b"one too many")
    assert socket.closed == [CloseCode.TOO_SLOW]


async def test_a_full_outbox_asks_for_no_more_and_tells_when_there_is_room() -> None:
    socket, woken = Socket(), []
    socket.outbox.wake = lambda: woken.append(socket.outbox.is_full)
    socket.send(b"first", b"x" * OUTBOX_PAUSE_BYTES)
    assert socket.outbox.is_full
    socket.outbox.pause()
    await next_turn()
    assert (socket.outbox.is_full, woken) == (True, [])
    socket.outbox.resume()
    assert (socket.outbox.is_full, woken) == (False, [False])


async def test_who_waits_for_something_to_be_sent_is_woken_at_the_end_of_the_turn() -> None:
    socket, woken = Socket(), []
    socket.outbox.wake = lambda: woken.append(True)
    socket.send(b"1")
    assert woken == []
    await next_turn()
    assert woken == [True]
