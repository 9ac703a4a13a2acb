"""Requests of 2026-era clients: each is a POST, and its response is all that follows.

What a request may be and what is done with it is up to the SDK: its checks and its dispatch are
used. Its transport, with streams and a task group for each request, costs a sixth of a call that
asks nothing; so it gets only what fails a check, for it knows how to refuse that, and `listen`.
"""

import asyncio
import contextlib
import json
from collections import deque
from collections.abc import Generator, Mapping
from typing import Any

import anyio
from mcp.server import Server
from mcp.server.connection import Connection
from mcp.server.runner import ServerRunner, modern_error_data
from mcp.server.streamable_http import check_accept_headers
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    InboundModernRoute,
    classify_inbound_request,
    find_duplicated_routing_header,
    validate_mcp_param_headers,
)
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import RequestId
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from session_server.mcp_client.sdk import plain
from session_server.schemas.limits import MCP_BODY_BYTES
from session_server.watched_response import WatchedResponse

LISTEN = "subscriptions/listen"
PING = b": ping\r\n\r\n"
PING_SECONDS = 15.0
"""A response that takes longer is a stream, with signs of life for proxies that close idle ones."""

JSON = "application/json"
_encode = json.JSONEncoder(separators=(",", ":")).encode
EVENT_STREAM = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"connection", b"keep-alive"),
    (b"x-accel-buffering", b"no"),
]


async def respond_to_plain(
    server: Server[Any], scope: Scope, response: WatchedResponse
) -> Receive | None:
    """To one that passes all checks. Any other can be received from what is returned."""
    request = Request(scope)
    headers = request.headers.items()
    # Checks that need only the headers are made before the body is awaited; most clients send it a
    # moment later.
    if not _is_acceptable(request) or find_duplicated_routing_header(headers) is not None:
        return response.receive
    header_of = dict(headers)
    received: deque[Message] = deque()
    while not received or received[-1].get("more_body"):
        received.append(await response.receive())
    body = b"".join([one.get("body", b"") for one in received])
    accepted = _accepted(server, request, header_of, body)
    if accepted is not None:
        await response.unless_disconnected(accepted.respond(server, response.send))
        return None

    async def receive() -> Message:
        return received.popleft() if received else await response.receive()

    return receive


def _is_acceptable(request: Request) -> bool:
    """JSON of a known size, from a client that takes either kind of response."""
    size = request.headers.get("content-length", "")
    return (
        request.method == "POST"
        and size.isdecimal()
        and int(size) <= MCP_BODY_BYTES
        and request.headers.get("content-type", "").lower().startswith(JSON)
        and check_accept_headers(request) == (True, True)
    )


def _accepted(
    server: Server[Any], request: Request, headers: Mapping[str, str], body: bytes
) -> "ModernRequest | None":
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return None
    match message:
        case {"jsonrpc": "2.0", "id": str() | int() as name, "method": str(), "params": dict()}:
            if isinstance(name, bool) or message["method"] == LISTEN:
                return None
        case _:
            return None
    route = classify_inbound_request(message, headers=headers)
    if not isinstance(route, InboundModernRoute):
        return None
    if message["method"] == "tools/call" and not _has_its_headers(server, request, message):
        return None
    return ModernRequest(request, message, route)


def _has_its_headers(server: Server[Any], request: Request, message: dict[str, Any]) -> bool:
    """Whether the headers hold the arguments that the tool wants in headers."""
    find_schema = server.get_tool_input_schema
    match message["params"]:
        case {"name": str() as tool, **rest} if find_schema is not None:
            schema, arguments = find_schema(tool), rest.get("arguments") or {}
            if schema is None:
                return True
            if not isinstance(arguments, dict):
                return False
            return validate_mcp_param_headers(schema, arguments, request.headers) is None
        case _:
            return False


class ModernRequest:
    """One request, as the SDK's dispatch knows it (a `DispatchContext`), and its response.

    That is JSON, or an event stream if anything is sent before the result.
    """

    can_send_request = False

    def __init__(
        self, request: Request, message: dict[str, Any], route: InboundModernRoute
    ) -> None:
        self.request_id: RequestId = message["id"]
        self.message_metadata = ServerMessageMetadata(request_context=request)
        self.transport = TransportContext(
            kind="streamable-http", can_send_request=False, headers=request.headers
        )
        self._method: str = message["method"]
        self._params: dict[str, Any] = message["params"]
        self._connection = Connection.from_envelope(
            route.protocol_version, route.client_info, route.client_capabilities
        )
        self._writing = asyncio.Lock()
        self._is_stream = False
        self._has_responded = False

    @property
    def cancel_requested(self) -> anyio.Event:
        """Never set: in this revision a client cancels by closing the connection."""
        return anyio.Event()

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        del params, opts
        raise NoBackChannelError(method)

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        del opts
        notification: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            notification["params"] = dict(params)
        await self._stream(_event(notification))

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        token = progress_token_from_params(self._params)
        if token is None:
            return
        known = {"progressToken": token, "progress": progress, "total": total, "message": message}
        params = {name: value for name, value in known.items() if value is not None}
        await self.notify("notifications/progress", params)

    async def respond(self, server: Server[Any], send: Send) -> None:
        self._send = send
        with self._kept_alive() as stop_pings:
            status, message = await self._dispatch(server)
            async with self._writing:  # what is being sent is not broken off
                stop_pings()
                self._has_responded = True
                if self._is_stream:
                    await self._send_body(_event(message))
                else:
                    body = _encoded(message)
                    size = str(len(body)).encode()
                    headers = [(b"content-length", size), (b"content-type", JSON.encode())]
                    await self._send_start(status, headers)
                    await self._send_body(body)

    async def _dispatch(self, server: Server[Any]) -> tuple[int, dict[str, Any]]:
        named = {"jsonrpc": "2.0", "id": self.request_id}
        dispatch = ServerRunner(server, self._connection, {}).on_request
        try:
            result = await dispatch(self, self._method, self._params)
        except Exception as error:  # noqa: BLE001 - the SDK logs what it has no code for
            data = modern_error_data(error)
            return ERROR_CODE_HTTP_STATUS.get(data.code, 200), {**named, "error": plain(data)}
        return 200, {**named, "result": result}

    async def _stream(self, event: bytes) -> None:
        async with self._writing:
            if self._has_responded:
                return
            if not self._is_stream:
                await self._send_start(200, EVENT_STREAM)
                self._is_stream = True
            await self._send_body(event, more=True)

    async def _send_start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        await self._send({"type": "http.response.start", "status": status, "headers": headers})

    async def _send_body(self, body: bytes, *, more: bool = False) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": more})

    @contextlib.contextmanager
    def _kept_alive(self) -> Generator[Any]:
        """Pings while the block runs, or until what it is given is called."""
        loop = asyncio.get_running_loop()
        pinging: asyncio.Task[None] | None = None

        async def ping() -> None:
            while True:
                await self._stream(PING)
                await asyncio.sleep(PING_SECONDS)

        def begin() -> None:
            nonlocal pinging
            pinging = loop.create_task(ping())

        def stop() -> None:
            timer.cancel()
            if pinging is not None:
                pinging.cancel()

        timer = loop.call_later(PING_SECONDS, begin)
        try:
            yield stop
        finally:
            stop()


def _encoded(message: dict[str, Any]) -> bytes:
    return _encode(message).encode()


def _event(message: dict[str, Any]) -> bytes:
    return b"event: message\r\ndata: " + _encoded(message) + b"\r\n\r\n"
