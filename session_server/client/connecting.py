"""The socket under the protocol: connects, reconnects with backoff, feeds and writes."""

import asyncio
import logging
import random
import time
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from ssl import SSLCertVerificationError, SSLContext
from typing import Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from websockets.asyncio.client import ClientConnection
from websockets.asyncio.client import connect as open_socket
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from session_server.backoff import Backoff
from session_server.client.client import Client
from session_server.client.client_protocol import ClientProtocol
from session_server.client.errors import (
    ClientError,
    Closed,
    ConnectionLost,
    GaveUp,
    NotConnected,
)
from session_server.client.http_commands import http_api
from session_server.reducers.version_negotiation import SUPPORTED_VERSIONS
from session_server.schemas.principals import VIA_HEADER, Provenance

FIRST_DELAY = 0.1
LONGEST_DELAY = 10.0
STEADY_SECONDS = 5.0
"""A connection that lasted this long was a good one: the next delay is short again."""

ABNORMAL = 1006
COME_BACK = frozenset({1000, 1001, 1005, ABNORMAL, 1011, 1012, 1013, 1014})
COME_BACK_RANGE = range(4000, 4500)
PASSING_STATUS = frozenset({408, 425, 429})


def final_error(error: Exception) -> GaveUp | None:
    """The error that ends the client, or `None` if reconnecting may help."""
    match error:
        case GaveUp():
            return error
        case ConnectionClosed():
            return _closed(error)
        case InvalidStatus():
            return _turned_away(error.response.status_code)
        case SSLCertVerificationError():
            return GaveUp(f"The host's certificate is not trusted: {error.verify_message}")
        case _:
            return None


def _closed(error: ConnectionClosed) -> GaveUp | None:
    close = error.rcvd or error.sent
    code = ABNORMAL if close is None else close.code
    if code in COME_BACK or code in COME_BACK_RANGE:
        return None
    reason = close.reason if close is not None and close.reason else "no reason given"
    message = f"The host closed the connection; reconnecting does not help ({code}: {reason})."
    return GaveUp(message, close_code=code)


def _turned_away(status: int) -> GaveUp | None:
    if status >= 500 or status in PASSING_STATUS:
        return None
    if status in (401, 403):
        return GaveUp(f"The host does not let us in (HTTP {status}).", status=status)
    return GaveUp(f"There is no AHP at this address (HTTP {status}).", status=status)


logger = logging.getLogger("session_server.client")

HANDSHAKE_SECONDS = 10.0
CLOSING_SECONDS = 2.0
SNAPSHOT_BYTES = 64 * 1024 * 1024
"""The largest accepted frame: a snapshot holds a session's whole history."""

AHP_PATH = "/ahp"
_TOKEN = "tkn="  # noqa: S105
_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}


@asynccontextmanager
async def connect(  # noqa: PLR0913 - each can be left out
    url: str,
    *,
    client_id: str | None = None,
    token: str | None = None,
    name: str | None = None,
    policy: bool = False,
    versions: Sequence[str] = SUPPORTED_VERSIONS,
    timeout: float | None = 10.0,  # noqa: ASYNC109 - of the first connection alone
    ssl: SSLContext | None = None,
) -> AsyncGenerator[Client, None]:
    """A client of the AHP host at `url`, which may be the address of its page.

    Within `async with` the client stays connected: when the connection breaks it comes back by
    itself, resumes where it was and sends what was done meanwhile. The first connection is tried
    for `timeout` seconds (`None`: forever), then `NotConnected` is raised; `GaveUp` means that
    trying again would not help. `token`, or that of a link as it is shared, goes into a bearer
    header. `name` is shown to others next to what this client does, if the token has no
    name. With `policy` everything that this client does is recorded as a policy's and not a
    person's. Of the `versions` of AHP the host chooses one. A `client_id` should be new, or have
    been this program's before, with the same token.
    """
    protocol = ClientProtocol(client_id or uuid.uuid4().hex, _now, name=name, versions=versions)
    headers = headers_of(token or token_in(url), policy=policy)
    line = Line(protocol, endpoint(url), headers, ssl)
    client = Client(protocol, http_api(endpoint(url), headers, ssl))
    running = asyncio.create_task(line.run())
    try:
        try:
            await client.wait_until_live(timeout)
        except TimeoutError:
            why = "" if line.failure is None else f": {line.failure}"
            message = f"No connection to {_without_secrets(url)} within {timeout:g} s{why}"
            raise NotConnected(message) from line.failure
        yield client
        await line.flush()
    finally:
        protocol.close(Closed("The client was closed."))
        running.cancel()
        await asyncio.wait((running,))


