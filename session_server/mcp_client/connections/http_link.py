"""Requests of revision 2026-07-28 over HTTP: each is a POST, and its answer is all that follows.

The SDK's client would need a connection of its own for each of them, to know which log messages
belong to which. The main connection, which is the SDK's, has found out what there is to know of the
server; this uses it, and gives back what `Link` gives back, with the same errors.
"""

import asyncio
import codecs
import contextlib
import io
import itertools
import uuid
from collections.abc import Mapping
from functools import partial
from typing import Any

import httpx2
from mcp import MCPError
from mcp.shared.dispatcher import CallOptions, ProgressFnT
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    LoggingMessageNotificationParams,
    ProgressNotificationParams,
    RequestId,
)
from pydantic import ValidationError
from pydantic_core import from_json

from session_server import __version__
from session_server.mcp_client.config import MODERN, ServerConfig
from session_server.mcp_client.connections.connection import (
    NO_QUESTIONS,
    Link,
    Logged,
    callbacks_for_one_request,
)
from session_server.mcp_client.connections.http_connections import (
    HttpConnection,
    HttpConnections,
)
from session_server.mcp_client.connections.response_limits import COMPRESSED, EVENT_BYTES, TOO_LARGE
from session_server.mcp_client.failpoints import hit
from session_server.mcp_client.failures import HttpResponseInfo
from session_server.mcp_client.sdk import (
    COMPLETE,
    ERROR_RESPONSE,
    NOT_FOUND,
    UNEXPECTED_TYPE,
    UNPARSED,
    plain,
    stamped,
)
from session_server.mcp_client.server_credentials import credentials_of, hide_in_result
from session_server.reducers.calls.redaction import hidden
from session_server.schemas.codec import encode
from session_server.schemas.limits import RESULT_BYTES

JSON, EVENTS = "application/json", "text/event-stream"
HEADERS = {"accept": f"{JSON}, {EVENTS}", "content-type": JSON}

Message = dict[str, Any]


def _unreadable(reason: str = f"{UNPARSED} the answer") -> MCPError:
    """For what is not a message that can be read."""
    return MCPError(PARSE_ERROR, reason)


class HttpPosts:
    """What the requests to one server have in common. `is_for_sdk`: they take what only it does."""

    def __init__(self, config: ServerConfig) -> None:
        assert config.url is not None
        self.config = config
        self.credentials = credentials_of(config)
        own = {"user-agent": f"session-server/{__version__}"}
        self.connections = HttpConnections(
            config.url, own | config.headers | {"accept-encoding": "identity"}
        )
        self.is_for_sdk = bool(httpx2.URL(config.url).userinfo)
        self._prefix = uuid.uuid4().hex[:12]
        self._numbers = itertools.count(1)

    def new_id(self) -> str:
        """No other request has it: a retry may go out to another process of the server."""
        return f"{self._prefix}-{next(self._numbers)}"


