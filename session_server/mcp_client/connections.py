"""One open connection to an MCP server, through the official SDK.

A link is opened and closed by one task, as the SDK's scopes demand; any task may send through it.
What it brings back are plain JSON objects: the driver decides what they mean.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from typing import Any, NamedTuple

from mcp import Client, MCPError
from mcp.client.session import (
    ClientRequestContext,
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
    ElicitRequestParams,
    ErrorData,
    Implementation,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
    RequestId,
    Tool,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from session_server import __version__
from session_server.mcp_client.config import LEGACY, MODERN, Protocol, ServerConfig
from session_server.mcp_client.failures import HttpResponseInfo, unreachable_error
from session_server.mcp_client.sdk import (
    Change,
    RequestIds,
    Unanswered,
    Watch,
    add_result_type,
    changed_streams,
    declaring,
    send_raw,
)
from session_server.mcp_client.server_credentials import credentials_of, hiding
from session_server.mcp_client.transports import Output, transport
from session_server.schemas.codec import encode
from session_server.schemas.errors import UnreachableError
from session_server.schemas.limits import RESULT_BYTES

LISTED_PAGES = 100

NOT_2026 = (
    "it does not speak revision 2026-07-28; set its `protocol` in mcp.json to auto or 2025-11-25"
)
NOT_2025 = (
    "it does not speak revision 2025-11-25; set its `protocol` in mcp.json to auto or 2026-07-28"
)


def refuses_the_handshake(error: BaseException) -> bool:
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    codes = (METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION)
    return isinstance(error, MCPError) and error.code in codes


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


NO_CALLBACKS = Callbacks()
Logged = Callable[[LoggingMessageNotificationParams], None]


def callbacks_for_one_request(config: ServerConfig, logged: Logged | None = None) -> Callbacks:
    """What a connection for one request declares; revision 2026-07-28 asks nothing on it.

    `logged` gets the log messages.
    """

    async def elicit(context: ClientRequestContext, params: ElicitRequestParams) -> ErrorData:
        del context, params
        return ErrorData(code=INTERNAL_ERROR, message="Ask by input_required.")

    async def list_roots(context: ClientRequestContext) -> ErrorData:
        del context
        return ErrorData(code=INTERNAL_ERROR, message="Ask by input_required.")

    async def notified(message: IncomingMessage) -> None:
        if logged is not None and isinstance(message, LoggingMessageNotification):
            logged(message.params)

    return Callbacks(
        elicit=elicit,
        list_roots=None if config.roots is None else list_roots,
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

    def headers_of(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, str]:
        """MCP forbids calling a tool whose marks are not valid."""
        if tool in self._invalid:
            reason = f"The definition of {tool!r} is not valid: {self._invalid[tool]}"
            raise MCPError(INVALID_PARAMS, reason)
        return mcp_param_headers(self._headers.get(tool, {}), arguments)


class Link:
    """`lost` is set when the other side has ended; nothing sent afterwards arrives.

    `latest_response` is how the latest request was answered over HTTP.
    """

    def __init__(self, config: ServerConfig, callbacks: Callbacks = NO_CALLBACKS) -> None:
        self.config = config
        self.lost = asyncio.Event()
        self.latest_response: HttpResponseInfo | None = None
        self.listing = Listing()
        self.output = Output(config)
        self.unanswered = Unanswered(callbacks.answered)
        self._client: Client | None = None
        self._callbacks = callbacks

    @property
    def client(self) -> Client:
        if self._client is None:
            raise UnreachableError("the connection is not open")
        return self._client

    @property
    def is_modern(self) -> bool:
        """Whether it asks by `input_required`, not on the connection."""
        return self.client.protocol_version in MODERN_PROTOCOL_VERSIONS

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
                if protocol == LEGACY and refuses_the_handshake(error):
                    raise UnreachableError(NOT_2025) from error
                raise unreachable_error(error, self.config, self.latest_response) from error
            if protocol == MODERN and client.protocol_version not in MODERN_PROTOCOL_VERSIONS:
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
        try:
            return await self._request(method, params, {**options}, capabilities)
        except MCPError as error:
            if error.code != HEADER_MISMATCH or method != "tools/call":
                raise
        # Refused before it ran: the tool wants other arguments in headers than when it was listed.
        await self.tools()
        return await self._request(method, params, {**options}, capabilities)

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
            arguments = params.get("arguments") or {}
            options["headers"] = self.listing.headers_of(str(params.get("name")), arguments)
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
        watch = Watch(self.unanswered, self.lost.set)
        return Client(
            changed_streams(plain, watch, incoming, outgoing),
            mode=mode,
            prior_discover=known,
            cache=None,
            client_info=Implementation(name="session-server", version=__version__),
            elicitation_callback=callbacks.elicit,
            sampling_callback=callbacks.sample,
            list_roots_callback=callbacks.list_roots,
            message_handler=callbacks.notified,
        )


class LinkTask:
    """A link in a task of its own, open until it is closed or lost."""

    def __init__(self, link: Link, protocol: Protocol) -> None:
        self.link = link
        self._protocol: Protocol = protocol
        self._closing = asyncio.Event()
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._opened.add_done_callback(lambda done: done.exception())  # maybe nobody waits for it
        self._task: asyncio.Task[None] | None = None

    async def open(self, spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]) -> None:
        self._task = spawn(self._run())
        await asyncio.shield(self._opened)

    async def close(self) -> None:
        self._closing.set()
        if self._task is not None:
            if not self._opened.done():
                self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        try:
            await self._hold()
        except BaseException as error:
            self._fail(error)
            if not isinstance(error, Exception):
                raise
        finally:
            self.link.lost.set()

    async def _hold(self) -> None:
        async with contextlib.AsyncExitStack() as stack:
            async with asyncio.timeout(self.link.config.start_timeout):
                await stack.enter_async_context(self.link.opened(self._protocol))
            if not self._opened.done():
                self._opened.set_result(None)
            ends = [asyncio.ensure_future(e.wait()) for e in (self._closing, self.link.lost)]
            try:
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for end in ends:
                    end.cancel()

    def _fail(self, error: BaseException) -> None:
        if not self._opened.done():
            self._opened.set_exception(
                unreachable_error(error, self.link.config, self.link.latest_response)
            )
