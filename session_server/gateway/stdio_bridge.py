"""A gateway for clients that start their servers as processes: from stdin to HTTP, and back.

Messages are carried as they are. When the host restarts, the bridge waits for it and goes on; what
was under way is answered with an error, and asked again it is the same call.
"""

import contextlib
from collections.abc import Mapping
from typing import Any

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client
from mcp.server.stdio import stdio_server
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp.shared.message import ClientMessageMetadata, SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    INVALID_REQUEST,
    PARSE_ERROR,
    PROTOCOL_VERSION_META_KEY,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from pydantic import ValidationError

from session_server.backoff import Backoff
from session_server.mcp_client.sdk import SESSION_GONE
from session_server.schemas.errors import SessionServerError
from session_server.schemas.limits import MCP_BODY_BYTES

CONNECT_SECONDS = 30.0
LAST_SECONDS = 2.0
PAUSE_SECONDS = 0.02
LOOK_AGAIN = (0.1, 5.0)
"""The first and the longest pause between two looks whether the host is back, in seconds."""

PATIENCE_SECONDS = 600.0
"""How long a host that went away is waited for."""

EVENT_BYTES = 16 * 1_048_576
TOO_LARGE = f"The message is larger than {MCP_BODY_BYTES} bytes."
LOST = "The connection to the host was lost. Ask again: what was under way goes on there."
REPEATED_INITIALIZE = "session-server:initialize"
INITIALIZED = JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized")


class ConnectionLostError(SessionServerError):
    """The stream of an answer broke off: the host went away, or something between."""

    code = "connectionLost"
    can_retry = True


class SessionGoneError(SessionServerError):
    """The host has restarted: initialize again, and then repeat what it did not take."""

    code = "mcpSessionGone"
    can_retry = True


