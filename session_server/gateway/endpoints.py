"""Where MCP clients come in: `/mcp` for the ask tools, `/mcp/{server}` for each gateway."""

from collections.abc import Callable
from typing import NamedTuple

from fastapi import FastAPI
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST
from starlette.requests import HTTPConnection
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from session_server.gateway.gateway import Gateway
from session_server.gateway.mcp_callers import introduce
from session_server.gateway.mcp_errors import InWords, refusal
from session_server.host.host import Host
from session_server.identity.credentials import while_allowed
from session_server.identity.errors import BadCredentialError
from session_server.mcp_client.errors import UnknownServerError, UnreachableError
from session_server.schemas.principals import Principal, Role

NO_CALLS = "Only owners and agents can make calls."
NO_QUESTIONS = "Only owners and agents can ask questions here."

PrincipalOf = Callable[[HTTPConnection], Principal]


def include_doors(app: FastAPI, principal_of: PrincipalOf) -> None:
    """Who comes in is proved as everywhere else, and turned away as everywhere else."""
    app.router.routes.append(Route("/mcp", _AskDoor(principal_of)))
    app.router.routes.append(Route("/mcp/{server}", _ServerDoor(principal_of)))


class _AskDoor:
    def __init__(self, principal_of: PrincipalOf) -> None:
        self._principal_of = principal_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        entered = _entered(scope, self._principal_of)
        if entered.may_call:
            await entered.served(entered.gateway.ask_tools, scope, receive, send)
        else:
            await refusal(403, INVALID_REQUEST, NO_QUESTIONS)(scope, receive, send)


class _ServerDoor:
    def __init__(self, principal_of: PrincipalOf) -> None:
        self._principal_of = principal_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        entered = _entered(scope, self._principal_of)
        if not entered.may_call:
            await refusal(403, INVALID_REQUEST, NO_CALLS)(scope, receive, send)
            return
        name: str = scope["path_params"]["server"]
        try:
            served = await entered.gateway.served(name)
        except UnknownServerError as error:
            await refusal(404, INVALID_REQUEST, str(error))(scope, receive, send)
        except UnreachableError as error:
            words = f"The MCP server {name!r} cannot be used: {error}."
            await refusal(503, INTERNAL_ERROR, words)(scope, receive, send)
        else:
            await entered.served(served, scope, receive, send)


class _Entered(NamedTuple):
    gateway: Gateway
    host: Host
    principal: Principal

    @property
    def may_call(self) -> bool:
        """Whoever may only look on or answer is not even told what there is to call."""
        return self.principal.role in (Role.OWNER, Role.AGENT)

    async def served(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Until the answer is out, or the credential is no longer one."""
        has_begun = has_ended = False
        words = InWords(send)

        async def noting(message: Message) -> None:
            nonlocal has_begun, has_ended
            has_begun = True
            has_ended = message["type"] == "http.response.body" and not message.get("more_body")
            await words.send(message)

        try:
            await while_allowed(self.host, self.principal, app(scope, receive, noting))
        except BadCredentialError:
            if not has_begun:
                raise
            if not has_ended:  # an event stream that is cancelled ends itself
                await send({"type": "http.response.body", "body": b"", "more_body": False})


def _entered(scope: Scope, principal_of: PrincipalOf) -> _Entered:
    connection = HTTPConnection(scope)
    principal = principal_of(connection)
    introduce(scope, principal)
    state = connection.app.state
    return _Entered(state.gateway, state.host, principal)
