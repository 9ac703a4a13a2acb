"""What changes messages of the MCP SDK, or reaches into it, each with its reason.

Transports hand the SDK two streams; most of this changes messages on these. Two neighbours do so
too: `server_credentials` hides secrets in what arrives, `response_limits` limits its size.
`http_link` replaces its HTTP client. The gateway uses the last part, for the SDK's servers.
"""

import contextlib
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Self

from mcp import Client
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.shared.dispatcher import CallOptions
from mcp.shared.message import SessionMessage
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel

from session_server.mcp_client.failpoints import hit

Streams = tuple[Any, Any]

CALLS = ("tools/call", "prompts/get", "resources/read")


def is_modern(version: str) -> bool:
    """Whether a revision that is spoken is of the 2026 era: each request stands for itself."""
    return version in MODERN_PROTOCOL_VERSIONS


def plain(model: BaseModel) -> dict[str, Any]:
    """As it is on the wire."""
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


# Requests below `ClientSession.send_request`


async def send_raw(
    client: Client,
    method: str,
    params: Mapping[str, Any],
    options: CallOptions,
    capabilities: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """One request and its result as it is.

    `send_request` validates results: it drops fields and refuses content blocks that it does not
    know. It also declares the same capabilities with every request, although revision 2026-07-28
    has them per request (https://modelcontextprotocol.io/specification/2026-07-28/basic).
    """
    data = stamped(client, method, params, options, capabilities)
    dispatcher = client.session._dispatcher  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    return await dispatcher.send_raw_request(method, data, options)


def stamped(
    client: Client,
    method: str,
    params: Mapping[str, Any],
    options: CallOptions,
    capabilities: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The parameters as they are sent; headers that belong to them are put into the options."""
    data: dict[str, Any] = {"method": method, "params": {**params}}
    if "_meta" in params:
        data["params"]["_meta"] = {**params["_meta"]}
    headers = options.get("headers", {})
    client.session._stamp(data, options)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    if headers:
        options.setdefault("headers", {}).update(headers)
    if capabilities is not None:
        _declare(data["params"], capabilities)
    sent: dict[str, Any] = data["params"]
    return sent


def _declare(params: dict[str, Any], capabilities: Mapping[str, Any]) -> None:
    """Where a message declares capabilities, these."""
    meta = params.get("_meta")
    if isinstance(meta, dict) and CLIENT_CAPABILITIES_META_KEY in meta:
        params["_meta"] = {**meta, CLIENT_CAPABILITIES_META_KEY: dict(capabilities)}


# Tools that need the other revision

_NEEDS_2025 = (
    # mcp.shared.exceptions.NoBackChannelError, and what FastMCP makes of it
    "no back-channel for server-initiated requests",
    # fastmcp.server.context
    "via server-initiated requests is unavailable",
    "server-initiated sampling is not available",
    # @modelcontextprotocol/server: Server._assertPushApiInServedEra and the check below it
    "Server-to-client requests are not available on protocol revision",
    "is not supported by the negotiated protocol version",
)
_RETURNED_QUESTIONS = (
    # fastmcp.server.low_level
    "returned an InputRequiredResult to request client input",
    # @modelcontextprotocol/server with `legacyShim: false`
    "returned an input-required result, but this request is served on protocol revision",
    # the same over HTTP, where it has no connection to ask on
    "per-request legacy serving cannot receive server-to-client requests",
)
_UNSENDABLE = "Handler returned an invalid result"
"""mcp.server.runner: also what a tool gets that returned anything else that cannot be sent."""


def needs_2025(text: str, *, can_sample: bool) -> bool:
    """Whether a failure on a 2026-07-28 connection says that the tool asks on the connection.

    No SDK has a code for it: there are only these texts. Without sampling, the other revision does
    not help a tool that wants to use it.
    """
    is_sampling = "sampling" in text
    return any(part in text for part in _NEEDS_2025) and (can_sample or not is_sampling)


def needs_2026(text: str) -> bool:
    """Whether a failure on a 2025-11-25 connection says that the tool asks by `input_required`."""
    return returned_questions(text) or text == _UNSENDABLE


def returned_questions(text: str) -> bool:
    """Whether it says so for certain: then the tool asked and did nothing else."""
    return any(part in text for part in _RETURNED_QUESTIONS)


# Streams that change messages on the way

Change = Callable[[Any], None]
"""Changes a message in place."""


class Watch:
    """Notices what the SDK does not report: late answers, and the end of the other side.

    `unanswered`: requests of calls that the server has not answered. The SDK forgets one that is
    cancelled; the server may go on with it, and ask. `answered` is called when it answers one,
    `ended` when nothing more can come; the SDK reports that to pending requests alone.
    """

    def __init__(self, answered: Callable[[], object], ended: Callable[[], None]) -> None:
        self.unanswered: set[RequestId | None] = set()
        self.ended = ended
        self._answered = answered
        self._asked: set[RequestId | None] = set()

    def is_sent_for_call(self, message: Any) -> bool:
        if isinstance(message, JSONRPCRequest) and message.method in CALLS:
            self.unanswered.add(message.id)
            return True
        return _is_answer(message, self._asked)

    def is_received_for_call(self, message: Any) -> bool:
        if isinstance(message, JSONRPCRequest) and message.method == "elicitation/create":
            self._asked.add(message.id)
            return True
        is_answer = _is_answer(message, self.unanswered)
        if is_answer:
            self._answered()
        return is_answer


def _is_answer(message: Any, requests: set[RequestId | None]) -> bool:
    """Whether it answers one of these, which is then taken out."""
    is_answer = isinstance(message, JSONRPCResponse | JSONRPCError) and message.id in requests
    if is_answer:
        requests.discard(message.id)
    return is_answer


@contextlib.asynccontextmanager
async def changed_streams(
    streams: AbstractAsyncContextManager[Streams],
    watch: Watch,
    incoming: Sequence[Change],
    outgoing: Sequence[Change],
) -> AsyncGenerator[Streams]:
    """The same streams, with these changes in order, and the failpoints of calls."""
    async with streams as (read, write):
        yield _Incoming(read, watch, incoming), _Outgoing(write, watch, outgoing)


class _Stream:
    def __init__(self, stream: Any, watch: Watch, changes: Sequence[Change]) -> None:
        self._stream = stream
        self._watch = watch
        self._changes = changes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> bool | None:
        result: bool | None = await self._stream.__aexit__(*error)
        return result


class _Outgoing(_Stream):
    async def send(self, item: SessionMessage, /) -> None:
        for change in self._changes:
            change(item.message)
        is_of_call = self._watch.is_sent_for_call(item.message)
        if is_of_call:
            hit("mcp.send")
        await self._stream.send(item)
        if is_of_call:
            hit("mcp.sent")


class _Incoming(_Stream):
    async def receive(self) -> Any:
        return self._changed(await self._stream.receive())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return self._changed(await self._stream.__anext__())
        except StopAsyncIteration:
            self._watch.ended()
            raise

    def _changed(self, item: Any) -> Any:
        if isinstance(item, SessionMessage):
            if self._watch.is_received_for_call(item.message):
                hit("mcp.receive")
            for change in self._changes:
                change(item.message)
        return item

    async def __aexit__(self, *error: object) -> bool | None:
        self._watch.ended()
        return await super().__aexit__(*error)


# The changes

COMPLETE = {"resultType": "complete"}
CANCELLED = "notifications/cancelled"


def add_result_type(message: Any) -> None:
    """A result that does not name its type is complete, which the SDK refuses in 2026.

    https://modelcontextprotocol.io/specification/2026-07-28/basic
    On a connection of the 2025 era it is dropped again.
    """
    if isinstance(message, JSONRPCResponse):
        message.result = COMPLETE | message.result


class RequestIds:
    """Ids of requests that no other connection uses: a retry may go out on a new one.

    The SDK counts from 1 on every connection, and MCP wants a new id for every retry.
    """

    def __init__(self) -> None:
        self._prefix = f"{uuid.uuid4().hex[:12]}-"

    def add_prefix(self, message: Any) -> None:
        if isinstance(message, JSONRPCRequest):
            message.id = f"{self._prefix}{message.id}"
        elif isinstance(message, JSONRPCNotification) and message.method == CANCELLED:
            params = message.params or {}
            message.params = {**params, "requestId": f"{self._prefix}{params.get('requestId')}"}

    def remove_prefix(self, message: Any) -> None:
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            message.id = self._plain(message.id)
        if isinstance(message, JSONRPCResponse):
            message.result = self._with_plain_subscription(message.result)
        elif isinstance(message, JSONRPCNotification) and message.params is not None:
            message.params = self._with_plain_subscription(message.params)

    def _with_plain_subscription(self, params: dict[str, Any]) -> dict[str, Any]:
        """A subscription is named by the id of the request that listens."""
        meta = params.get("_meta")
        if not isinstance(meta, dict) or SUBSCRIPTION_ID_META_KEY not in meta:
            return params
        plain = self._plain(meta[SUBSCRIPTION_ID_META_KEY])
        return {**params, "_meta": {**meta, SUBSCRIPTION_ID_META_KEY: plain}}

    def _plain(self, request_id: Any) -> RequestId:
        number = str(request_id).removeprefix(self._prefix)
        return int(number) if number.isdecimal() else number


def declaring(capabilities: Mapping[str, Any]) -> Change:
    """The handshake of the 2025 era, and every other request, declares these capabilities.

    The SDK offers forms and URLs together, and nothing that it has no callback for.
    """

    def declare(message: Any) -> None:
        if isinstance(message, JSONRPCRequest) and message.params is not None:
            if message.method == "initialize":
                message.params["capabilities"] = dict(capabilities)
            _declare(message.params, capabilities)

    return declare


# Texts of the SDK that stand for what it has no code for

ERROR_RESPONSE, NOT_FOUND = "Server returned an error response", "Not Found"
UNEXPECTED_TYPE = "Unexpected content type: "
NO_MESSAGE = (ERROR_RESPONSE, NOT_FOUND, UNEXPECTED_TYPE)
"""How its errors begin for an HTTP response that holds no message."""

UNPARSED = "Failed to parse"
"""How its error begins for a message that it cannot read, which it then quotes."""

SESSION_GONE = "Session terminated"
"""Its error for a 2025-era HTTP server that no longer knows the connection."""

TOO_LARGE_EVENT = "Server-sent event exceeded"
"""How its error begins for an event that is larger than its limit."""


# Servers of the SDK


def connection_of(ctx: ServerRequestContext[Any, Any]) -> Connection:
    """Of a 2025-era client: what is kept for it lives as long. The SDK has no other way to it."""
    return ctx.session._connection  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


def was_cancelled(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Whether a 2025-era client has cancelled this request; the SDK only cancels its task."""
    outbound: Any = ctx.session._request_outbound  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    return bool(outbound.cancel_requested.is_set())
