"""HTTP responses that are watched: whether a client was connected until all of it was written.

Servers accept what is sent to a client that has disconnected and report nothing, so disconnects are
listened for. Used by the gateway and by HTTP.
"""

import asyncio
import contextlib
from collections.abc import Awaitable
from typing import Self

from starlette.types import Message, Receive, Send

from session_server.calls.requesters import Requester

NOTHING: Message = {"type": "http.response.body", "body": b"", "more_body": True}


class WatchedResponse:
    """Wraps `receive` and `send` of one request while the block runs."""

    def __init__(self, requester: Requester, receive: Receive, send: Send) -> None:
        self._requester = requester
        self._receive = receive
        self._send = send
        self._has_left = asyncio.Event()
        self._is_written = False
        self._listening: asyncio.Task[None] | None = None
        self._working: asyncio.Task[object] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._requester.ended(is_written=self._is_written)
        if self._listening is not None:
            self._listening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._listening

    def listen(self) -> None:
        """Once the request was read: from then on, only its disconnect can come."""
        if self._listening is None:
            self._listening = asyncio.get_running_loop().create_task(self._listen())

    async def unless_disconnected(self, work: Awaitable[None]) -> None:
        """Until the work is done. It is cancelled when the client disconnects."""
        self._working = working = asyncio.current_task()
        try:
            await work
        except asyncio.CancelledError:
            assert working is not None
            if not self._has_left.is_set() or working.uncancel():
                raise
        finally:
            self._working = None

    async def receive(self) -> Message:
        if self._listening is not None:
            await self._has_left.wait()
            return {"type": "http.disconnect"}
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self._disconnected()
        elif not message.get("more_body", False):
            self.listen()
        return message

    async def send(self, message: Message) -> None:
        if not message.get("body") or not self._requester.is_owed:
            await self._send(message)
            return
        self._is_written = False  # a piece that is broken off was not written
        await self._send({**message, "more_body": True})
        await self._send(NOTHING)  # returns when everything before it was written to the connection
        self._is_written = not self._has_left.is_set()
        if not message.get("more_body", False):
            await self._send({**message, "body": b""})

    async def _listen(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._disconnected()

    def _disconnected(self) -> None:
        self._has_left.set()
        self._requester.disconnected()
        if self._working is not None:
            self._working.cancel()
