"""Who speaks to one of our MCP servers, through which client, and in which era."""

from collections.abc import MutableMapping
from functools import cached_property
from typing import Any, TypeAlias

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp_types import LOG_LEVEL_META_KEY
from starlette.requests import HTTPConnection

from session_server.calls.requesters import Requester
from session_server.mcp_client.progress import LEVELS
from session_server.mcp_client.sdk import connection_of, is_modern, plain
from session_server.reducers.calls.input_required import TASKS_EXTENSION
from session_server.reducers.texts import session_name, visible_name
from session_server.schemas.principals import Principal
from session_server.schemas.wire import Uri

SESSION_HEADER = "Session-Server-Session"
NAMELESS = "unnamed client"
PASSED_ON = ("elicitation", "sampling", "roots", "experimental", "extensions")

_PRINCIPAL = "session_server.principal"
_REQUESTER = "session_server.requester"
_LOG_LEVEL = "session_server.log_level"

Context: TypeAlias = ServerRequestContext[Any, Any]


class McpCaller:
    """Who makes a request. `session` is what the header names, if it names one.

    `requester` is its client until its response has ended.
    """

    def __init__(self, ctx: Context) -> None:
        self._request = _request_of(ctx)
        params = ctx.session.client_params
        name = visible_name(params.client_info.name if params is not None else "")
        self.ctx = ctx
        self.principal = principal_in(self._request.scope)
        self.requester = requester_in(self._request.scope)
        self.client = name or NAMELESS
        self.is_modern = is_modern(ctx.protocol_version)
        self.session: str | None = self._request.headers.get(SESSION_HEADER)

    @cached_property
    def declared(self) -> dict[str, Any]:
        """What the client can answer, and what it says of itself, as far as it is carried."""
        capabilities = self.ctx.session.client_capabilities
        if capabilities is None:
            return {}
        declared = plain(capabilities)
        if "extensions" in declared:
            declared["extensions"].pop(TASKS_EXTENSION, None)
        return {name: declared[name] for name in PASSED_ON if name in declared}

    @property
    def log_level(self) -> str | None:
        """From which level on it gets log messages: in 2026 it says so with each request."""
        if self.is_modern:
            level = ((self.ctx.params or {}).get("_meta") or {}).get(LOG_LEVEL_META_KEY)
            return level if level in LEVELS else None
        return log_level_in(connection_of(self.ctx)) or LEVELS[0]

    def where_to_answer(self, uri: Uri) -> str:
        """For the user of the client: the session, and its page as the client reaches it."""
        reached = self._request.url
        return f"{uri}, at {reached.scheme}://{reached.netloc}/#/s/{session_name(uri)}"


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


def requester_in(scope: MutableMapping[str, Any]) -> Requester:
    """The client of this request, until its response has ended."""
    requester: Requester | None = scope.get(_REQUESTER)
    if requester is None:
        requester = scope[_REQUESTER] = Requester()
    return requester


def log_level_in(connection: Connection) -> str | None:
    """The level that a 2025-era client has set."""
    level: str | None = connection.state.get(_LOG_LEVEL)
    return level


def set_log_level(ctx: Context, level: str) -> None:
    """For the connection of a 2025-era client."""
    connection_of(ctx).state[_LOG_LEVEL] = level


def _request_of(ctx: Context) -> HTTPConnection:
    request: HTTPConnection | None = ctx.request
    assert request is not None  # everything comes in over HTTP
    return request


def principal_of(ctx: Context) -> Principal:
    return principal_in(_request_of(ctx).scope)


def principal_id(ctx: Context) -> str:
    return principal_of(ctx).id
