"""One MCP server of ours over streamable HTTP, in both eras, for as long as the host runs.

No principal can take what is there for all: each has so many requests in flight and, in the 2025
era, so many sessions. A session ends when nobody uses it, and with the credential that opened it.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Generator
from typing import Any

from mcp.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.types import Message, Receive, Scope, Send

from session_server.gateway.mcp_callers import (
    introduce,
    introduce_to_sdk,
    principal_in,
    requester_in,
)
from session_server.gateway.mcp_errors import refusal
from session_server.gateway.modern_requests import respond_to_plain
from session_server.host.host import Host
from session_server.mcp_client.connections.pool import counted
from session_server.schemas.limits import (
    MCP_BODY_BYTES,
    MCP_REQUESTS_PER_PRINCIPAL,
    MCP_SESSION_IDLE_SECONDS,
    MCP_SESSIONS,
    MCP_SESSIONS_PER_PRINCIPAL,
)
from session_server.schemas.principals import Principal
from session_server.watched_response import WatchedResponse

SESSION_ID, VERSION = "mcp-session-id", "mcp-protocol-version"
LAST_RESPONSES_SECONDS = 1.0
"""What is being held is answered in this time when the host stops."""

UNKNOWN_SESSION = "Session not found"
TOO_MANY_REQUESTS = (
    f"You have {MCP_REQUESTS_PER_PRINCIPAL} requests in flight here; wait until some are answered."
)
TOO_MANY_SESSIONS = (
    f"You have {MCP_SESSIONS_PER_PRINCIPAL} sessions here that are all in use;"
    " end some with DELETE and try again."
)


class ClientSession:
    """A session of a 2025-era client; `in_use` counts its requests and open streams."""

    def __init__(
        self, session_id: str, principal: Principal, end: Callable[["ClientSession"], None]
    ) -> None:
        self.id = session_id
        self.principal = principal
        self.in_use = 0
        self.idle_since = 0.0
        self.closed_with: int | None = None
        self._end = end
        self._timer: asyncio.TimerHandle | None = None
        self._is_over = False

    @contextlib.contextmanager
    def used(self) -> Generator[None]:
        self.in_use += 1
        self._stop_timer()
        try:
            yield
        finally:
            self.in_use -= 1
            if not self.in_use and not self._is_over:
                loop = asyncio.get_running_loop()
                self.idle_since = loop.time()
                self._timer = loop.call_later(MCP_SESSION_IDLE_SECONDS, self._end, self)

    def ended(self) -> None:
        self._is_over = True
        self._stop_timer()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def close(self, code: int, reason: str) -> None:
        """Its credential has expired or was revoked."""
        del reason
        self.closed_with = code
        self._end(self)


class ClientSessions:
    """By id. A principal with too many loses its session that was idle for longest."""

    def __init__(self, host: Host, end: Callable[[ClientSession], None]) -> None:
        self._host = host
        self._end = end
        self._by_id: dict[str, ClientSession] = {}
        self.opening: Counter[str] = Counter()

    def of(self, session_id: str, principal: Principal) -> ClientSession | None:
        """Nobody else's use keeps a session from ending."""
        found = self._by_id.get(session_id)
        return found if found is not None and found.principal.id == principal.id else None

    def make_room(self, principal: Principal) -> bool:
        own = [one for one in self._by_id.values() if one.principal.id == principal.id]
        if len(own) + self.opening[principal.id] < MCP_SESSIONS_PER_PRINCIPAL:
            return True
        idle = [one for one in own if not one.in_use]
        if idle:
            self._end(min(idle, key=lambda one: one.idle_since))
        return bool(idle)

    def opened(self, session_id: str, principal: Principal) -> ClientSession:
        session = self._by_id[session_id] = ClientSession(session_id, principal, self._end)
        self._host.connections.bind(principal, session)
        return session

    def forget(self, session_id: str) -> None:
        session = self._by_id.pop(session_id, None)
        if session is not None:
            session.ended()
            self._host.connections.release(session.principal, session)

    def close(self) -> None:
        for session_id in tuple(self._by_id):
            self.forget(session_id)


