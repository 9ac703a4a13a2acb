"""Who speaks to one of our MCP servers, through which client, and in which era."""

from collections.abc import MutableMapping
from typing import Any, NamedTuple, TypeAlias

import msgspec
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.context import ServerRequestContext
from mcp_types import LOG_LEVEL_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.requests import HTTPConnection

from session_server.calls.deliveries import Delivery, delivery_in
from session_server.mcp_client.progress import LEVELS
from session_server.reducers.texts import session_name, visible_name
from session_server.schemas.principals import Principal, Role
from session_server.schemas.wire import Uri

SESSION_HEADER = "Session-Server-Session"
NAMELESS = "unnamed client"

_PRINCIPAL = "session_server.principal"
_LOG_LEVEL = "session_server.log_level"

Context: TypeAlias = ServerRequestContext[Any, Any]


class Visitor(NamedTuple):
    """`session` is what the header names, if it names one."""

    principal: Principal
    client: str
    is_modern: bool
    session: str | None = None


def introduce(scope: MutableMapping[str, Any], principal: Principal) -> None:
    """Lets the SDK keep sessions apart by principal, and requests know theirs."""
    scope[_PRINCIPAL] = principal
    scope["user"] = AuthenticatedUser(
        AccessToken(token=principal.credential or "", client_id=principal.id, scopes=[])
    )


def principal_in(scope: MutableMapping[str, Any]) -> Principal:
    principal: Principal = scope[_PRINCIPAL]
    return principal


def visitor_of(ctx: Context) -> Visitor:
    request: HTTPConnection | None = ctx.request
    assert request is not None  # everything comes in over HTTP
    return Visitor(
        principal=principal_in(request.scope),
        client=_client_name(ctx),
        is_modern=ctx.protocol_version in MODERN_PROTOCOL_VERSIONS,
        session=request.headers.get(SESSION_HEADER),
    )


def delivery_of(ctx: Context) -> Delivery:
    """Of the answer to this request."""
    assert ctx.request is not None  # everything comes in over HTTP
    return delivery_in(ctx.request.scope)


def was_cancelled(ctx: Context) -> bool:
    """Whether the client has said that it does not want the answer (2025 era)."""
    outbound: Any = ctx.session._request_outbound  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    return bool(outbound.cancel_requested.is_set())


def place_to_answer(ctx: Context, uri: Uri) -> str:
    """For whoever reads it in the client: the session, and its page as the client reaches it."""
    assert ctx.request is not None  # everything comes in over HTTP
    reached = ctx.request.url
    return f"{uri}, at {reached.scheme}://{reached.netloc}/#/s/{session_name(uri)}"


def log_level_of(ctx: Context) -> str | None:
    """From which level on the client gets log messages: in 2026 it says so with each request."""
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        level = ((ctx.params or {}).get("_meta") or {}).get(LOG_LEVEL_META_KEY)
        return level if level in LEVELS else None
    connection = ctx.session._connection  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    return str(connection.state.get(_LOG_LEVEL, LEVELS[0]))


def set_log_level(ctx: Context, level: str) -> None:
    """For the connection of a 2025-era client."""
    connection = ctx.session._connection  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    connection.state[_LOG_LEVEL] = level


def principal_id(ctx: Context) -> str:
    assert ctx.request is not None  # everything comes in over HTTP
    return principal_in(ctx.request.scope).id


def _client_name(ctx: Context) -> str:
    hello = ctx.session.client_params
    return visible_name(hello.client_info.name if hello is not None else "") or NAMELESS


def as_asker(principal: Principal) -> Principal:
    """Whoever owns a session may ask in it, as its agent does."""
    if principal.role is not Role.OWNER:
        return principal
    return msgspec.structs.replace(principal, role=Role.AGENT)
