"""A configured server as our clients see it: the same tools, prompts and resources."""

from collections.abc import Awaitable, Callable
from typing import Any

from mcp.server import Server
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext
from mcp_types import (
    SERVER_INFO_META_KEY,
    CallToolRequestParams,
    CompleteRequestParams,
    EmptyResult,
    GetPromptRequestParams,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    RequestParams,
    ServerCapabilities,
    SetLevelRequestParams,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    UnsubscribeRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from session_server.gateway.announcements import Announcements
from session_server.gateway.client_questions import declared_by
from session_server.gateway.mcp_callers import Context, principal_id, set_log_level
from session_server.gateway.mcp_errors import as_mcp_errors
from session_server.mcp_client.connections import Link
from session_server.mcp_client.servers import Servers
from session_server.reducers.calls.input_required import TASKS_EXTENSION
from session_server.reducers.calls.starting import own_params
from session_server.schemas.mcp import CallMethod

Perform = Callable[[Context, CallMethod], Awaitable[dict[str, Any]]]

LISTED: dict[str, tuple[tuple[str, type[RequestParams]], ...]] = {
    "tools": (("tools/list", PaginatedRequestParams),),
    "prompts": (("prompts/list", PaginatedRequestParams),),
    "resources": (
        ("resources/list", PaginatedRequestParams),
        ("resources/templates/list", PaginatedRequestParams),
    ),
    "completions": (("completion/complete", CompleteRequestParams),),
}
CALLED: dict[str, tuple[CallMethod, type[RequestParams]]] = {
    "tools": ("tools/call", CallToolRequestParams),
    "prompts": ("prompts/get", GetPromptRequestParams),
    "resources": ("resources/read", ReadResourceRequestParams),
}
OF_2026 = ("resultType", "ttlMs", "cacheScope")
"""What the envelope of a result has in 2026 alone."""

STAND_INS: dict[str, dict[str, Any]] = {
    "tools/list": {"tools": []},
    "prompts/list": {"prompts": []},
    "resources/list": {"resources": []},
    "resources/templates/list": {"resourceTemplates": []},
    "completion/complete": {"completion": {"values": []}},
    "tools/call": {"content": []},
    "prompts/get": {"messages": []},
    "resources/read": {"contents": []},
}
"""What the SDK sees in place of a result, since it drops or refuses what it does not know."""

FRESH = CacheHint(ttl_ms=0, scope="private")
"""A 2025-era server says nothing of how long its lists hold."""


class ProxyServer(Server[Any]):
    """Says of changes what the server itself says of them, and passes its results on unchanged."""

    announcements: Announcements
    upstream: ServerCapabilities

    def __init__(self, *options: Any, **more: Any) -> None:
        super().__init__(*options, **more)
        self._results: dict[int, dict[str, Any]] = {}

    def passed_on(self, ctx: Context, result: dict[str, Any]) -> dict[str, Any]:
        """For handlers: the result goes around the SDK, and this goes through it."""
        self._results[id(ctx)] = result
        return {"resultType": "complete", **STAND_INS[ctx.method]}

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
        found.experimental = self.upstream.experimental
        extensions = self.upstream.extensions or {}
        found.extensions = {k: v for k, v in extensions.items() if k != TASKS_EXTENSION} or None
        if found.tools is not None:
            found.tools.list_changed = self.announcements.tools
        if found.prompts is not None:
            found.prompts.list_changed = self.announcements.prompts
        if found.resources is not None:
            found.resources.list_changed = self.announcements.resources
            found.resources.subscribe = self.announcements.watching
        return found


def offer(
    servers: Servers, name: str, main: Link, perform: Perform, announcements: Announcements
) -> ProxyServer:
    """What the server has now, under its own name."""
    known = main.client.server_info
    server = ProxyServer(
        known.name if known is not None else name,
        version=known.version if known is not None else "",
        title=known.title if known is not None else None,
        description=known.description if known is not None else None,
        website_url=known.website_url if known is not None else None,
        icons=known.icons if known is not None else None,
        instructions=main.client.instructions,
        get_tool_input_schema=lambda tool: _input_schema(servers, name, tool),
        cache_hints={
            "tools/list": FRESH,
            "prompts/list": FRESH,
            "resources/list": FRESH,
            "resources/templates/list": FRESH,
            "resources/read": FRESH,
        },
    )
    server.announcements = announcements
    server.upstream = capabilities = main.client.server_capabilities
    for kind, listings in LISTED.items():
        if getattr(capabilities, kind) is not None:
            for method, shape in listings:
                server.add_request_handler(method, shape, _passing(server, servers, name))
            if kind in CALLED:
                called, params = CALLED[kind]
                server.add_request_handler(called, params, _calling(server, called, perform))
    if capabilities.logging is not None:
        server.add_request_handler(
            "logging/setLevel", SetLevelRequestParams, _levelling(servers, name)
        )
    if announcements.are_any:
        listen = announcements.listen
        server.add_request_handler("subscriptions/listen", SubscriptionsListenRequestParams, listen)
    if announcements.watching:
        on, off = announcements.subscribe, announcements.unsubscribe
        server.add_request_handler("resources/subscribe", SubscribeRequestParams, on)
        server.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, off)
    return server


def _passing(server: ProxyServer, servers: Servers, name: str) -> Any:
    known = servers[name]

    async def passed(ctx: Context, _: RequestParams) -> dict[str, Any]:
        can = declared_by(ctx) if known.config.answers == "client" else None
        params = own_params(ctx.params or {})
        with as_mcp_errors():
            result = await known.request(ctx.method, params, can, principal_id(ctx))
        return server.passed_on(ctx, result)

    return passed


def _levelling(servers: Servers, name: str) -> Any:
    async def levelled(ctx: Context, params: SetLevelRequestParams) -> EmptyResult:
        set_log_level(ctx, params.level)
        servers[name].set_log_level(params.level)
        return EmptyResult()

    return levelled


def _calling(server: ProxyServer, method: CallMethod, perform: Perform) -> Any:
    async def called(ctx: Context, _: RequestParams) -> dict[str, Any]:
        return server.passed_on(ctx, await perform(ctx, method))

    return called


def _enveloped(ctx: Context, shaped: Any, result: dict[str, Any]) -> dict[str, Any]:
    """In the era of the client: a 2026-era result says its type and how long it holds."""
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
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


def _input_schema(servers: Servers, name: str, tool: str) -> Any:
    known = servers[name].main.tools.get(tool)
    return None if known is None else known.input_schema
