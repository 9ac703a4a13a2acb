"""One open connection to an MCP server, through the official SDK.

A link is opened and closed by one task, as the SDK's scopes demand; any task may send through it.
What it brings back are plain JSON objects: the driver decides what they mean.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from mcp import Client, MCPError
from mcp.client.session import (
    ElicitationFnT,
    IncomingMessage,
    ListRootsFnT,
    MessageHandlerFnT,
    SamplingFnT,
)
from mcp.shared.dispatcher import CallOptions, ProgressFnT
from mcp.shared.inbound import find_invalid_x_mcp_header, mcp_param_headers, x_mcp_header_map
from mcp_types import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    UNSUPPORTED_PROTOCOL_VERSION,
    ErrorData,
    Implementation,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
    RequestId,
    Tool,
)
from pydantic import ValidationError

from session_server import __version__
from session_server.mcp_client.config import LEGACY, MODERN, Protocol, ServerConfig
from session_server.mcp_client.connections.transports import Output, transport
from session_server.mcp_client.failures import HttpResponseInfo, first_of, unreachable_error
from session_server.mcp_client.sdk import (
    Change,
    RequestIds,
    Watch,
    add_result_type,
    changed_streams,
    declaring,
    is_modern,
    send_raw,
)
from session_server.mcp_client.server_credentials import credentials_of, hiding
from session_server.schemas.codec import encode
from session_server.schemas.errors import UnreachableError
from session_server.schemas.limits import RESULT_BYTES

LISTED_PAGES = 100
NO_HANDSHAKE = (METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION)

NOT_2026 = (
    "it does not speak revision 2026-07-28; set its `protocol` in mcp.json to auto or 2025-11-25"
)
NOT_2025 = (
    "it does not speak revision 2025-11-25; set its `protocol` in mcp.json to auto or 2026-07-28"
)


class Callbacks(NamedTuple):
    """What answers a server's requests; what has no callback is not declared to it.

    `answered` is called when the server has answered a call.
    """

    elicit: ElicitationFnT | None = None
    sample: SamplingFnT | None = None
    list_roots: ListRootsFnT | None = None
    notified: MessageHandlerFnT | None = None
    capabilities: Mapping[str, Any] | None = None
    answered: Callable[[], object] = bool


NO_QUESTIONS = ErrorData(code=INTERNAL_ERROR, message="Ask by input_required.")
Logged = Callable[[LoggingMessageNotificationParams], None]


def callbacks_for_one_request(config: ServerConfig, logged: Logged | None = None) -> Callbacks:
    """What a connection for one request declares; revision 2026-07-28 asks nothing on it.

    `logged` gets the log messages.
    """

    async def refuse(*_: Any, **__: Any) -> ErrorData:
        return NO_QUESTIONS

    async def notified(message: IncomingMessage) -> None:
        if logged is not None and isinstance(message, LoggingMessageNotification):
            logged(message.params)

    return Callbacks(
        elicit=refuse,
        list_roots=None if config.roots is None else refuse,
        notified=notified,
    )


class Listing:
    """The tools of a server, and what of their arguments goes into headers."""

    def __init__(self) -> None:
        self.tools: dict[str, Tool] = {}
        self._headers: dict[str, dict[tuple[str, ...], str]] = {}
        self._invalid: dict[str, str] = {}

    def add(self, raw: dict[str, Any], *, has_headers: bool) -> None:
        try:
            tool = Tool.model_validate(raw, by_name=False)
        except ValidationError:
            return
        reason = find_invalid_x_mcp_header(tool.input_schema) if has_headers else None
        if reason is not None:
            self._invalid[tool.name] = reason
            return
        self.tools[tool.name] = tool
        self._headers[tool.name] = x_mcp_header_map(tool.input_schema) if has_headers else {}

    def headers_of(self, params: Mapping[str, Any]) -> dict[str, str]:
        """Those of a call. MCP forbids calling a tool whose marks are not valid."""
        tool = str(params.get("name"))
        if tool in self._invalid:
            reason = f"The definition of {tool!r} is not valid: {self._invalid[tool]}"
            raise MCPError(INVALID_PARAMS, reason)
        return mcp_param_headers(self._headers.get(tool, {}), params.get("arguments") or {})


class Link:
    """`lost` is set when the other side has ended; nothing sent afterwards arrives.

    `is_modern`: the server asks by `input_required`, not on the connection.
    `latest_response` is how the latest request was answered over HTTP.
    """

    def __init__(self, config: ServerConfig, callbacks: Callbacks) -> None:
        self.config = config
        self.lost = asyncio.Event()
        self.is_modern = False
        self.latest_response: HttpResponseInfo | None = None
        self.listing = Listing()
        self.output = Output(config)
        self._watch = Watch(callbacks.answered, self.lost.set)
        self.unanswered = self._watch.unanswered
        self._client: Client | None = None
        self._callbacks = callbacks

    @property
    def client(self) -> Client:
        if self._client is None:
            raise UnreachableError("the connection is not open")
        return self._client

    @contextlib.asynccontextmanager
    async def opened(
        self, protocol: Protocol = "auto", like: "Link | None" = None
    ) -> AsyncGenerator["Link"]:
        """Open while the block runs. `like` saves asking again what another link has learned."""
        known = None if like is None else like.client.session.discover_result
        mode = "legacy" if protocol == LEGACY else "auto"
        client = self._new_client(mode if known is None else MODERN, known)
        if like is not None:
            self.listing = like.listing
        async with contextlib.AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(client)
            except Exception as error:
                code = getattr(first_of(error), "code", None)
                if protocol == LEGACY and code in NO_HANDSHAKE:
                    raise UnreachableError(NOT_2025) from error
                raise unreachable_error(error, self.config, self.latest_response) from error
            self.is_modern = is_modern(client.protocol_version)
            if protocol == MODERN and not self.is_modern:
                raise UnreachableError(NOT_2026)
            self._client = client
            try:
                yield self
            finally:
                self._client = None
                self.lost.set()

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        progress: ProgressFnT | None = None,
        capabilities: Mapping[str, Any] | None = None,
        request_id: RequestId | None = None,
    ) -> dict[str, Any]:
        """One request and its raw result; an error of the server's is an `MCPError`.

        `capabilities` are declared instead of those of the connection, in the 2026 era alone.
        """
        options = CallOptions() if progress is None else CallOptions(on_progress=progress)
        if request_id is not None:
            options["request_id"] = request_id
        return await self.with_new_headers(
            method, lambda: self._request(method, params, {**options}, capabilities)
        )

    async def with_new_headers(
        self, method: str, send: Callable[[], Awaitable[dict[str, Any]]]
    ) -> dict[str, Any]:
        """Sends again where a tool wants other arguments in headers than when it was listed."""
        try:
            return await send()
        except MCPError as error:
            if error.code != HEADER_MISMATCH or method != "tools/call":
                raise
        await self.tools()
        return await send()  # it was refused before it ran

    async def _request(
        self,
        method: str,
        params: Mapping[str, Any],
        options: CallOptions,
        capabilities: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        if self.lost.is_set():
            raise UnreachableError("the connection is lost")
        if method == "tools/call" and self.uses_headers:
            options["headers"] = self.listing.headers_of(params)
        result = await send_raw(self.client, method, params, options, capabilities)
        if not self.is_modern:
            result.pop("resultType", None)
        return result

    @property
    def uses_headers(self) -> bool:
        """Whether arguments that a tool's schema marks are sent as headers too (SEP-2243)."""
        return self.is_modern and self.config.url is not None

    async def tools(self) -> dict[str, Tool]:
        """What the server offers as tools, by name; nothing if it has none.

        All pages together are bounded as one answer is; tools beyond that can be called, but
        nothing is known of them. So it is with one that cannot be read.
        """
        if self.client.server_capabilities.tools is None:
            return {}
        listing = Listing()
        cursor: str | None = None
        size = 0
        for _ in range(LISTED_PAGES):
            page = await self._request("tools/list", {"cursor": cursor} if cursor else {}, {})
            size += len(encode(page))
            if size > RESULT_BYTES:
                break
            for tool in page.get("tools") or ():
                listing.add(tool, has_headers=self.uses_headers)
            cursor = page.get("nextCursor")
            if cursor is None:
                break
        self.listing = listing
        return listing.tools

    def _answered(self, response: HttpResponseInfo) -> None:
        self.latest_response = response

    def _new_client(self, mode: str, known: Any) -> Client:
        callbacks = self._callbacks
        incoming: list[Change] = [add_result_type]
        outgoing: list[Change] = []
        credentials = credentials_of(self.config)
        if credentials:
            incoming.append(hiding(credentials))
        if callbacks.capabilities is not None:
            outgoing.append(declaring(callbacks.capabilities))
        if self.config.url is not None:
            ids = RequestIds()
            incoming.append(ids.remove_prefix)
            outgoing.append(ids.add_prefix)
        plain = transport(self.config, self._answered, self.output)
        return Client(
            changed_streams(plain, self._watch, incoming, outgoing),
            mode=mode,
            prior_discover=known,
            cache=None,
            client_info=Implementation(name="session-server", version=__version__),
            elicitation_callback=callbacks.elicit,
            sampling_callback=callbacks.sample,
            list_roots_callback=callbacks.list_roots,
            message_handler=callbacks.notified,
        )
