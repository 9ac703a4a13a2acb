"""The way to one MCP server: its process or its URL, as a transport that the SDK can use.

It notices when the other side ends, and passes the failpoints of every message of a call.
"""

import contextlib
import functools
import socket
import ssl
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any

import httpx2
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCRequest, JSONRPCResponse

from session_server.calls.config import ServerConfig
from session_server.calls.failpoints import hit
from session_server.calls.streams import Incoming, Outgoing, Streams
from session_server.calls.troubles import Heard

METHODS = ("tools/call", "prompts/get", "resources/read", "elicitation/create")
CONNECT_SECONDS = 30.0

# A person may take hours while a response is awaited, so there is no read timeout; that the other
# side is gone is noticed by the kernel instead.
TIMEOUT = httpx2.Timeout(CONNECT_SECONDS, read=None)
KEEP_ALIVE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), seconds)
        for name, seconds in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 20), ("TCP_KEEPCNT", 3))
        if hasattr(socket, name)
    ),
]


@contextlib.asynccontextmanager
async def transport(
    config: ServerConfig, ended: Callable[[], None], answered: Callable[[Heard], None]
) -> AsyncGenerator[Streams]:
    """Streams to the server; `ended` is called when nothing more can come from it.

    `answered` is told how it answers over HTTP.
    """
    async with _plain(config, answered) as (read, write):
        watch = _Watch()
        yield _Incoming(read, watch, ended), _Outgoing(write, watch)


def _plain(
    config: ServerConfig, answered: Callable[[Heard], None]
) -> AbstractAsyncContextManager[Streams]:
    if config.url is not None:
        return _http(config.url, config, answered)
    assert config.command is not None  # the configuration has one of the two
    process = StdioServerParameters(
        command=config.command, args=list(config.args), env=config.env, cwd=config.cwd
    )
    return stdio_client(process, sys.__stderr__ or sys.stderr)


@contextlib.asynccontextmanager
async def _http(
    url: str, config: ServerConfig, answered: Callable[[Heard], None]
) -> AsyncGenerator[Streams]:
    async def noted(response: httpx2.Response) -> None:
        if response.request.method == "POST":
            answered(Heard.of(response))

    way = httpx2.AsyncHTTPTransport(verify=certificates(), socket_options=KEEP_ALIVE)
    client = httpx2.AsyncClient(
        headers=config.headers, timeout=TIMEOUT, transport=way, event_hooks={"response": [noted]}
    )
    async with (
        client as http,
        streamable_http_client(url, http_client=http) as streams,
    ):
        yield streams


@functools.cache
def certificates() -> ssl.SSLContext:
    """Read once: it takes longer than a request does."""
    return httpx2.create_ssl_context()


class _Watch:
    """Which messages belong to calls: the failpoints are for these."""

    def __init__(self) -> None:
        self._asked: set[Any] = set()
        self._answering: set[Any] = set()

    def is_outgoing(self, item: SessionMessage) -> bool:
        message = item.message
        if isinstance(message, JSONRPCRequest) and message.method in METHODS:
            self._asked.add(message.id)
            return True
        return self._is_answer(message, self._answering)

    def is_incoming(self, item: SessionMessage | Exception) -> bool:
        message = item.message if isinstance(item, SessionMessage) else None
        if isinstance(message, JSONRPCRequest) and message.method in METHODS:
            self._answering.add(message.id)
            return True
        return self._is_answer(message, self._asked)

    def _is_answer(self, message: Any, to: set[Any]) -> bool:
        if not isinstance(message, JSONRPCResponse | JSONRPCError) or message.id not in to:
            return False
        to.discard(message.id)
        return True


class _Incoming(Incoming):
    """Tells when it ends."""

    def __init__(self, stream: Any, watch: _Watch, ended: Callable[[], None]) -> None:
        super().__init__(stream)
        self._watch = watch
        self._ended = ended

    async def __anext__(self) -> Any:
        try:
            return await super().__anext__()
        except StopAsyncIteration:
            self._ended()
            raise

    def changed(self, item: Any) -> Any:
        if self._watch.is_incoming(item):
            hit("mcp.receive")
        return item

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        self._ended()
        return await super().__aexit__(kind, error, trace)


class _Outgoing(Outgoing):
    def __init__(self, stream: Any, watch: _Watch) -> None:
        super().__init__(stream)
        self._watch = watch

    async def send(self, item: SessionMessage, /) -> None:
        is_told = self._watch.is_outgoing(item)
        if is_told:
            hit("mcp.send")
        await super().send(item)
        if is_told:
            hit("mcp.sent")
