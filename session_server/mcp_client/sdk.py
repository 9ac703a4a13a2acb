"""Everything that changes or goes around what the MCP SDK does, each with its reason.

Transports hand the SDK two streams; most of this is streams that change messages on the way. Two
neighbours build on it: `credentials` hides secrets in what arrives, `bounds` limits its size.
"""

import contextlib
import logging
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Self

from mcp import Client
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

from session_server.mcp_client.failpoints import hit

Streams = tuple[Any, Any]

QUIET = {"mcp": logging.CRITICAL, "client": logging.CRITICAL, "httpx2": logging.WARNING}
"""The SDK's loggers write whole messages, with arguments and states; so ours report instead."""

CALLS = ("tools/call", "prompts/get", "resources/read")


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
    session = client.session
    data: dict[str, Any] = {"method": method, "params": {**params}}
    if "_meta" in params:
        data["params"]["_meta"] = {**params["_meta"]}
    headers = options.get("headers", {})
    session._stamp(data, options)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    if headers:
        options.setdefault("headers", {}).update(headers)
    if capabilities is not None:
        _declare(data["params"], capabilities)
    dispatcher = session._dispatcher  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    return await dispatcher.send_raw_request(method, data["params"], options)


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


# Streams


class Passing:
    """A stream that is another one."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        result: bool | None = await self._stream.__aexit__(kind, error, trace)
        return result


class Outgoing(Passing):
    async def send(self, item: SessionMessage, /) -> None:
        await self._stream.send(self.changed(item))

    def changed(self, item: SessionMessage) -> SessionMessage:
        return item


class Incoming(Passing):
    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        return self.changed(await self._stream.receive())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        return self.changed(await self._stream.__anext__())

    def changed(self, item: Any) -> Any:
        return item


# Noticing what the SDK does not report: the end of the other side, and late answers


class Unanswered:
    """Requests of calls that the server has not answered, also those that nobody waits for.

    The SDK forgets a request that is cancelled; the server may go on with it, and ask.
    """

    def __init__(self, answered: Callable[[], object]) -> None:
        self._ids: set[RequestId] = set()
        self._answered = answered

    def __contains__(self, request_id: RequestId | None) -> bool:
        return request_id in self._ids

    def sent(self, request_id: RequestId) -> None:
        self._ids.add(request_id)

    def answered(self, request_id: RequestId) -> bool:
        if request_id not in self._ids:
            return False
        self._ids.discard(request_id)
        self._answered()
        return True


@contextlib.asynccontextmanager
async def watched(
    way: AbstractAsyncContextManager[Streams], ended: Callable[[], None], unanswered: Unanswered
) -> AsyncGenerator[Streams]:
    """The same streams, with the failpoints of every message of a call.

    `ended` is called when nothing more can come: the SDK reports this to pending requests alone.
    """
    async with way as (read, write):
        watch = _Watch(unanswered)
        yield _Watched(read, watch, ended), _Sending(write, watch)


class _Watch:
    """Which messages belong to calls: the failpoints are for these."""

    def __init__(self, unanswered: Unanswered) -> None:
        self._unanswered = unanswered
        self._asked: set[Any] = set()

    def is_outgoing(self, item: SessionMessage) -> bool:
        message = item.message
        if isinstance(message, JSONRPCRequest) and message.method in CALLS:
            self._unanswered.sent(message.id)
            return True
        if not isinstance(message, JSONRPCResponse | JSONRPCError):
            return False
        if message.id not in self._asked:
            return False
        self._asked.discard(message.id)
        return True

    def is_incoming(self, item: SessionMessage | Exception) -> bool:
        message = item.message if isinstance(item, SessionMessage) else None
        if isinstance(message, JSONRPCRequest) and message.method == "elicitation/create":
            self._asked.add(message.id)
            return True
        if not isinstance(message, JSONRPCResponse | JSONRPCError) or message.id is None:
            return False
        return self._unanswered.answered(message.id)


class _Watched(Incoming):
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


class _Sending(Outgoing):
    def __init__(self, stream: Any, watch: _Watch) -> None:
        super().__init__(stream)
        self._watch = watch

    async def send(self, item: SessionMessage, /) -> None:
        is_of_call = self._watch.is_outgoing(item)
        if is_of_call:
            hit("mcp.send")
        await super().send(item)
        if is_of_call:
            hit("mcp.sent")


# Results without a type

COMPLETE = {"resultType": "complete"}


@contextlib.asynccontextmanager
async def completing(way: AbstractAsyncContextManager[Streams]) -> AsyncGenerator[Streams]:
    """A result that does not name its type is complete, which the SDK refuses in 2026.

    https://modelcontextprotocol.io/specification/2026-07-28/basic
    On a connection of the 2025 era it is dropped again.
    """
    async with way as (read, write):
        yield _Completing(read), write


class _Completing(Incoming):
    def changed(self, item: Any) -> Any:
        message = item.message if isinstance(item, SessionMessage) else None
        if isinstance(message, JSONRPCResponse):
            message.result = COMPLETE | message.result
        return item


# Ids of requests

CANCELLED = "notifications/cancelled"


@contextlib.asynccontextmanager
async def numbered(way: AbstractAsyncContextManager[Streams]) -> AsyncGenerator[Streams]:
    """Ids of requests that no other connection uses: a retry may go out on a new one.

    The SDK counts from 1 on every connection, and MCP wants a new id for every retry.
    """
    prefix = f"{uuid.uuid4().hex[:12]}-"
    async with way as (read, write):
        yield _Answers(read, prefix), _Requests(write, prefix)


class _Requests(Outgoing):
    def __init__(self, stream: Any, prefix: str) -> None:
        super().__init__(stream)
        self._prefix = prefix

    def changed(self, item: SessionMessage) -> SessionMessage:
        message = item.message
        if isinstance(message, JSONRPCRequest):
            message.id = f"{self._prefix}{message.id}"
        elif isinstance(message, JSONRPCNotification) and message.method == CANCELLED:
            params = message.params or {}
            message.params = {**params, "requestId": f"{self._prefix}{params.get('requestId')}"}
        return item


class _Answers(Incoming):
    def __init__(self, stream: Any, prefix: str) -> None:
        super().__init__(stream)
        self._prefix = prefix

    def changed(self, item: Any) -> Any:
        message = item.message if isinstance(item, SessionMessage) else None
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            message.id = self._plain(message.id)
        if isinstance(message, JSONRPCResponse):
            message.result = self._with_plain_subscription(message.result)
        elif isinstance(message, JSONRPCNotification) and message.params is not None:
            message.params = self._with_plain_subscription(message.params)
        return item

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


# Declaring less than the SDK would


@contextlib.asynccontextmanager
async def narrowed(
    way: AbstractAsyncContextManager[Streams], capabilities: Mapping[str, Any]
) -> AsyncGenerator[Streams]:
    """The handshake of the 2025 era, and every other request, declares these capabilities.

    The SDK offers forms and URLs together, and nothing that it has no callback for.
    """
    async with way as (read, write):
        yield read, _Declaring(write, capabilities)


class _Declaring(Outgoing):
    def __init__(self, stream: Any, capabilities: Mapping[str, Any]) -> None:
        super().__init__(stream)
        self._capabilities = dict(capabilities)

    def changed(self, item: SessionMessage) -> SessionMessage:
        message = item.message
        if isinstance(message, JSONRPCRequest) and message.params is not None:
            if message.method == "initialize":
                message.params["capabilities"] = self._capabilities
            _declare(message.params, self._capabilities)
        return item
