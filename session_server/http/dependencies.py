"""What routes depend on: the principal of a request, the running services, and long polls."""

from collections.abc import AsyncGenerator, Callable
from contextlib import nullcontext
from typing import Annotated, Any, NamedTuple

import msgspec
from fastapi import Depends, FastAPI, Query, Request
from starlette.requests import HTTPConnection

from session_server.calls.service import Calls
from session_server.host.async_api import StateWaiters
from session_server.host.clients.open_connections import AUTHENTICATED
from session_server.host.host import Host
from session_server.http.streaming import LongPoll, OpenStreams
from session_server.identity.credentials import Identities, credential_of
from session_server.schemas.errors import NotAllowedError
from session_server.schemas.limits import FRAME_BYTES, WAIT_SECONDS
from session_server.schemas.principals import VIA_HEADER, Principal, Provenance, Role
from session_server.settings import Settings

CHARGE = "session-server.charge"
"""A request's scope holds under this name the function that charges the size of its answer."""


OUTDATED = "session-server.outdated"
"""Likewise, whether this node may not know what another one has acknowledged."""


class Services(NamedTuple):
    """What one application works with, from its start to its end."""

    host: Host
    identities: Identities
    settings: Settings
    waiting: StateWaiters
    calls: Calls
    streams: OpenStreams


def running(app: FastAPI) -> Services | None:
    """`None` before the application has started and after it was stopped."""
    services: Services | None = getattr(app.state, "services", None)
    return services


def is_draining(app: FastAPI) -> bool:
    """The host is stopping: it serves for a while, so that load balancers can move clients."""
    return getattr(app.state, "is_draining", False)


def services_of(connection: HTTPConnection) -> Services:
    services = running(connection.app)
    assert services is not None, "a request came before the start or after the end"
    return services


async def caller(connection: HTTPConnection) -> Principal:
    """The principal that the credential proves; raises `AccessError` or `RateLimitError`.

    The caller sees all that any node has acknowledged before: tokens, and what was done to them.
    """
    services = services_of(connection)
    connection.scope[OUTDATED] = not await services.host.caught_up()
    address = None if connection.client is None else connection.client.host
    principal = services.identities.principal(credential_of(connection), address)
    authenticated = connection.scope.get("extensions", {}).get(AUTHENTICATED)
    if authenticated is not None:
        authenticated()
    if connection.scope["type"] == "http":
        allowance = services.host.allowances.of(principal.id)
        allowance.charge_request(body_size(connection))
        connection.scope[CHARGE] = allowance.charge_answer
    # A client may declare that it is a program and not a person; never the opposite.
    declared = connection.headers.get(VIA_HEADER) or connection.query_params.get("via")
    if declared == Provenance.POLICY:
        principal = msgspec.structs.replace(principal, is_policy=True)
    return principal


def body_size(connection: HTTPConnection) -> int:
    """A body of unknown size counts as the largest; the server enforces a declared size."""
    if "transfer-encoding" in connection.headers:
        return FRAME_BYTES
    declared = connection.headers.get("content-length", "")
    return int(declared) if declared.isascii() and declared.isdigit() else 0


# All of these are async: FastAPI runs the others in a thread, and the services belong to the loop.


def _from(find: Callable[[Services], Any]) -> Any:
    async def found(connection: HTTPConnection) -> Any:
        return find(services_of(connection))

    return Depends(found)


TheHost = Annotated[Host, _from(lambda services: services.host)]
TheIdentities = Annotated[Identities, _from(lambda services: services.identities)]
TheWaiting = Annotated[StateWaiters, _from(lambda services: services.waiting)]
TheCalls = Annotated[Calls, _from(lambda services: services.calls)]
TheStreams = Annotated[OpenStreams, _from(lambda services: services.streams)]


Caller = Annotated[Principal, Depends(caller)]


async def _owner(who: Caller) -> Principal:
    """For what only an owner may do, such as giving access to others."""
    if who.role is not Role.OWNER or who.is_limited:
        raise NotAllowedError("Only an owner of the whole host may do this.")
    return who


Owner = Annotated[Principal, Depends(_owner)]


async def _long_poll(
    request: Request,
    host: TheHost,
    who: Caller,
    streams: TheStreams,
    wait: Annotated[
        float,
        Query(ge=0, le=WAIT_SECONDS, description="Seconds that the answer may be waited for."),
    ] = 0,
) -> AsyncGenerator[LongPoll]:
    """Counted before anything is done, so that a refusal has changed nothing."""
    with streams.long_poll(who) if wait else nullcontext():
        yield LongPoll(request, host, who, wait)


TheLongPoll = Annotated[LongPoll, Depends(_long_poll)]
