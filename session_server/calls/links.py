"""One open connection to an MCP server, through the official SDK.

A link is opened and closed by one task, as the SDK's scopes demand; any task may send through it.
What it brings back are plain JSON objects: the driver decides what they mean.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from typing import Any, NamedTuple

from mcp import Client, MCPError
from mcp.client.session import ElicitationFnT, ListRootsFnT, MessageHandlerFnT, SamplingFnT
from mcp.shared.dispatcher import CallOptions, ProgressFnT
from mcp.shared.inbound import find_invalid_x_mcp_header, mcp_param_headers, x_mcp_header_map
from mcp_types import HEADER_MISMATCH, INVALID_PARAMS, Implementation, Tool
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from session_server import __version__
from session_server.calls.completing import completing
from session_server.calls.config import ServerConfig
from session_server.calls.credentials import credentials_of, without_credentials
from session_server.calls.errors import UnreachableError
from session_server.calls.narrowing import narrowed
from session_server.calls.numbering import numbered
from session_server.calls.transports import Output, transport
from session_server.calls.troubles import Heard, trouble_of
from session_server.calls.watching import watched
from session_server.schemas.codec import encode
from session_server.schemas.limits import RESULT_BYTES

LISTED_PAGES = 100

QUIET = {"mcp": logging.CRITICAL, "client": logging.CRITICAL, "httpx2": logging.WARNING}
"""The SDK's loggers write whole messages, with arguments and states; so ours speak instead."""


class Answering(NamedTuple):
    """Who answers what a server asks; what nobody answers is not declared to it."""

    elicit: ElicitationFnT | None = None
    sample: SamplingFnT | None = None
    list_roots: ListRootsFnT | None = None
    notified: MessageHandlerFnT | None = None
    capabilities: Mapping[str, Any] | None = None


NOBODY = Answering()


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
            words = f"The definition of {tool!r} is not valid: {self._invalid[tool]}"
            raise MCPError(INVALID_PARAMS, words)
        return mcp_param_headers(self._headers.get(tool, {}), arguments)


class Link:
    """`lost` is set when the other side has ended; nothing sent afterwards arrives.

    `heard` is how the latest request was answered over HTTP.
    """

    def __init__(self, config: ServerConfig, answering: Answering = NOBODY) -> None:
        self.config = config
        self.lost = asyncio.Event()
        self.heard: Heard | None = None
        self.listing = Listing()
        self.output = Output(config)
        self._client: Client | None = None
        self._answering = answering

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
    async def opened(self, like: "Link | None" = None) -> AsyncGenerator["Link"]:
        """Open while the block runs. `like` saves asking again what another link has learned."""
        known = None if like is None else like.client.session.discover_result
        mode = "auto" if like is None or known is None else like.client.protocol_version
        client = self._new_client(mode, known)
        if like is not None:
            self.listing = like.listing
        async with contextlib.AsyncExitStack() as stack:
            try:
                await stack.enter_async_context(client)
            except Exception as error:
                raise trouble_of(error, self.config, self.heard) from error
            self._client = client
            try:
                yield self
            finally:
                self._client = None
                self.lost.set()

    async def request(
        self, method: str, params: Mapping[str, Any], progress: ProgressFnT | None = None
    ) -> dict[str, Any]:
        """One request and its raw result; an error of the server's is an `MCPError`."""
        try:
            return await self._request(method, params, progress)
        except MCPError as error:
            if error.code != HEADER_MISMATCH or method != "tools/call":
                raise
        # Refused before it ran: the tool wants other arguments in headers than when it was listed.
        await self.tools()
        return await self._request(method, params, progress)

    async def _request(
        self, method: str, params: Mapping[str, Any], progress: ProgressFnT | None
    ) -> dict[str, Any]:
        """Below the SDK's `send_request`, which refuses results with content it does not know."""
        if self.lost.is_set():
            raise UnreachableError("the connection is lost")
        session = self.client.session
        options = CallOptions() if progress is None else CallOptions(on_progress=progress)
        data: dict[str, Any] = {"method": method, "params": {**params}}
        if "_meta" in params:
            data["params"]["_meta"] = {**params["_meta"]}
        session._stamp(data, options)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        if method == "tools/call" and self.uses_headers:
            arguments = params.get("arguments") or {}
            headers = self.listing.headers_of(str(params.get("name")), arguments)
            options.setdefault("headers", {}).update(headers)
        dispatcher = session._dispatcher  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        result = await dispatcher.send_raw_request(method, data["params"], options)
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
            page = await self._request("tools/list", {"cursor": cursor} if cursor else {}, None)
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

    def _hear(self, heard: Heard) -> None:
        self.heard = heard

    def _new_client(self, mode: str, known: Any) -> Client:
        answering = self._answering
        way = completing(watched(transport(self.config, self._hear, self.output), self.lost.set))
        credentials = credentials_of(self.config)
        if credentials:
            way = without_credentials(way, credentials)
        if self.config.url is not None:
            way = numbered(way)
        if answering.capabilities is not None:
            way = narrowed(way, answering.capabilities)
        return Client(
            way,
            mode=mode,
            prior_discover=known,
            cache=None,
            client_info=Implementation(name="session-server", version=__version__),
            elicitation_callback=answering.elicit,
            sampling_callback=answering.sample,
            list_roots_callback=answering.list_roots,
            message_handler=answering.notified,
        )


class KeptLink:
    """A link in a task of its own, open until it is closed or lost."""

    def __init__(self, link: Link, seconds: float) -> None:
        self.link = link
        self._seconds = seconds
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
            async with asyncio.timeout(self._seconds):
                await stack.enter_async_context(self.link.opened())
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
            self._opened.set_exception(trouble_of(error, self.link.config, self.link.heard))
