"""Where MCP clients come in: `/mcp` for the ask tools, `/mcp/{server}` for each gateway."""

from collections.abc import Callable

import msgspec
from fastapi import FastAPI
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from session_server.calls.errors import UnknownServerError, UnreachableError
from session_server.gateway.gateway import Gateway
from session_server.gateway.visitors import introduce
from session_server.schemas.principals import Principal

PrincipalOf = Callable[[HTTPConnection], Principal]


def include_doors(app: FastAPI, principal_of: PrincipalOf) -> None:
    """Who comes in is proved as everywhere else, and turned away as everywhere else."""
    app.router.routes.append(Route("/mcp", _AskDoor(principal_of)))
    app.router.routes.append(Route("/mcp/{server}", _ServerDoor(principal_of)))


class _AskDoor:
    def __init__(self, principal_of: PrincipalOf) -> None:
        self._principal_of = principal_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gateway = _entered(scope, self._principal_of)
        await gateway.ask_tools(scope, receive, send)


class _ServerDoor:
    def __init__(self, principal_of: PrincipalOf) -> None:
        self._principal_of = principal_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gateway = _entered(scope, self._principal_of)
        name: str = scope["path_params"]["server"]
        try:
            served = await gateway.served(name)
        except UnknownServerError as error:
            await _no(404, INVALID_REQUEST, str(error))(scope, receive, send)
        except UnreachableError as error:
            words = f"The MCP server {name!r} cannot be reached: {error}."
            await _no(503, INTERNAL_ERROR, words)(scope, receive, send)
        else:
            await served(scope, receive, send)


def _no(status: int, code: int, words: str) -> Response:
    """In the words of MCP, for its clients show no others."""
    error = {"code": code, "message": words}
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": None, "error": error})
    return Response(body, status, media_type="application/json")


def _entered(scope: Scope, principal_of: PrincipalOf) -> Gateway:
    connection = HTTPConnection(scope)
    introduce(scope, principal_of(connection))
    gateway: Gateway = connection.app.state.gateway
    return gateway
