"""Who is calling: the principal behind an HTTP request or a WebSocket upgrade."""

from typing import Annotated

import msgspec
from fastapi import Depends
from starlette.requests import HTTPConnection

from session_server.host.host import Host
from session_server.host.waiting import Waiting
from session_server.schemas.principals import VIA_HEADER, Principal, Provenance, Role

LOCAL = Principal(id="local", role=Role.OWNER)
"""Whoever connects over loopback without a credential."""


def caller(connection: HTTPConnection) -> Principal:
    return as_declared(connection, LOCAL)


def as_declared(connection: HTTPConnection, principal: Principal) -> Principal:
    """Whoever says that no person is behind it is believed; the opposite cannot be said."""
    said = connection.headers.get(VIA_HEADER) or connection.query_params.get("via")
    if said != Provenance.POLICY:
        return principal
    return msgspec.structs.replace(principal, is_policy=True)


def host_of(connection: HTTPConnection) -> Host:
    host: Host = connection.app.state.host
    return host


def waiting_of(connection: HTTPConnection) -> Waiting:
    waiting: Waiting = connection.app.state.waiting
    return waiting


Caller = Annotated[Principal, Depends(caller)]
TheHost = Annotated[Host, Depends(host_of)]
TheWaiting = Annotated[Waiting, Depends(waiting_of)]
