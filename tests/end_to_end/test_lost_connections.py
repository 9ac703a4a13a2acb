"""Clients that vanish or stop reading: the server lets go of them, and says nothing odd."""

import asyncio
import contextlib
import signal
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.frames import Opcode

from session_server.schemas.limits import ENVELOPES_KEPT, OUTBOX_BYTES
from session_server.transport.websocket_protocol import CLOSE_SECONDS
from tests.ahp.actions import answer_changed, title_changed, turn_started
from tests.ahp.client import SocketClient
from tests.ahp.mirror import Mirror
from tests.end_to_end.byte_client import RawClient, greeting, masked, raw_client, request
from tests.end_to_end.mirror_client import Device
from tests.servers import AT_ANY_PACE, PLAIN, SERVE, ServerProcess, serving
from tests.waiting import until

SESSION = "ahp-session:/x"
ROOM = "ahp-presence:/x"
IN_THE_END = 20.0
"""Where the other outcome is never."""
TEXT = "x" * 60_000
ENOUGH = 8 * OUTBOX_BYTES // len(TEXT)
"""Drafts that fill the kernel's buffers, ours and the outbox of who does not read."""

PINGING = (*PLAIN, "--ours", "--pings-every", "0.3")
both = pytest.mark.parametrize(
    "command",
    [pytest.param(SERVE, id="ours"), pytest.param(PLAIN, id="plain")],
)


def drafted(number: int) -> dict[str, Any]:
    return answer_changed(f"{number} {TEXT}", "t:trip", "name")


async def with_question(url: str) -> SocketClient:
    client = await SocketClient.joined(url, "writer")
    await client.call("createSession", SESSION, provider="demo")
    await client.call("subscribe", SESSION)
    start = turn_started()
    client.dispatch(start, SESSION)
    await client.until(lambda f: "request" in f.get("params", {}).get("action", {}))
    return client


def is_alone(frame: dict[str, Any]) -> bool:
    if frame.get("method") != "presence/changed":
        return False
    return [present["clientId"] for present in frame["params"]["present"]] == ["writer"]


def said(server: ServerProcess) -> str:
    """All that it wrote, once it is gone, beyond where it can be reached."""
    return "".join(line for line in server.output if not line.startswith((" ", "session-server")))


def sockets(server: ServerProcess) -> int:
    links = (path.readlink() for path in Path(f"/proc/{server.pid}/fd").iterdir())
    return sum(str(link).startswith("socket:") for link in links)


async def fill(writer: SocketClient, number: int = ENOUGH) -> float:
    """Drafts one after the other; how long the slowest took to come back."""
    slowest = 0.0
    for n in range(number):
        began = time.perf_counter()
        await writer.act(drafted(n), SESSION)
        slowest = max(slowest, time.perf_counter() - began)
    return slowest


@asynccontextmanager
async def stalled(server: ServerProcess, writer: SocketClient) -> AsyncIterator[RawClient]:
    """Somebody who watches and never reads again, as the writer can tell."""
    async with raw_client(server.ahp) as client:
        await client.send(greeting("stalled", SESSION, ROOM))
        await client.frame()
        await writer.call("subscribe", ROOM)
        yield client


