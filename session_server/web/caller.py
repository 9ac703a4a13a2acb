"""Who is calling: the principal behind an HTTP request or a WebSocket upgrade."""

from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import msgspec
from fastapi import Depends
from starlette.requests import HTTPConnection

from session_server.host.connections import AUTHENTICATED
from session_server.host.host import Host
from session_server.host.waiting import Waiting
from session_server.identity.credentials import credential_of
from session_server.identity.errors import NotAllowedError
from session_server.identity.identities import Identities
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


def waiting_of(connection: HTTPConnection) -> Waiting:
    waiting: Waiting = connection.app.state.waiting
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
TheWaiting = Annotated[Waiting, Depends(on_the_loop(waiting_of))]