class Bridge:
    def __init__(self, url: str, ready_url: str, headers: Mapping[str, str]) -> None:
        self._url = url
        self._ready_url = ready_url
        self._headers = dict(headers)
        self._pending: dict[Any, JSONRPCRequest] = {}
        self._again: list[JSONRPCRequest] = []
        self._initialize: JSONRPCRequest | None = None
        self._version: str | None = None
        self._is_abandoned = False
        self._tool_headers: dict[str, dict[tuple[str, ...], str]] = {}

    async def run(self) -> bool:
        """Until the client closes its end; false if the host went away and did not come back."""
        async with stdio_server() as (lines, out), out:
            while not self._is_abandoned:
                try:
                    await self._connected(lines, out)
                except* httpx2.ConnectError:
                    self._again += self._pending.values()  # they never left
                    await self._until_ready()
                except* (httpx2.TransportError, ConnectionLostError):
                    await self._lost(out)
                except* SessionGoneError:
                    pass
                else:
                    return True
        return False

    async def _connected(self, lines: Any, out: Any) -> None:
        timeout = httpx2.Timeout(CONNECT_SECONDS, read=None)
        async with (
            httpx2.AsyncClient(headers=self._headers, timeout=timeout) as http,
            streamable_http_client(self._url, http_client=http, max_sse_event_size=EVENT_BYTES) as (
                answers,
                requests,
            ),
            anyio.create_task_group() as tasks,
        ):
            await self._initialize_again(answers, requests)
            tasks.start_soon(self._bring_back, answers, out)
            async for item in lines:
                if not isinstance(item, SessionMessage):
                    await out.send(_invalid_line(item))
                elif _is_too_large(item.message):
                    message = item.message
                    request_id = message.id if isinstance(message, JSONRPCRequest) else None
                    await out.send(_error(request_id, INVALID_REQUEST, TOO_LARGE))
                else:
                    await self._pass_on(item.message, requests)
            await self._answered_soon()
            tasks.cancel_scope.cancel()

    async def _answered_soon(self) -> None:
        """A client that closes stdin right after a request may still read what comes at once."""
        with anyio.move_on_after(LAST_SECONDS):
            while self._pending:  # noqa: ASYNC110 - for two seconds at most, at the very end
                await anyio.sleep(PAUSE_SECONDS)
            await anyio.sleep(PAUSE_SECONDS)  # the last of them is being written

    async def _initialize_again(self, answers: Any, requests: Any) -> None:
        """A 2025-era client initializes once; for a host that has restarted, this repeats it."""
        again, self._again = self._again, []
        if self._initialize is not None and self._version is not None:
            repeated = self._initialize.model_copy(update={"id": REPEATED_INITIALIZE})
            await requests.send(SessionMessage(repeated))
            async for item in answers:
                if getattr(getattr(item, "message", None), "id", None) == REPEATED_INITIALIZE:
                    break
            await requests.send(self._stamped(INITIALIZED))
        for request in again:
            await self._pass_on(request, requests)

    async def _pass_on(self, message: Any, requests: Any) -> None:
        if isinstance(message, JSONRPCRequest):
            self._pending[message.id] = message
            if message.method == "initialize":
                self._initialize, self._version = message, None
        await requests.send(self._stamped(message))

    async def _bring_back(self, answers: Any, out: Any) -> None:
        async for item in answers:
            if isinstance(item, SessionMessage):
                self._look_at(item.message)
                await out.send(item)

    def _look_at(self, message: Any) -> None:
        if not isinstance(message, JSONRPCResponse | JSONRPCError):
            return
        if isinstance(message, JSONRPCError) and message.error.code == CONNECTION_CLOSED:
            raise ConnectionLostError  # what comes next waits until the host is back
        request = self._pending.pop(message.id, None)
        if request is None:
            return
        if isinstance(message, JSONRPCError):
            if message.error.message == SESSION_GONE and self._initialize is not None:
                self._again.append(request)
                raise SessionGoneError
        elif request.method == "initialize":
            self._version = message.result.get("protocolVersion")
        elif request.method == "tools/list":
            self._learn(message.result.get("tools") or [])

    def _learn(self, tools: list[dict[str, Any]]) -> None:
        """Which arguments a tool wants in headers as well, which stdin does not have."""
        for tool in tools:
            schema = tool.get("inputSchema")
            if find_invalid_x_mcp_header(schema) is None:
                self._tool_headers[tool["name"]] = x_mcp_header_map(schema)

    def _stamped(self, message: Any) -> SessionMessage:
        params: dict[str, Any] = getattr(message, "params", None) or {}
        meta = params.get("_meta")
        version = meta.get(PROTOCOL_VERSION_META_KEY) if isinstance(meta, dict) else None
        if version is None:
            known = {} if self._version is None else {MCP_PROTOCOL_VERSION_HEADER: self._version}
            return SessionMessage(message, ClientMessageMetadata(headers=known or None))
        headers = {MCP_PROTOCOL_VERSION_HEADER: version, MCP_METHOD_HEADER: message.method}
        name = params.get(NAME_BEARING_METHODS.get(message.method, ""))
        if isinstance(name, str):
            headers[MCP_NAME_HEADER] = encode_header_value(name)
            known_headers = self._tool_headers.get(name, {})
            headers |= mcp_param_headers(known_headers, params.get("arguments") or {})
        return SessionMessage(message, ClientMessageMetadata(headers=headers))

    async def _lost(self, out: Any) -> None:
        pending, self._pending = self._pending, {}
        for request_id in pending:
            await out.send(_error(request_id, CONNECTION_CLOSED, LOST))
        await self._until_ready()

    async def _until_ready(self) -> None:
        backoff = Backoff(*LOOK_AGAIN)
        with anyio.move_on_after(PATIENCE_SECONDS):
            async with httpx2.AsyncClient(timeout=CONNECT_SECONDS) as http:
                while True:
                    with contextlib.suppress(httpx2.TransportError):
                        if (await http.get(self._ready_url)).is_success:
                            return
                    await backoff.sleep()
        self._is_abandoned = True


def _error(request_id: Any, code: int, message: str) -> SessionMessage:
    error = ErrorData(code=code, message=message)
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request_id, error=error))


def _invalid_line(error: Exception) -> SessionMessage:
    """A line that is no message belongs to no request, as far as anyone can tell."""
    kinds = {one["type"] for one in error.errors()} if isinstance(error, ValidationError) else set()
    if "json_invalid" in kinds:
        return _error(None, PARSE_ERROR, "Parse error: this line is not JSON.")
    return _error(None, INVALID_REQUEST, "This line is not a JSON-RPC message.")


def _is_too_large(message: Any) -> bool:
    """As the host will have it, which takes no more."""
    written: str = message.model_dump_json(by_alias=True, exclude_unset=True)
    return len(written.encode()) > MCP_BODY_BYTES