@both
async def test_a_cut_connection_leaves_no_traceback(command: Sequence[str]) -> None:
    with serving("memory:", *AT_ANY_PACE, command=command) as server:
        writer = await with_question(server.ahp)
        for round_ in range(10):
            devices = [Device(Mirror(f"{round_}-{n}", [SESSION])) for n in range(10)]
            for device in devices:
                await device.connect(server.ahp)
            for number in range(50):
                seq = writer.dispatch(drafted(number), SESSION)
                if number % 5 == 0:
                    devices[number // 5].cut()
            await writer.echo(seq)
            for device in devices:
                await device.hang_up()
        await writer.close()
        server.kill()
        assert said(server) == ""


@both
async def test_a_client_that_stops_reading_is_disconnected_and_delays_nobody(
    command: Sequence[str], record_property: Any
) -> None:
    with serving("memory:", *AT_ANY_PACE, command=command) as server:
        writer = await with_question(server.ahp)
        async with stalled(server, writer):
            slowest = await fill(writer)
            await writer.wait_for(is_alone)
        await writer.close()
        server.kill()
        assert said(server) == ""
    record_property("slowest_while_somebody_stalled", round(slowest, 3))


async def test_unread_output_is_dropped_after_a_grace_period() -> None:
    with serving("memory:", *AT_ANY_PACE) as server:
        writer = await with_question(server.ahp)
        async with stalled(server, writer):
            before = sockets(server)
            await fill(writer)
            await until(lambda: sockets(server) == before - 1, CLOSE_SECONDS + IN_THE_END)
        await writer.close()
        server.kill()
        assert said(server) == ""


@pytest.mark.proves(
    "design.deliver.no-waiting", "ahp.reconnect.too-old", "design.limits.slow-reader"
)
async def test_a_disconnected_slow_reader_resumes_from_a_snapshot() -> None:
    with serving("memory:", *AT_ANY_PACE) as server:
        writer = await with_question(server.ahp)
        async with stalled(server, writer):
            await fill(writer)
            await writer.wait_for(is_alone)
        seq = 0
        for number in range(ENVELOPES_KEPT):
            seq = writer.dispatch(title_changed(f"{number}"), SESSION)
        await writer.echo(seq)
        back = await SocketClient.open(server.ahp)
        answer = await back.call(
            "reconnect", clientId="stalled", lastSeenServerSeq=1, subscriptions=[SESSION]
        )
        assert answer["type"] == "snapshot"
        assert answer["snapshots"][0]["state"]["summary"]["title"] == f"{ENVELOPES_KEPT - 1}"
        await back.close()
        await writer.close()


async def test_a_slow_reader_that_reads_on_in_time_gets_a_retryable_close_code() -> None:
    with serving("memory:", *AT_ANY_PACE) as server:
        writer = await with_question(server.ahp)
        for _ in range(8):  # on a busy machine it may come too late, and is cut off
            async with stalled(server, writer) as client:
                await fill(writer)
                await writer.wait_for(is_alone)
                with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                    assert await client.close_code() == 4000
                    break
        else:
            pytest.fail("it never got its close code")
        await writer.close()


async def test_stopping_does_not_wait_for_slow_readers(record_property: Any) -> None:
    with serving("memory:", *AT_ANY_PACE) as server:
        took = await stopped_with_a_stalled_client(server)
        assert said(server) == "", "the server gave up waiting"
    record_property("seconds_until_stopped", round(took, 1))


async def test_another_asgi_server_stops_after_its_own_grace_period() -> None:
    with serving("memory:", *AT_ANY_PACE, command=PLAIN) as server:
        await stopped_with_a_stalled_client(server)
        assert "Traceback" not in said(server)


async def stopped_with_a_stalled_client(server: ServerProcess) -> float:
    """How long it took; a client that reads is told to come back all the same."""
    writer = await with_question(server.ahp)
    async with stalled(server, writer):
        await fill(writer, ENOUGH // 3)
        began = time.monotonic()
        assert await asyncio.to_thread(server.stop) in (0, -signal.SIGTERM)  # PLAIN: uvicorn's own
        took = time.monotonic() - began
        await writer.socket.wait_closed()
        assert writer.socket.close_code == 1012
    return took


@both
async def test_frames_after_the_close_frame_are_ignored(command: Sequence[str]) -> None:
    late = (
        b'{"jsonrpc":"2.0","method":"dispatchAction","params":{"channel":"ahp-session:/x",'
        b'"clientSeq":1,"action":{"type":"session/titleChanged","title":"late"}}}'
    )
    with serving("memory:", *AT_ANY_PACE, command=command) as server:
        writer = await with_question(server.ahp)
        async with raw_client(server.ahp) as client:
            await client.send(greeting("client"))
            await client.frame()
            await client.send(masked(b"\0", Opcode.BINARY) + masked(late) * 100)
            assert await client.close_code() == 1003
            await client.send(masked(late) * 100 + masked(b"\x03\xeb", Opcode.CLOSE))
            assert await client.rest() == b""
        assert await writer.call("ping") is None
        assert not any("title" in f.get("params", {}).get("action", {}) for f in writer.received)
        await writer.close()
        server.kill()
        assert said(server) == ""


@both
async def test_a_request_and_a_close_frame_in_one_write_leave_no_socket_open(
    command: Sequence[str],
) -> None:
    with serving("memory:", *AT_ANY_PACE, command=command) as server:
        before = sockets(server)
        for number in range(20):
            last = greeting(f"c{number}") if number % 2 else masked(b"\0", Opcode.BINARY)
            async with raw_client(server.ahp) as client:
                await client.send(last + masked(b"\x03\xe8", Opcode.CLOSE))
                assert await client.close_code() in (1000, 1003)
                assert await client.rest() == b""
        await until(lambda: sockets(server) == before, IN_THE_END)
        server.kill()
        assert said(server) == ""


async def test_a_half_closed_connection_still_gets_its_answers() -> None:
    with serving("memory:", *AT_ANY_PACE) as server:
        before = sockets(server)
        for number in range(5):
            async with raw_client(server.ahp) as client:
                await client.send(greeting(f"c{number}"))
                await client.frame()
                client.writer.write(request(2, "listSessions"))
                client.writer.write_eof()
                assert b'"id":2' in await client.rest()
                await until(lambda: sockets(server) == before, IN_THE_END)
        server.kill()
        assert said(server) == ""


async def test_pings_from_a_client_that_does_not_read_take_bounded_memory() -> None:
    with serving("memory:", *AT_ANY_PACE) as server:
        async with raw_client(server.ahp) as client:
            await client.send(greeting("client"))
            before = server.resident_kib
            pings = masked(b"x" * 125, Opcode.PING) * 1_000
            for _ in range(150):
                await client.send(pings)
            grown = server.resident_kib - before
        assert grown < 8_192, f"{grown} KiB for answers that nobody reads"


async def test_a_client_that_answers_no_ping_is_disconnected() -> None:
    with serving("memory:", *AT_ANY_PACE, command=PINGING) as server:
        writer = await with_question(server.ahp)
        async with stalled(server, writer):
            async with asyncio.timeout(IN_THE_END):
                await writer.wait_for(is_alone)
        await writer.close()
