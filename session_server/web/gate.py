"""The gate in front of the whole application: names, origins, and tokens out of sight.

Plain ASGI, so that nothing that is mounted behind it can be reached around it.
"""

import sys
from collections import Counter

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from session_server.host.errors import StartError
from session_server.identity.access import Access
from session_server.identity.credentials import hide_credential
from session_server.identity.errors import TurnedAwayError
from session_server.identity.origins import (
    check_direct,
    check_host,
    check_origin,
    check_unambiguous,
)
from session_server.log.errors import LogError
from session_server.web.caller import CHARGE
from session_server.web.problems import answer_to

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
