"""The principal of a request, and the gate in front of the application: hosts, origins, tokens."""

import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import msgspec
from fastapi import Depends, FastAPI
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from session_server.host.acting import StateWaiters
from session_server.host.errors import StartError
from session_server.host.host import Host
from session_server.host.open_connections import AUTHENTICATED
from session_server.http.problems import answer_to
from session_server.identity.credentials import Identities, credential_of, hide_credential
from session_server.identity.errors import NotAllowedError, TurnedAwayError
from session_server.identity.origins import (
    Access,
    check_direct,
    check_host,
    check_origin,
    check_unambiguous,
)
from session_server.log.errors import LogError
from session_server.schemas.limits import FRAME_BYTES
from session_server.schemas.principals import VIA_HEADER, Principal, Provenance, Role

T = TypeVar("T")

CHARGE = "session-server.charge"
"""Under this name a request's scope holds what takes the size of its answer."""


def caller(connection: HTTPConnection) -> Principal:
    """Whom the credential proves, or a `TurnedAwayError` or `TooFastError`."""
    address = None if connection.client is None else connection.client.host
    principal = identities_of(connection).principal(credential_of(connection), address)
    authenticated = connection.scope.get("extensions", {}).get(AUTHENTICATED)
    if authenticated is not None:
        authenticated()
    if connection.scope["type"] == "http":
        allowance = host_of(connection).allowances.of(principal.id)
        allowance.charge_request(body_size(connection))
        connection.scope[CHARGE] = allowance.charge_answer
    return as_declared(connection, principal)


def body_size(connection: HTTPConnection) -> int:
    """A body of unknown size counts as the largest; the server holds a body to its declared one."""
    if "transfer-encoding" in connection.headers:
        return FRAME_BYTES
    declared = connection.headers.get("content-length", "")
    return int(declared) if declared.isascii() and declared.isdigit() else 0


def as_declared(connection: HTTPConnection, principal: Principal) -> Principal:
    """Whoever says that no person is behind it is believed; the opposite cannot be said."""
    said = connection.headers.get(VIA_HEADER) or connection.query_params.get("via")
    if said != Provenance.POLICY:
        return principal
    return msgspec.structs.replace(principal, is_policy=True)


def identities_of(connection: HTTPConnection) -> Identities:
    identities: Identities = connection.app.state.identities
    return identities


def host_of(connection: HTTPConnection) -> Host:
    host: Host = connection.app.state.host
    return host


def waiting_of(connection: HTTPConnection) -> StateWaiters:
    waiting: StateWaiters = connection.app.state.waiting
    return waiting


def on_the_loop(find: Callable[[HTTPConnection], T]) -> Callable[[HTTPConnection], Awaitable[T]]:
    """FastAPI gives a thread to whatever is not async; what these look at belongs to the loop."""

    async def found(connection: HTTPConnection) -> T:
        return find(connection)

    return found


Caller = Annotated[Principal, Depends(on_the_loop(caller))]


async def owner(who: Caller) -> Principal:
    """For what is the owner's alone, such as giving access to others."""
    if who.role is not Role.OWNER or who.is_limited:
        raise NotAllowedError("Only an owner of the whole host may do this.")
    return who


Owner = Annotated[Principal, Depends(owner)]
TheIdentities = Annotated[Identities, Depends(on_the_loop(identities_of))]
TheHost = Annotated[Host, Depends(on_the_loop(host_of))]
TheWaiting = Annotated[StateWaiters, Depends(on_the_loop(waiting_of))]


DENIAL = "websocket.http.response"
EXPOSED = ("ETag", "Idempotency-Replayed", "Location", "Retry-After", "WWW-Authenticate")


class Gate:
    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, explaining(send))
            return
        headers = Headers(scope=scope)
        names = Counter(headers.keys())
        try:
            hide_credential(scope)
            check_unambiguous(names, headers)
            check_direct(self._access, names, scope.get("http_version", "1.1"))
            check_host(self._access, headers)
            check_origin(self._access, headers)
        except TurnedAwayError as error:
            await turn_away(error, scope, receive, send)
            return
        await self._app(scope, receive, charging(scope, send))


def explaining(send: Send) -> Send:
    """A start that the log does not allow ends with its reason, not with a traceback."""

    async def explained(message: Message) -> None:
        error = sys.exc_info()[1]
        is_failure = message["type"] == "lifespan.startup.failed"
        if is_failure and isinstance(error, (LogError, StartError)):
            message = {**message, "message": str(error)}
        await send(message)

    return explained


def charging(scope: Scope, send: Send) -> Send:
    """Charges an answer to who asked for it; streams, whose size is not known, are not charged."""

    async def charged(message: Message) -> None:
        if message["type"] == "http.response.start" and CHARGE in scope:
            size = Headers(raw=message["headers"]).get("content-length", "")
            scope[CHARGE](int(size or 0))
        await send(message)

    return charged


async def turn_away(error: Exception, scope: Scope, receive: Receive, send: Send) -> None:
    """Answers in place of the application; an upgrade that is refused is 403, as AHP says."""
    response = answer_to(error)
    if scope["type"] == "websocket":
        await _deny(response, scope, receive, send)
    else:
        await response(scope, receive, send)


async def _deny(response: Response, scope: Scope, receive: Receive, send: Send) -> None:
    if DENIAL not in scope.get("extensions", {}):
        await send({"type": "websocket.close"})
        return
    if response.status_code == 401:
        response.status_code = 403
    await response(scope, receive, send)


def include_gate(app: FastAPI, access: Access) -> None:
    """The last one in stands first."""
    if access.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=tuple(access.origins),
            allow_methods=("*",),
            allow_headers=("*",),
            expose_headers=EXPOSED,
        )
    app.add_middleware(Gate, access=access)
