"""A WebSocket client that may do anything: bytes as they are, read only when asked to."""

import asyncio
import base64
import contextlib
import os
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import msgspec
from websockets.frames import Frame, Opcode

from tests.effort import PATIENCE


def masked(data: bytes, opcode: Opcode = Opcode.TEXT, *, fin: bool = True) -> bytes:
    return Frame(opcode, data, fin).serialize(mask=True)


def request(request_id: int, method: str, **params: object) -> bytes:
    params = {"channel": "ahp-root://", **params}
    frame = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
    return masked(msgspec.json.encode(frame))


def greeting(client_id: str, *subscriptions: str, version: str = "0.3.0") -> bytes:
    return request(
        1,
        "initialize",
        protocolVersions=[version],
        clientId=client_id,
        initialSubscriptions=subscriptions,
    )


class RawClient:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        async with asyncio.timeout(PATIENCE):
            self.writer.write(data)
            await self.writer.drain()

    async def frame(self) -> tuple[Opcode, bytes]:
        """The next one; a server's frames are not masked."""
        async with asyncio.timeout(PATIENCE):
            first, size = await self.reader.readexactly(2)
            if size == 126:
                (size,) = struct.unpack("!H", await self.reader.readexactly(2))
            elif size == 127:
                (size,) = struct.unpack("!Q", await self.reader.readexactly(8))
            return Opcode(first & 0x0F), await self.reader.readexactly(size)

    async def until(self, opcode: Opcode) -> bytes:
        while True:
            found, data = await self.frame()
            if found is opcode:
                return data

    async def close_code(self) -> int:
        """Reads on to the server's goodbye."""
        code: int = struct.unpack("!H", (await self.until(Opcode.CLOSE))[:2])[0]
        return code

    async def rest(self) -> bytes:
        """All that still comes, to the end."""
        async with asyncio.timeout(PATIENCE):
            return await self.reader.read(-1)


@asynccontextmanager
async def raw_client(url: str) -> AsyncIterator[RawClient]:
    """Connected, and cut off in the end."""
    where = urlsplit(url)
    assert where.hostname is not None
    client = RawClient(*await asyncio.open_connection(where.hostname, where.port))
    key = base64.b64encode(os.urandom(16)).decode()
    try:
        await client.send(
            f"GET {where.path} HTTP/1.1\r\nHost: {where.netloc}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        async with asyncio.timeout(PATIENCE):
            await client.reader.readuntil(b"\r\n\r\n")
        yield client
    finally:
        client.writer.transport.abort()
        client.writer.close()
        with contextlib.suppress(OSError):
            await client.writer.wait_closed()
