"""Who is calling: the principal behind an HTTP request or a WebSocket upgrade."""

from typing import Annotated

from fastapi import Depends
from starlette.requests import HTTPConnection

from session_server.host.host import Host
from session_server.host.waiting import Waiting
from session_server.schemas.principals import Principal, Role

LOCAL = Principal(id="local", role=Role.OWNER)
"""Whoever connects over loopback without a credential."""


def caller(_: HTTPConnection) -> Principal:
    return LOCAL


def host_of(connection: HTTPConnection) -> Host:
    host: Host = connection.app.state.host
    return host


def waiting_of(connection: HTTPConnection) -> Waiting:
    waiting: Waiting = connection.app.state.waiting
    return waiting


Caller = Annotated[Principal, Depends(caller)]
TheHost = Annotated[Host, Depends(host_of)]
TheWaiting = Annotated[Waiting, Depends(waiting_of)]
