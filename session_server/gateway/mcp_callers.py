"""Who speaks to one of our MCP servers, through which client, and in which era."""

from collections.abc import MutableMapping
from typing import Any, NamedTuple, TypeAlias

import msgspec
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp_types import LOG_LEVEL_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.requests import HTTPConnection

from session_server.calls.requesters import Requester
from session_server.mcp_client.progress import LEVELS
from session_server.mcp_client.sdk import connection_of
from session_server.reducers.texts import session_name, visible_name
from session_server.schemas.principals import Principal, Role
from session_server.schemas.wire import Uri

SESSION_HEADER = "Session-Server-Session"
NAMELESS = "unnamed client"

_PRINCIPAL = "session_server.principal"
_REQUESTER = "session_server.requester"
_LOG_LEVEL = "session_server.log_level"

Context: TypeAlias = ServerRequestContext[Any, Any]


class McpCaller(NamedTuple):
    """`session` is what the header names, if it names one."""

    principal: Principal
    client: str
    is_modern: bool
    session: str | None = None


def introduce(scope: MutableMapping[str, Any], principal: Principal) -> None:
    """Lets a request know its principal."""
    scope[_PRINCIPAL] = principal


def introduce_to_sdk(scope: MutableMapping[str, Any]) -> None:
    """Lets the SDK keep sessions apart by principal."""
    principal = principal_in(scope)
    scope["user"] = AuthenticatedUser(
        AccessToken(token=principal.credential or "", client_id=principal.id, scopes=[])
    )


def principal_in(scope: MutableMapping[str, Any]) -> Principal:
    principal: Principal = scope[_PRINCIPAL]
    return principal


def caller_of(ctx: Context) -> McpCaller:
    request: HTTPConnection | None = ctx.request
    assert request is not None  # everything comes in over HTTP
    return McpCaller(
        principal=principal_in(request.scope),
        client=_client_name(ctx),
        is_modern=ctx.protocol_version in MODERN_PROTOCOL_VERSIONS,
        session=request.headers.get(SESSION_HEADER),
    )


def requester_in(scope: MutableMapping[str, Any]) -> Requester:
    """The client of this request, until its response has ended."""
    requester: Requester | None = scope.get(_REQUESTER)
    if requester is None:
        requester = scope[_REQUESTER] = Requester()
    return requester


def requester_of(ctx: Context) -> Requester:
    assert ctx.request is not None  # everything comes in over HTTP
    return requester_in(ctx.request.scope)


def where_to_answer(ctx: Context, uri: Uri) -> str:
    """For the user of the client: the session, and its page as the client reaches it."""
    assert ctx.request is not None  # everything comes in over HTTP
    reached = ctx.request.url
    return f"{uri}, at {reached.scheme}://{reached.netloc}/#/s/{session_name(uri)}"


def log_level_of(ctx: Context) -> str | None:
    """From which level on the client gets log messages: in 2026 it says so with each request."""
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        level = ((ctx.params or {}).get("_meta") or {}).get(LOG_LEVEL_META_KEY)
        return level if level in LEVELS else None
    return log_level_in(connection_of(ctx)) or LEVELS[0]


def log_level_in(connection: Connection) -> str | None:
    """The level that a 2025-era client has set."""
    level: str | None = connection.state.get(_LOG_LEVEL)
    return level


def set_log_level(ctx: Context, level: str) -> None:
    """For the connection of a 2025-era client."""
    connection_of(ctx).state[_LOG_LEVEL] = level


def principal_of(ctx: Context) -> Principal:
    assert ctx.request is not None  # everything comes in over HTTP
    return principal_in(ctx.request.scope)


def principal_id(ctx: Context) -> str:
    return principal_of(ctx).id


def _client_name(ctx: Context) -> str:
    params = ctx.session.client_params
    return visible_name(params.client_info.name if params is not None else "") or NAMELESS


def as_asker(principal: Principal) -> Principal:
    """An owner may ask in a session, as its agent does."""
    if principal.role is not Role.OWNER:
        return principal
    return msgspec.structs.replace(principal, role=Role.AGENT)
