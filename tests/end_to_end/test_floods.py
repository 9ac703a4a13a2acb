"""Strangers who send without end: memory stays bounded, and others are served."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator, Sequence

import msgspec
import pytest
from websockets.frames import Opcode

from session_server.schemas.errors import CloseCode
from session_server.schemas.limits import FRAGMENTS_PER_MESSAGE
from session_server.transport.admission import room_in
from tests.ahp.client import SocketClient
from tests.effort import PATIENCE
from tests.end_to_end.byte_client import RawClient, greeting, masked, raw_client, request
from tests.http.sessions import Api
from tests.identity.credentialed_clients import TOKEN, WITH_TOKEN, api, connected, dialled, issued
from tests.servers import AT_ANY_PACE, PLAIN, SERVE, ServerProcess, serving

ALLOWED_MB = 100
MOST_BYTES = 1 << 26
"""A server that still reads after so much of one request never stops."""

READERS = 200
READER_KB = 50
"""Of memory for one that does not read; the file alone has 1.5 MB."""

FEW_DESCRIPTORS = 400
LIMITED = ("/bin/sh", "-c", f'ulimit -n {FEW_DESCRIPTORS}; exec "$@"', "sh", *SERVE)

GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
FLOODS: dict[str, tuple[bytes, bytes]] = {
    "requests sent ahead": (b"", (GET + b"\r\n") * 2_000),
    "endless headers": (GET, b"a:b\r\n" * 20_000),
    "one endless header": (GET + b"a: ", b"a" * 200_000),
    "tiny chunks": (
        b"POST /v1/sessions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"1\r\na\r\n" * 20_000,
    ),
}


@contextlib.asynccontextmanager
async def opened(
    server: ServerProcess,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def flood(server: ServerProcess, opening: bytes, more: bytes) -> None:
    """Sends until the server closes the connection."""
    sent = 0
    with contextlib.suppress(ConnectionError):
        async with opened(server) as (_, writer):
            writer.write(opening)
            while not writer.transport.is_closing():
                writer.write(more)
                await writer.drain()
                sent += len(more)
                assert sent < MOST_BYTES, "the server reads on and on"


async def is_healthy(server: ServerProcess) -> bool:
    async with opened(server) as (reader, writer), asyncio.timeout(PATIENCE):
        writer.write(GET + b"Connection: close\r\n\r\n")
        return (await reader.read(-1)).endswith(b"\r\n\r\nok")


@pytest.mark.parametrize("kind", FLOODS)
@pytest.mark.proves("design.limits.strangers")
async def test_requests_without_end_are_cut_off_and_take_no_memory(kind: str) -> None:
    with serving("memory:", *WITH_TOKEN) as server:
        assert await is_healthy(server)
        before = server.resident_kib / 1024
        async with asyncio.timeout(PATIENCE):
            for _ in range(10):
                await asyncio.gather(*(flood(server, *FLOODS[kind]) for _ in range(10)))
        assert await is_healthy(server)
        assert server.resident_kib / 1024 - before < ALLOWED_MB


@contextlib.contextmanager
def begun_to_read(server: ServerProcess, path: str, number: int) -> Iterator[None]:
    """So many connections that asked for it, and take no more than its first bytes."""
    with contextlib.ExitStack() as stack:
        readers = [stack.enter_context(socket.socket()) for _ in range(number)]
        for reader in readers:
            reader.settimeout(PATIENCE)
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            reader.connect(("127.0.0.1", server.port))
            reader.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        for reader in readers:
            assert reader.recv(12) == b"HTTP/1.1 200"
        yield


@pytest.mark.parametrize("path", ["/docs/assets/swagger-ui-bundle.js", "/openapi.json"])
@pytest.mark.proves("design.limits.strangers")
async def test_unauthenticated_slow_readers_of_large_files_take_no_memory(path: str) -> None:
    with serving("memory:", *WITH_TOKEN) as server:
        with begun_to_read(server, path, 10):
            before = server.resident_kib / 1024
        with begun_to_read(server, path, READERS):
            assert await is_healthy(server)
            assert server.resident_kib / 1024 - before < READERS * READER_KB / 1024


@contextlib.contextmanager
def one_byte_each(server: ServerProcess, number: int) -> Iterator[list[socket.socket]]:
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(one_byte(server)) for _ in range(number)]


def one_byte(server: ServerProcess) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
    connection.sendall(b"G")
    return connection


@pytest.mark.proves("design.limits.strangers")
async def test_connections_that_send_one_byte_lock_nobody_out() -> None:
    """Twice as many as the server may have files open."""
    with serving("memory:", *WITH_TOKEN, command=LIMITED) as server:
        client = await connected(server, TOKEN)
        await client.initialize("phone")
        with one_byte_each(server, 2 * FEW_DESCRIPTORS):
            assert await is_healthy(server)
            assert await client.call("ping") is None
            late = await connected(server, TOKEN)
            assert await late.call("ping") is None
            await late.close()
        assert await client.call("ping") is None
        await client.close()
        server.wait_for("too many connections without a valid credential")
        server.kill()
        assert "Traceback" not in "".join(server.output)


@pytest.mark.proves("design.limits.strangers")
async def test_one_principal_takes_at_most_half_of_the_connections_that_fit() -> None:
    most = room_in(FEW_DESCRIPTORS).connections // 2
    with serving("memory:", *WITH_TOKEN, command=LIMITED) as server:
        with api(server) as owner:
            issued_token = issued(owner, "observer")["token"]
        server.wait_for(f"{most} for each principal")
        greedy = [await connected(server, issued_token) for _ in range(most)]
        assert await dialled(server, issued_token) == 429
        other = await connected(server, TOKEN)
        assert await other.call("ping") is None
        for client in (*greedy, other):
            client.socket.transport.abort()
            await client.socket.wait_closed()


# WebSockets


@pytest.mark.parametrize(
    "frames",
    [
        masked(b"", Opcode.PING),
        masked(b"", Opcode.PONG),
        masked(b"", fin=False)
        + masked(b"", Opcode.CONT, fin=False) * 500
        + masked(b"", Opcode.CONT),
    ],
    ids=["pings", "pongs", "empty fragments"],
)
@pytest.mark.proves("design.limits.strangers")
async def test_frames_without_a_message_count_against_the_rate_limit(frames: bytes) -> None:
    with serving("memory:") as server:
        async with raw_client(server.ahp) as client:
            await client.send(greeting("flood"))
            await client.until(Opcode.TEXT)
            sending = asyncio.ensure_future(flood_frames(client, frames))
            assert await client.close_code() == CloseCode.TOO_MANY_REQUESTS
            sending.cancel()
            await asyncio.wait([sending])


async def flood_frames(client: RawClient, frames: bytes) -> None:
    many = frames * (MOST_BYTES // 64 // len(frames))
    with contextlib.suppress(ConnectionError):
        while True:
            await client.send(many)


async def test_a_message_in_too_many_fragments_ends_its_connection() -> None:
    with serving("memory:", *AT_ANY_PACE) as server:
        whole = greeting("pieces")
        begin, piece = masked(b" ", fin=False), masked(b" ", Opcode.CONT, fin=False)
        last = masked(b"{}", Opcode.CONT)
        async with raw_client(server.ahp) as client:
            await client.send(whole)
            await client.until(Opcode.TEXT)
            await client.send(begin + piece * (FRAGMENTS_PER_MESSAGE - 2) + last)
            assert b"-32600" in await client.until(Opcode.TEXT)
            await client.send(begin + piece * (FRAGMENTS_PER_MESSAGE - 1) + last)
            assert await client.close_code() == CloseCode.TOO_BIG


@pytest.mark.parametrize("command", [SERVE, PLAIN], ids=["ours", "plain"])
@pytest.mark.proves("design.limits.slow-reader")
async def test_many_large_answers_are_sent_as_fast_as_the_client_reads(
    command: Sequence[str],
) -> None:
    """All in one write: the answers would be a hundred times what an outbox may hold."""
    times = 120
    with serving("memory:", command=command) as server:
        session = large_session(server)
        async with raw_client(server.ahp) as client:
            await client.send(greeting("reader", session))
            await client.until(Opcode.TEXT)
            before = server.resident_kib / 1024
            leave = {"jsonrpc": "2.0", "method": "unsubscribe", "params": {"channel": session}}
            again = masked(msgspec.json.encode(leave))
            await client.send(
                b"".join(again + request(n, "subscribe", channel=session) for n in range(times))
            )
            other = await SocketClient.open(server.ahp)
            assert await other.call("ping") is None
            await other.close()
            for number in range(times):
                answer = await client.until(Opcode.TEXT)
                assert answer.startswith(b'{"jsonrpc":"2.0","id":%d,"result":{"snapshot"' % number)
                if number % 10 == 0:
                    assert server.resident_kib / 1024 - before < ALLOWED_MB


def large_session(server: ServerProcess) -> str:
    """Its snapshot has nearly a megabyte."""
    question = {"kind": "text", "message": "x" * 4_000}
    questions = [{"id": str(number), **question} for number in range(200)]
    wanted = {"message": "?", "questions": questions}
    with Api(server.url) as owner:
        made = owner.post("/v1/sessions", json={})
        asked = owner.post(f"{made.headers['location']}/requests", json=wanted)
    assert asked.status_code == 201, asked.text
    uri: str = made.json()["resource"]
    return uri