class HttpLink:
    """As a `Link`, for one request at a time. `logged` gets its log messages."""

    is_modern = True

    def __init__(self, posts: HttpPosts, main: Link, logged: Logged | None = None) -> None:
        self.config = posts.config
        self.lost = asyncio.Event()
        self.latest_response: HttpResponseInfo | None = None
        self._posts = posts
        self._main = main
        self._client = main.client
        self._logged = logged

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        progress: ProgressFnT | None = None,
        capabilities: Mapping[str, Any] | None = None,
        request_id: RequestId | None = None,
    ) -> dict[str, Any]:
        del request_id  # for questions on the connection, which this revision does not have
        send = partial(self._request, method, params, progress, capabilities)
        return await self._main.with_new_headers(method, send)

    async def _request(
        self,
        method: str,
        params: Mapping[str, Any],
        progress: ProgressFnT | None,
        capabilities: Mapping[str, Any] | None,
    ) -> dict[str, Any]:
        options = CallOptions()
        if method == "tools/call":
            options["headers"] = self._main.listing.headers_of(params)
        data = stamped(self._client, method, params, options, capabilities)
        request_id = self._posts.new_id()
        if progress is not None:
            data["_meta"]["progressToken"] = request_id
        message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": data}
        hit("mcp.send")
        posting = self._posts.connections.posting
        async with posting(encode(message), HEADERS | options.get("headers", {})) as answer:
            credentials = self._posts.credentials
            info = HttpResponseInfo.of(answer.status, answer.headers, credentials)
            self.latest_response = info
            if not 300 <= info.status < 400 or "location" not in answer.headers:
                result = await self._result(answer, info.content_type, request_id, progress)
                hit("mcp.receive")
                return COMPLETE | result
        self._posts.is_for_sdk = True  # it knows where a redirect may lead to
        link = Link(self.config, callbacks_for_one_request(self.config, self._logged))
        async with link.opened(MODERN, self._main):
            try:
                return await link.request(method, params, progress, capabilities)
            finally:
                self.latest_response = link.latest_response

    # Answers

    async def _result(
        self, answer: HttpConnection, kind: str, request_id: str, progress: ProgressFnT | None
    ) -> dict[str, Any]:
        if answer.status == 202:
            raise MCPError(INVALID_REQUEST, "server answered a request with 202 Accepted")
        if answer.status >= 400:
            raise await self._refusal(answer, kind)
        if kind == JSON:
            return self._taken(_message(await _body(answer)))
        if kind != EVENTS:
            raise MCPError(INVALID_REQUEST, f"{UNEXPECTED_TYPE}{kind}")
        if _is_compressed(answer):
            raise _unreadable(COMPRESSED)
        parser = EventParser()
        while (piece := await answer.piece()) is not None:
            for message in map(_message, parser.fed(piece)):
                if "method" not in message:
                    return self._taken(message)
                await self._told(message, request_id, progress)
        raise MCPError(CONNECTION_CLOSED, "The stream ended without a response")

    async def _refusal(self, answer: HttpConnection, kind: str) -> MCPError:
        """The server's own error, if there is one behind this status."""
        if kind == JSON:
            with contextlib.suppress(MCPError):
                message = _message(await _body(answer))
                if "error" in message:
                    return self._error(message["error"])
        if answer.status == 404:
            return MCPError(METHOD_NOT_FOUND, NOT_FOUND)
        return MCPError(INTERNAL_ERROR, ERROR_RESPONSE)

    def _taken(self, message: Message) -> dict[str, Any]:
        if "error" in message:
            raise self._error(message["error"])
        result: dict[str, Any] = message["result"]
        credentials = self._posts.credentials
        return hide_in_result(result, credentials) if credentials else result

    def _error(self, error: dict[str, Any]) -> MCPError:
        shown = hidden(error, self._posts.credentials)
        return MCPError(error["code"], shown["message"], shown.get("data"))

    async def _told(self, message: Message, request_id: str, progress: ProgressFnT | None) -> None:
        """What the server sends before its answer."""
        params = hidden(message.get("params") or {}, self._posts.credentials)
        if "id" in message:
            await self._decline(message["id"])
            return
        with contextlib.suppress(ValidationError):
            match message["method"]:
                case "notifications/progress" if params.get("progressToken") == request_id:
                    report = ProgressNotificationParams.model_validate(params)
                    if progress is not None:
                        await progress(report.progress, report.total, report.message)
                case "notifications/message" if self._logged is not None:
                    self._logged(LoggingMessageNotificationParams.model_validate(params))
                case _:
                    pass

    async def _decline(self, request_id: RequestId) -> None:
        """This revision has no requests of servers; one that waits for an answer gets one."""
        version = str(self._client.protocol_version)
        message = {"jsonrpc": "2.0", "id": request_id, "error": plain(NO_QUESTIONS)}
        headers = HEADERS | {MCP_PROTOCOL_VERSION_HEADER: version}
        with contextlib.suppress(httpx2.HTTPError):
            async with self._posts.connections.posting(encode(message), headers):
                pass


def _is_compressed(answer: HttpConnection) -> bool:
    return answer.headers.get("content-encoding", "").lower() not in ("", "identity")


async def _body(answer: HttpConnection) -> bytes:
    if _is_compressed(answer):
        raise _unreadable(COMPRESSED)
    pieces: list[bytes] = []
    size = 0
    while (piece := await answer.piece()) is not None:
        pieces.append(piece)
        size += len(piece)
        if size > RESULT_BYTES:
            raise _unreadable(TOO_LARGE)
    return b"".join(pieces)


class EventParser:
    """The data of the messages in an event stream.

    https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
    """

    def __init__(self) -> None:
        latin_1 = codecs.getincrementaldecoder("latin-1")()  # any bytes, back and forth
        self._newlines = io.IncrementalNewlineDecoder(latin_1, translate=True)
        self._line = bytearray()
        self._kind = ""
        self._data: list[str] = []
        self._size = 0

    def fed(self, piece: bytes) -> list[str]:
        """Those that end in this piece."""
        first, *lines = self._newlines.decode(piece).encode("latin-1").split(b"\n")
        self._line += first
        messages: list[str] = []
        for line in lines:
            messages += self._ended(self._line.decode("utf-8", "replace"))
            self._line = bytearray(line)
        if len(self._line) > RESULT_BYTES or self._size > EVENT_BYTES:
            raise _unreadable(TOO_LARGE)
        return messages

    def _ended(self, line: str) -> list[str]:
        if line:
            self._size += len(line)
            field, _, value = line.partition(":")
            if field == "event":
                self._kind = value.removeprefix(" ")
            elif field == "data":
                self._data.append(value.removeprefix(" "))
            return []
        message, is_message = "\n".join(self._data), self._kind in ("", "message")
        self._kind, self._data, self._size = "", [], 0
        return [message] if message and is_message else []


def _message(text: bytes | str) -> Message:
    """A message of JSON-RPC; anything else is an error of this request."""
    try:
        message: Message = from_json(text)
    except ValueError:
        raise _unreadable() from None
    match message:
        case {"jsonrpc": "2.0", "method": str()} if isinstance(message.get("params") or {}, dict):
            return message
        case {"jsonrpc": "2.0", "result": dict(), "id": str() | int()}:
            return message
        case {"jsonrpc": "2.0", "error": {"code": int(), "message": str()}}:
            return message
        case _:
            raise _unreadable()