def endpoint(url: str) -> str:
    """The WebSocket address of a host: `http://127.0.0.1:8737` is enough.

    An HTTP address may have a path, where the host is mounted; AHP is spoken below it, at `/ahp`. A
    token is left out: addresses are logged on the way. A WebSocket address is used as it is, with
    its token: other hosts may look for it there.
    """
    parts = urlsplit(url)
    if parts.scheme not in _SCHEMES or not parts.netloc:
        shown = _without_secrets(url)
        raise ValueError(f"{shown!r} is not the address of a host, as in http://127.0.0.1:8737.")
    if parts.scheme.startswith("ws"):
        return urlunsplit(parts._replace(fragment=""))
    path = parts.path.rstrip("/")
    if not path.endswith(AHP_PATH):
        path += AHP_PATH
    query = "&".join(part for part in parts.query.split("&") if not part.startswith(_TOKEN))
    return urlunsplit((_SCHEMES[parts.scheme], parts.netloc, path, query, ""))


def token_in(url: str) -> str | None:
    return dict(parse_qsl(urlsplit(url).query)).get(_TOKEN.rstrip("="))


def headers_of(token: str | None, *, policy: bool = False) -> dict[str, str]:
    """The headers that identify a connection."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return headers | {VIA_HEADER: Provenance.POLICY.value} if policy else headers


def _without_secrets(url: str) -> str:
    """Error messages end up in logs; tokens must not."""
    before, _, after = url.partition("?")[0].rpartition("@")
    return f"{before.partition('//')[0]}//{after}" if before else after


class Line:
    """One socket after another, for one protocol."""

    def __init__(
        self, protocol: ClientProtocol, url: str, headers: dict[str, str], ssl: SSLContext | None
    ) -> None:
        self.failure: Exception | None = None
        self._protocol = protocol
        self._url = url
        self._headers = headers
        self._tls: dict[str, Any] = {} if ssl is None else {"ssl": ssl}
        self._output = asyncio.Event()
        self._is_written = asyncio.Event()
        protocol.rpc.on_output = self._has_output

    async def run(self) -> None:
        """Until it is cancelled, or the host says that reconnecting does not help."""
        backoff = Backoff(FIRST_DELAY, LONGEST_DELAY, random.random)
        try:
            while True:
                if await self._connection() >= STEADY_SECONDS:
                    backoff.reset()
                await backoff.sleep()
        except GaveUp as error:
            self._protocol.close(error)
        except Exception as error:
            logger.exception("the connection failed in a way that it should not")
            self._protocol.close(GaveUp(f"The client failed: {error!r}"))

    async def flush(self) -> None:
        """Waits a moment for the last dispatched actions to be sent, if there is a connection."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSING_SECONDS):
                await self._is_written.wait()

    async def _connection(self) -> float:
        """Makes a connection and stays with it; returns for how many seconds it lasted."""
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            async with open_socket(
                self._url,
                additional_headers=self._headers,
                compression=None,
                max_size=SNAPSHOT_BYTES,
                close_timeout=CLOSING_SECONDS,
                **self._tls,
            ) as socket:
                began = clock()
                await self._converse(socket)
        except (OSError, WebSocketException, ClientError) as error:
            self.failure = error
            final = final_error(error)
            if final is not None:
                raise final from error
            logger.info("no connection: %s", error)
        finally:
            self._protocol.disconnected()
            self._is_written.set()
        return clock() - began

    async def _converse(self, socket: ClientConnection) -> None:
        """Reading reports how a connection ends; writing just stops then."""
        self._protocol.connected()
        tasks = (
            asyncio.create_task(self._read(socket)),
            asyncio.create_task(self._write(socket)),
        )
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
        except asyncio.CancelledError:
            await socket.close()
            raise
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _read(self, socket: ClientConnection) -> None:
        try:
            async with asyncio.timeout(HANDSHAKE_SECONDS) as patience:
                while True:
                    self._protocol.receive(await socket.recv(decode=False))
                    if self._protocol.is_live:
                        patience.reschedule(None)
        except TimeoutError:
            raise ConnectionLost("The host did not answer the handshake in time.") from None

    async def _write(self, socket: ClientConnection) -> None:
        with suppress(WebSocketException):
            while True:
                await self._output.wait()
                self._output.clear()
                for frame in self._protocol.rpc.drain():
                    await socket.send(frame, text=True)
                if not self._output.is_set():
                    self._is_written.set()

    def _has_output(self) -> None:
        self._is_written.clear()
        self._output.set()


def _now() -> int:
    return time.time_ns() // 1_000_000
