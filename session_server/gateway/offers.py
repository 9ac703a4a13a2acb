"""A configured server as our clients see it: the same tools, prompts and resources."""

from collections.abc import Awaitable, Callable
from typing import Any

from mcp.server import Server
from mcp.server.caching import CacheHint
from mcp_types import (
    CallToolRequestParams,
    CompleteRequestParams,
    GetPromptRequestParams,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    RequestParams,
    ServerCapabilities,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    UnsubscribeRequestParams,
)

from session_server.calls.links import Link
from session_server.calls.servers import Servers
from session_server.gateway.announcements import Announcements
from session_server.gateway.errors import told_in_mcp
from session_server.gateway.visitors import Context
from session_server.reducers.starts import own_params
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
COMPLETE = {"resultType": "complete"}
"""Said in 2026 alone; where it was not, it went without saying."""

FRESH = CacheHint(ttl_ms=0, scope="private")
"""A 2025-era server says nothing of how long its lists hold."""


class Offered(Server[Any]):
    """Says of changes what the server itself says of them."""

    announcements: Announcements

    def get_capabilities(self, *options: Any, **more: Any) -> ServerCapabilities:
        found = super().get_capabilities(*options, **more)
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
) -> Server[Any]:
    """What the server has now, under its own name."""
    known = main.client.server_info
    server = Offered(
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
    capabilities = main.client.server_capabilities
    for kind, listings in LISTED.items():
        if getattr(capabilities, kind) is not None:
            for method, shape in listings:
                server.add_request_handler(method, shape, _passing(servers, name))
            if kind in CALLED:
                called, params = CALLED[kind]
                server.add_request_handler(called, params, _calling(called, perform))
    if announcements.are_any:
        listen = announcements.listen
        server.add_request_handler("subscriptions/listen", SubscriptionsListenRequestParams, listen)
    if announcements.watching:
        on, off = announcements.subscribe, announcements.unsubscribe
        server.add_request_handler("resources/subscribe", SubscribeRequestParams, on)
        server.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, off)
    return server


def _passing(servers: Servers, name: str) -> Any:
    async def passed(ctx: Context, _: RequestParams) -> dict[str, Any]:
        with told_in_mcp():
            result = await servers.request(name, ctx.method, own_params(ctx.params or {}))
        return {**COMPLETE, **result}

    return passed


def _calling(method: CallMethod, perform: Perform) -> Any:
    async def called(ctx: Context, _: RequestParams) -> dict[str, Any]:
        return {**COMPLETE, **await perform(ctx, method)}

    return called


def _input_schema(servers: Servers, name: str, tool: str) -> Any:
    known = servers[name].tools.get(tool)
    return None if known is None else known.input_schema