class ServerApp:
    """The SDK's scopes are entered and left by one task, which ends with the host."""

    def __init__(
        self,
        host: Host,
        server: Server[Any],
        over: asyncio.Event,
        on_stop: Callable[[], None] | None = None,
    ) -> None:
        self._host = host
        self._server = server
        self._over = over
        self._on_stop = on_stop
        self._in_flight: Counter[str] = Counter()
        self._sessions = ClientSessions(host, self._end)
        self._manager = StreamableHTTPSessionManager(
            app=server,
            session_idle_timeout=None,  # ours, which knows whose a session is
            max_sessions=MCP_SESSIONS,
            max_request_body_size=MCP_BODY_BYTES,
        )
        self._ready = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        principal = principal_in(scope)
        # RFC 9110, 5.5: white space around a value does not belong to it.
        scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        if self._in_flight[principal.id] >= MCP_REQUESTS_PER_PRINCIPAL:
            await refusal(429, INTERNAL_ERROR, TOO_MANY_REQUESTS)(scope, receive, send)
            return
        with counted(self._in_flight, principal.id):
            await self._route(principal, scope, receive, send)

    async def _route(
        self, principal: Principal, scope: Scope, receive: Receive, send: Send
    ) -> None:
        headers = Headers(scope=scope)
        named, version = headers.get(SESSION_ID), headers.get(VERSION)
        # A revision that nobody knows too: the SDK refuses it there, and no session is opened.
        needs_session = version is None or version in HANDSHAKE_PROTOCOL_VERSIONS
        session = (
            None if not needs_session or named is None else self._sessions.of(named, principal)
        )
        if session is not None:
            with session.used():
                await self._handle(scope, receive, send)
            if scope["method"] == "DELETE":
                self._sessions.forget(session.id)
        elif not needs_session:
            async with WatchedResponse(requester_in(scope), receive, send) as response:
                unread = await respond_to_plain(self._server, scope, response)
                if unread is not None:
                    await self._leave_to_sdk(scope, unread, response.send)
        elif named is not None:
            await refusal(404, INVALID_REQUEST, UNKNOWN_SESSION)(scope, receive, send)
        elif self._sessions.make_room(principal):
            await self._open(principal, scope, receive, send)
        else:
            await refusal(503, INTERNAL_ERROR, TOO_MANY_SESSIONS)(scope, receive, send)

    async def _open(self, principal: Principal, scope: Scope, receive: Receive, send: Send) -> None:
        """A request that may open a session, and has if its answer names one."""
        with contextlib.ExitStack() as stack:
            opening = stack.enter_context(contextlib.ExitStack())
            opening.enter_context(counted(self._sessions.opening, principal.id))

            async def noting(message: Message) -> None:
                if message["type"] == "http.response.start" and message["status"] < 400:
                    given = Headers(raw=list(message["headers"])).get(SESSION_ID)
                    if given is not None:
                        opening.close()
                        session = self._sessions.opened(given, principal)
                        stack.enter_context(session.used())
                await send(message)

            await self._handle(scope, receive, noting)

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with WatchedResponse(requester_in(scope), receive, send) as response:
            await self._leave_to_sdk(scope, response.receive, response.send)

    async def _leave_to_sdk(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._task is None:
            self._task = self._host.spawn(self._run())
        await self._ready.wait()
        introduce_to_sdk(scope)
        await self._manager.handle_request(scope, receive, send)

    def _end(self, session: ClientSession) -> None:
        self._sessions.forget(session.id)
        self._host.spawn(self._deleted(session))

    async def _deleted(self, session: ClientSession) -> None:
        """As its own client would end it."""
        headers = [(SESSION_ID.encode(), session.id.encode())]
        scope = {"type": "http", "method": "DELETE", "path": "/", "headers": headers}
        introduce(scope, session.principal)
        introduce_to_sdk(scope)

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Message) -> None:
            del message

        await self._manager.handle_request(scope, receive, send)

    async def _run(self) -> None:
        async with self._manager.run():
            self._ready.set()
            await self._over.wait()
            if self._on_stop is not None:
                self._on_stop()
            await asyncio.sleep(LAST_RESPONSES_SECONDS)
            self._sessions.close()  # and streams that are only listened to end
