"""The transport to one MCP server: its process or its URL, as streams that the SDK can use.

What changes messages on these streams is in `sdk` and `server_credentials`.
"""

import asyncio
import contextlib
import errno
import functools
import logging
import os
import shutil
import socket
import ssl
import sys
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TextIO

import httpx2
from mcp.client.stdio import StdioServerParameters, get_default_environment, stdio_client
from mcp.client.streamable_http import streamable_http_client

from session_server.mcp_client.config import ServerConfig
from session_server.mcp_client.connections.response_limits import EVENT_BYTES, LINES, BoundedHttp
from session_server.mcp_client.failures import HttpResponseInfo
from session_server.mcp_client.sdk import Streams
from session_server.mcp_client.server_credentials import credentials_of
from session_server.reducers.calls.redaction import hidden

logger = logging.getLogger("session_server.mcp")

CONNECT_SECONDS = 30.0
OUTPUT_LINES, OUTPUT_CHARS = 20, 1_000
"""Of what a process writes to its stderr, to say why it ended."""

PARENT_DEATH = Path(__file__).with_name("parent_death.py")

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


class Output(asyncio.Protocol):
    """What a process writes to its stderr: logged at debug level, the last lines kept."""

    def __init__(self, config: ServerConfig) -> None:
        self.lines: deque[str] = deque(maxlen=OUTPUT_LINES)
        self._name = config.name or Path(config.command or "").name
        self._credentials = credentials_of(config)
        self._rest = ""

    def data_received(self, data: bytes) -> None:
        *ended, rest = (self._rest + data.decode("utf-8", "replace")).split("\n")
        self._rest = rest[:OUTPUT_CHARS]
        for line in ended:
            shown = hidden(line[:OUTPUT_CHARS].rstrip(), self._credentials)
            if shown:
                self.lines.append(shown)
                logger.debug("%s: %s", self._name, shown)


def transport(
    config: ServerConfig, answered: Callable[[HttpResponseInfo], None], output: Output
) -> AbstractAsyncContextManager[Streams]:
    """Streams to the server; `answered` gets its responses over HTTP."""
    if config.url is not None:
        return _http(config.url, config, answered)
    assert config.command is not None  # the configuration has one of the two
    return _stdio(config.command, config, output)


@contextlib.asynccontextmanager
async def _stdio(command: str, config: ServerConfig, output: Output) -> AsyncGenerator[Streams]:
    check_command(command, config)
    line = [*supervisor(), command, *config.args]
    process = StdioServerParameters(
        command=line[0], args=line[1:], env=config.env, cwd=config.cwd, encoding=LINES
    )
    async with (
        _collected(output) as errlog,
        stdio_client(process, errlog) as streams,
    ):
        errlog.close()  # the process has its own
        yield streams


@contextlib.asynccontextmanager
async def _collected(output: Output) -> AsyncGenerator[TextIO]:
    """A file for a process to write to, which `output` reads."""
    reading, writing = os.pipe()
    loop = asyncio.get_running_loop()
    pipe, _ = await loop.connect_read_pipe(lambda: output, os.fdopen(reading, "rb", 0))
    try:
        with os.fdopen(writing, "w") as errlog:
            yield errlog
    finally:
        pipe.close()


def supervisor() -> list[str]:
    """What a command is started with, where the system can tell it that the host has ended."""
    if sys.platform != "linux" or not sys.executable:
        return []
    return [sys.executable, "-I", "-S", str(PARENT_DEATH), str(os.getpid())]


def check_command(command: str, config: ServerConfig) -> None:
    """Raises what starting it would: the supervisor's own start always succeeds."""
    path = (get_default_environment() | config.env).get("PATH", os.defpath)
    is_path = Path(command).name != command
    whole = str(Path(config.cwd or "") / command) if is_path else command
    if shutil.which(whole, path=path) is not None:
        return
    if is_path and Path(whole).exists():
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), command)
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), command)


@contextlib.asynccontextmanager
async def _http(
    url: str, config: ServerConfig, answered: Callable[[HttpResponseInfo], None]
) -> AsyncGenerator[Streams]:
    credentials = credentials_of(config)

    async def noted(response: httpx2.Response) -> None:
        if response.request.method == "POST":
            answered(HttpResponseInfo.of(response.status_code, response.headers, credentials))

    transport = BoundedHttp(verify=certificates(), socket_options=KEEP_ALIVE)
    client = httpx2.AsyncClient(
        headers=config.headers,
        timeout=TIMEOUT,
        transport=transport,
        event_hooks={"response": [noted]},
    )
    client.headers["Accept-Encoding"] = "identity"
    async with (
        client as http,
        streamable_http_client(url, http_client=http, max_sse_event_size=EVENT_BYTES) as streams,
    ):
        yield streams


@functools.cache
def certificates() -> ssl.SSLContext:
    """Read once: it takes longer than a request does."""
    return httpx2.create_ssl_context()
