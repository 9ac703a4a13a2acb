"""Where MCP clients come in: `/mcp` for the ask tools, `/mcp/{server}` for each gateway."""

from collections.abc import Callable

from mcp_types import INVALID_REQUEST
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from session_server.calls.service import Calls
from session_server.gateway.announcements import Announcements
from session_server.gateway.ask_tools import AskTools
from session_server.gateway.client_calls import ClientCalls
from session_server.gateway.gateway_sessions import GatewaySessions
from session_server.gateway.long_polling import HoldLimits
from session_server.gateway.mcp_callers import introduce
from session_server.gateway.mcp_errors import ErrorBodies, not_served, refusal
from session_server.gateway.proxy import ProxyServer
from session_server.gateway.request_state import sealing
from session_server.gateway.server_app import ServerApp
from session_server.host.async_api import StateWaiters
from session_server.host.host import Host
from session_server.identity.credentials import PrincipalOf, while_allowed
from session_server.mcp_client.connections.connection import Link
from session_server.mcp_client.servers import Server
from session_server.reducers.calls.starting import NO_CALLS
from session_server.schemas.errors import BadCredentialError, UnknownServerError, UnreachableError
from session_server.schemas.principals import Principal

NO_QUESTIONS = "Only owners and agents can ask questions here."


class Gateway:
    """Our MCP servers: one for each configured server, and one with the ask tools.

    `key` is asked for when the first state is sealed.
    """

    def __init__(
        self,
        host: Host,
        waiting: StateWaiters,
        calls: Calls,
        key: Callable[[], bytes],
        limits: HoldLimits,
    ) -> None:
        self.host = host
        self._waiting = waiting
        self._calls = calls
        self._key = key
        self._limits = limits
        self._sessions = GatewaySessions(host)
        self._served: dict[str, ServerApp] = {}
        ask = AskTools(host, waiting, self._sessions, self._limits)
        self.ask_tools = ServerApp(host, ask.server(key), waiting.over)

    async def served(self, name: str) -> ServerApp:
        """Built when it is first asked for, when what the server offers is known."""
        if name not in self._served:
            server = self._calls.servers[name]
            main = await server.main.ready()
            if name not in self._served:
                self._served[name] = self._built(server, main)
        return self._served[name]

    def _built(self, server: Server, main: Link) -> ServerApp:
        announcements = Announcements(server, main.client.server_capabilities, self.host.spawn)
        calls = ClientCalls(
            self.host, self._calls, self._waiting, self._sessions, server.config, self._limits
        )
        proxy = ProxyServer(server, main, calls.serve_call, announcements)
        sealed = sealing(self._key, f"gateway:{server.config.name}")
        proxy.middleware[:] = [announcements.introduced, sealed, proxy.unchanged]
        return ServerApp(self.host, proxy, self._waiting.over, announcements.close)


class McpEndpoints:
    """Both of them, as one ASGI application. Principals are proved as everywhere else."""

    def __init__(self, principal_of: PrincipalOf, gateway: Gateway) -> None:
        self.gateway = gateway
        self._principal_of = principal_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        principal = await self._principal_of(HTTPConnection(scope))
        introduce(scope, principal)
        name: str | None = scope["path_params"].get("server")
        app: ASGIApp
        try:
            # A principal that may only watch or answer does not learn what there is to call.
            if not principal.may_create:
                app = refusal(403, INVALID_REQUEST, NO_QUESTIONS if name is None else NO_CALLS)
            else:
                app = self.gateway.ask_tools if name is None else await self.gateway.served(name)
        except (UnknownServerError, UnreachableError) as error:
            app = not_served(error, name)
        await _respond(self.gateway.host, principal, app, scope, receive, send)


async def _respond(
    host: Host, principal: Principal, app: ASGIApp, scope: Scope, receive: Receive, send: Send
) -> None:
    """Until the response has ended, or the credential has expired or was revoked."""
    has_begun = has_ended = False
    bodies = ErrorBodies(send)

    async def noting(message: Message) -> None:
        nonlocal has_begun, has_ended
        has_begun = True
        has_ended = message["type"] == "http.response.body" and not message.get("more_body")
        await bodies.send(message)

    try:
        await while_allowed(host, principal, app(scope, receive, noting))
    except BadCredentialError:
        if not has_begun:
            raise
        if not has_ended:  # an event stream that is cancelled ends itself
            await send({"type": "http.response.body", "body": b"", "more_body": False})
