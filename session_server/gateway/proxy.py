"""A configured server as our clients see it: the same tools, prompts and resources."""

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, cast

from mcp.server import Server
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext
from mcp_types import (
    SERVER_INFO_META_KEY,
    CallToolRequestParams,
    CompleteRequestParams,
    EmptyResult,
    GetPromptRequestParams,
    Implementation,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    RequestParams,
    ServerCapabilities,
    SetLevelRequestParams,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    UnsubscribeRequestParams,
)

from session_server.gateway.announcements import Announcements
from session_server.gateway.mcp_callers import Context, McpCaller, set_log_level
from session_server.gateway.mcp_errors import as_mcp_errors
from session_server.mcp_client.connections.connection import Link
from session_server.mcp_client.sdk import CALLS, is_modern
from session_server.mcp_client.servers import Server as Upstream
from session_server.reducers.calls.input_required import TASKS_EXTENSION
from session_server.reducers.calls.starting import own_params
from session_server.schemas.mcp import CallMethod

ServeCall = Callable[[Context, CallMethod], Awaitable[dict[str, Any]]]


class Method(NamedTuple):
    """`stand_in` is what the SDK sees in place of a result: it drops what it does not know."""

    capability: str
    params: type[RequestParams]
    stand_in: dict[str, Any]


METHODS = {
    "tools/list": Method("tools", PaginatedRequestParams, {"tools": []}),
    "tools/call": Method("tools", CallToolRequestParams, {"content": []}),
    "prompts/list": Method("prompts", PaginatedRequestParams, {"prompts": []}),
    "prompts/get": Method("prompts", GetPromptRequestParams, {"messages": []}),
    "resources/list": Method("resources", PaginatedRequestParams, {"resources": []}),
    "resources/templates/list": Method(
        "resources", PaginatedRequestParams, {"resourceTemplates": []}
    ),
    "resources/read": Method("resources", ReadResourceRequestParams, {"contents": []}),
    "completion/complete": Method(
        "completions", CompleteRequestParams, {"completion": {"values": []}}
    ),
}
OF_2026 = ("resultType", "ttlMs", "cacheScope")
"""What the envelope of a result has in 2026 alone."""

FRESH = CacheHint(ttl_ms=0, scope="private")
"""A 2025-era server says nothing of how long its lists hold."""


class ProxyServer(Server[Any]):
    """What a server has now, under its own name; its results are passed on unchanged.

    Of changes it says what the server itself says of them.
    """

    def __init__(
        self, upstream: Upstream, main: Link, serve_call: ServeCall, announcements: Announcements
    ) -> None:
        known = main.client.server_info or Implementation(name=upstream.config.name, version="")
        super().__init__(
            known.name,
            version=known.version,
            title=known.title,
            description=known.description,
            website_url=known.website_url,
            icons=known.icons,
            instructions=main.client.instructions,
            get_tool_input_schema=self._input_schema,
            cache_hints={
                "tools/list": FRESH,
                "prompts/list": FRESH,
                "resources/list": FRESH,
                "resources/templates/list": FRESH,
                "resources/read": FRESH,
            },
        )
        self._upstream = upstream
        self._capabilities = main.client.server_capabilities
        self._serve_call = serve_call
        self._announcements = announcements
        self._results: dict[int, dict[str, Any]] = {}
        self._add_handlers()

    def _add_handlers(self) -> None:
        add, announcements = self.add_request_handler, self._announcements
        for name, method in METHODS.items():
            if getattr(self._capabilities, method.capability) is not None:
                add(name, method.params, self._call if name in CALLS else self._forward)
        if self._capabilities.logging is not None:
            add("logging/setLevel", SetLevelRequestParams, self._set_level)
        if announcements.are_any:
            add("subscriptions/listen", SubscriptionsListenRequestParams, announcements.listen)
        if announcements.watching:
            add("resources/subscribe", SubscribeRequestParams, announcements.subscribe)
            add("resources/unsubscribe", UnsubscribeRequestParams, announcements.unsubscribe)

    async def _forward(self, ctx: Context, _: RequestParams) -> dict[str, Any]:
        caller, params = McpCaller(ctx), own_params(ctx.params or {})
        can = caller.declared if self._upstream.config.answers == "client" else None
        with as_mcp_errors(self._upstream.config.name):
            result = await self._upstream.request(ctx.method, params, can, caller.principal.id)
        return self._bypass_sdk(ctx, result)

    async def _call(self, ctx: Context, _: RequestParams) -> dict[str, Any]:
        method = cast("CallMethod", ctx.method)
        return self._bypass_sdk(ctx, await self._serve_call(ctx, method))

    async def _set_level(self, ctx: Context, params: SetLevelRequestParams) -> EmptyResult:
        set_log_level(ctx, params.level)
        self._upstream.set_log_level(params.level)
        return EmptyResult()

    def _input_schema(self, tool: str) -> Any:
        known = self._upstream.main.tools.get(tool)
        return None if known is None else known.input_schema

    def _bypass_sdk(self, ctx: Context, result: dict[str, Any]) -> dict[str, Any]:
        """The result goes around the SDK, and this goes through it."""
        self._results[id(ctx)] = result
        return {"resultType": "complete", **METHODS[ctx.method].stand_in}

    async def unchanged(self, ctx: Context, call_next: CallNext) -> Any:
        """A middleware, the innermost: the server's result in the envelope that the SDK made."""
        try:
            shaped = await call_next(ctx)
            result = self._results.get(id(ctx))
        finally:
            self._results.pop(id(ctx), None)
        return shaped if result is None else _enveloped(ctx, shaped, result)

    def get_capabilities(self, *options: Any, **more: Any) -> ServerCapabilities:
        found = super().get_capabilities(*options, **more)
        found.experimental = self._capabilities.experimental
        extensions = self._capabilities.extensions or {}
        found.extensions = {k: v for k, v in extensions.items() if k != TASKS_EXTENSION} or None
        if found.tools is not None:
            found.tools.list_changed = self._announcements.tools
        if found.prompts is not None:
            found.prompts.list_changed = self._announcements.prompts
        if found.resources is not None:
            found.resources.list_changed = self._announcements.resources
            found.resources.subscribe = self._announcements.watching
        return found


def _enveloped(ctx: Context, shaped: Any, result: dict[str, Any]) -> dict[str, Any]:
    """In the era of the client: a 2026-era result says its type and how long it holds."""
    if not is_modern(ctx.protocol_version):
        return _without_2026(result)
    is_interim = result.get("resultType") == "input_required"
    names = OF_2026[:1] if is_interim else OF_2026
    whole = {name: shaped[name] for name in names if name in shaped} | result
    meta = result.get("_meta") or {}
    if isinstance(meta, dict) and shaped.get("_meta"):
        whole["_meta"] = {**shaped["_meta"], **meta}
    return whole


def _without_2026(result: dict[str, Any]) -> dict[str, Any]:
    plain = {name: value for name, value in result.items() if name not in OF_2026}
    meta = plain.get("_meta")
    if isinstance(meta, dict) and SERVER_INFO_META_KEY in meta:
        plain["_meta"] = {name: meta[name] for name in meta if name != SERVER_INFO_META_KEY}
        if not plain["_meta"]:
            del plain["_meta"]
    return plain
