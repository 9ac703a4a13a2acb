"""HTTP/1.1 connections to one server, kept open from one request to the next.

`http_link` sends MCP requests over them. httpx2, which the SDK uses, takes longer for a request
than all other work on a call together; here a request is one write, and its answer is parsed by
httptools. There are no redirects, cookies or proxies.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping

import httptools
import httpx2

from session_server.mcp_client.connections.transports import (
    CONNECT_SECONDS,
    KEEP_ALIVE,
    certificates,
)
from session_server.mcp_client.failpoints import hit

KEPT_SECONDS = 1.0
"""How long an idle connection is used again. Servers close theirs after several seconds: a request
that meets the end of its connection may have run, and people would have to be asked about it."""

KEPT_CONNECTIONS = 32
HEAD_BYTES = 102_400
HELD_BYTES = 1_048_576
"""When so much waits to be taken, nothing more is read."""

REST_BYTES, REST_SECONDS = 65_536, 5.0
"""What may follow an answer that was taken, before its connection is closed."""


class HttpConnection(asyncio.Protocol):
    """One request at a time; `released` is told when another one can be sent."""

    def __init__(self, released: Callable[["HttpConnection"], None]) -> None:
        self.idle: asyncio.TimerHandle | None = None
        self._released = released
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._news = asyncio.Event()
        self._error: Exception | None = None
        self._begin()

    def _begin(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self._pieces: deque[bytes] = deque()
        self._held = 0
        self._unparsed = 0
        self._is_asked = False
        self._has_head = False
        self._is_complete = False
        self._is_taken = False
        self._can_keep = False
        self.is_paused = False

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    # Requests

    def send(self, data: bytes) -> None:
        assert self._transport is not None
        self._is_asked = True
        self._transport.write(data)

    async def head(self) -> None:
        """Returns when `status` and `headers` are those of the answer."""
        while not self._has_head:
            await self._wait()

    async def piece(self) -> bytes | None:
        """The next part of the body; nothing when it has ended."""
        while not self._pieces:
            if self._is_complete:
                return None
            await self._wait()
        piece = self._pieces.popleft()
        self._held -= len(piece)
        if self.is_paused and self._held <= HELD_BYTES and self._transport is not None:
            self.is_paused = False
            self._transport.resume_reading()
        return piece

    def finish(self) -> None:
        """Nobody takes more of the answer; the connection is kept if no more than its end comes."""
        self._is_taken = True
        if self._is_complete:
            self._release()
        elif self._has_head and self._transport is not None:
            self._pieces.clear()
            self._held = 0
            if self.is_paused:
                self._transport.resume_reading()
            self.idle = asyncio.get_running_loop().call_later(REST_SECONDS, self.close)
        else:
            self.close()

    def close(self) -> None:
        """For a request under way this is the signal that it is cancelled."""
        if self._transport is not None:
            self._transport.abort()

    async def _wait(self) -> None:
        if self._error is not None:
            raise self._error
        self._news.clear()
        await self._news.wait()

    def stop_timer(self) -> None:
        if self.idle is not None:
            self.idle.cancel()
            self.idle = None

    def _release(self) -> None:
        self.stop_timer()
        if self.is_open and self._can_keep:
            self._begin()
            self._released(self)
        else:
            self.close()

    def _fail(self, error: Exception) -> None:
        self._error = self._error or error
        self._news.set()
        self.close()

    # For the event loop

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        connection = transport.get_extra_info("socket")
        for option in KEEP_ALIVE:
            connection.setsockopt(*option)

    def data_received(self, data: bytes) -> None:
        if not self._is_asked:
            self.close()  # a response without a request
            return
        self._unparsed += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._fail(httpx2.RemoteProtocolError("not HTTP"))
        if not self._has_head and self._unparsed > HEAD_BYTES:
            self._fail(httpx2.RemoteProtocolError("response headers are too large"))
        if self._held > HELD_BYTES and not self.is_paused and self._transport is not None:
            self.is_paused = True
            self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self.stop_timer()
        ends_body = self._has_head and not self.headers.keys() & _LENGTHS
        if ends_body and exc is None and self._error is None:
            self._is_complete = True
        self._error = self._error or httpx2.ReadError("the connection ended")
        self._transport = None
        self._news.set()

    # For the parser

    def on_message_begin(self) -> None:
        if self._is_complete:
            raise ValueError("unexpected response")

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.decode("latin-1").lower()] = value.decode("latin-1").strip()

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        if self.status < 200:
            self.headers.clear()
            return
        self._has_head = True
        self._news.set()

    def on_body(self, body: bytes) -> None:
        self._held += len(body)
        if not self._is_taken:
            self._pieces.append(body)
            self._news.set()
        elif self._held > REST_BYTES:
            self.close()

    def on_message_complete(self) -> None:
        if self._has_head:
            self._is_complete = True
            self._can_keep = self._parser.should_keep_alive()
            self._news.set()
            if self._is_taken:
                asyncio.get_running_loop().call_soon(self._release)


_LENGTHS = {"content-length", "transfer-encoding"}


class HttpConnections:
    """Those to one address, with headers that every request has."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        address = httpx2.URL(url)
        built = httpx2.Request("POST", address, headers=headers)
        self._head = b"POST %s HTTP/1.1\r\n" % address.raw_path + b"".join(
            b"%s: %s\r\n" % pair for pair in built.headers.raw if pair[0].lower() not in _OWN
        )
        self._host = address.raw_host.decode("ascii").strip("[]")
        self._is_secure = address.scheme == "https"
        self._port = address.port or (443 if self._is_secure else 80)
        self.idle: list[HttpConnection] = []

    @contextlib.asynccontextmanager
    async def posting(
        self, body: bytes, headers: Mapping[str, str]
    ) -> AsyncGenerator[HttpConnection]:
        """A connection on which this was sent, once the head of its answer has come.

        A block that is left by an exception cancels the request.
        """
        data = self._request(body, headers)
        connection = self._idle_connection() or await self._open()
        try:
            connection.send(data)
            hit("mcp.sent")
            await connection.head()
            yield connection
        except BaseException:
            connection.close()
            raise
        connection.finish()

    def close(self) -> None:
        for connection in self.idle:
            connection.close()
        self.idle.clear()

    def _request(self, body: bytes, headers: Mapping[str, str]) -> bytes:
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        ends = {lines.count("\r"), lines.count("\n")}
        # One line break for each header; any other would be a header that nobody meant.
        if "\0" in lines or ends != {len(headers)}:
            raise httpx2.LocalProtocolError("not a valid header")
        length = b"content-length: %d\r\n\r\n" % len(body)
        return b"".join((self._head, lines.encode("ascii"), length, body))

    def _idle_connection(self) -> HttpConnection | None:
        while self.idle:
            connection = self.idle.pop()
            connection.stop_timer()
            if connection.is_open:
                return connection
        return None

    def _keep(self, connection: HttpConnection) -> None:
        if len(self.idle) >= KEPT_CONNECTIONS:
            connection.close()
            return
        loop = asyncio.get_running_loop()
        connection.idle = loop.call_later(KEPT_SECONDS, connection.close)
        self.idle = [one for one in self.idle if one.is_open]
        self.idle.append(connection)

    async def _open(self) -> HttpConnection:
        loop = asyncio.get_running_loop()
        secure = certificates() if self._is_secure else None
        if secure is not None:
            secure.set_alpn_protocols(["http/1.1"])
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                _, connection = await loop.create_connection(
                    lambda: HttpConnection(self._keep), self._host, self._port, ssl=secure
                )
        except TimeoutError as error:
            raise httpx2.ConnectTimeout("it did not answer") from error
        except OSError as error:
            raise httpx2.ConnectError("no connection") from error
        return connection


_OWN = (b"content-length", b"transfer-encoding", b"content-type", b"accept")
