"""Mirrors on real sockets: they can be cut off at any moment, and come back."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from tests.ahp.history import History
from tests.ahp.mirror import Frame, Mirror
from tests.effort import PATIENCE


class Device:
    """One mirror and its connection, if it has one. A task reads for as long as it lasts."""

    def __init__(self, mirror: Mirror) -> None:
        self.mirror = mirror
        self.history = History(mirror)
        self._socket: ClientConnection | None = None
        self._reader: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        self._is_cut = False
        self.closes: list[int | None] = []
        """How connections ended that were not cut from here: the code, or nothing."""

    @property
    def is_online(self) -> bool:
        return self._reader is not None and not self._reader.done() and not self._is_cut

    async def connect(self, url: str) -> None:
        """Returns when the handshake is answered."""
        await self.dial(url)
        await self.until(lambda: self.mirror.is_in or not self.is_online)

    async def dial(self, url: str) -> None:
        await self.hang_up()
        self._socket = await connect(
            url, compression=None, max_queue=None, ping_interval=None, open_timeout=PATIENCE
        )
        self._is_cut = False
        self.history.connected()
        await self.say(self.mirror.greet())
        self._reader = asyncio.create_task(self._read(self._socket))

    async def _read(self, socket: ClientConnection) -> None:
        try:
            while True:
                frame = await socket.recv(decode=False)
                self.history.received(frame)
                reply = self.mirror.take(frame)
                if reply is not None:
                    await self.say(reply)
                self._news.set()
        except ConnectionClosed as closed:
            self.closes.append(closed.rcvd and closed.rcvd.code)
        finally:
            self._news.set()

    async def say(self, frame: Frame) -> None:
        """What a broken connection cannot take is lost, as it would be on the way."""
        text = msgspec.json.encode(frame)
        self.history.sent(text)
        if self._socket is not None:
            try:
                await self._socket.send(text, text=True)
            except ConnectionClosed:
                return

    async def until(self, holds: Callable[[], Any]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not holds():
                self._news.clear()
                await self._news.wait()

    async def ping(self) -> None:
        """Whatever the host sent before has arrived when this returns."""
        await self.say(self.mirror.request("ping"))
        await self.until(lambda: not self.mirror.is_waiting or not self.is_online)

    def cut(self) -> None:
        """In the middle of whatever is under way, and without a word."""
        self._is_cut = True
        if self._socket is not None:
            self._socket.transport.abort()
        if self._reader is not None:
            self._reader.cancel()

    async def ended(self) -> None:
        """Reads all that still comes from a host that is gone."""
        if self._reader is not None:
            async with asyncio.timeout(PATIENCE):
                await asyncio.wait([self._reader])
        self.mirror.hang_up()

    async def hang_up(self) -> None:
        self.cut()
        await self.ended()
        if self._socket is not None:
            await self._socket.wait_closed()
        self._socket = self._reader = None
