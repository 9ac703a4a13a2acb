"""The gate in front of the application: it checks `Host`, `Origin` and proxies before any route."""

import sys
from collections import Counter

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from session_server.http.dependencies import CHARGE, is_draining
from session_server.http.problems import respond_to
from session_server.identity.credentials import hide_credential
from session_server.identity.origins import (
    Access,
    check_direct,
    check_host,
    check_origin,
    check_unambiguous,
)
from session_server.log.protocol import LogError
from session_server.schemas.errors import AccessError, StartError

DENIAL = "websocket.http.response"
EXPOSED = ("ETag", "Idempotency-Replayed", "Location", "Retry-After", "WWW-Authenticate")


class Gate:
    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, explain_failed_start(send))
            return
        headers = Headers(scope=scope)
        names = Counter(headers.keys())
        try:
            hide_credential(scope)
            check_unambiguous(names, headers)
            check_direct(self._access, names, scope.get("http_version", "1.1"))
            check_host(self._access, headers)
            check_origin(self._access, headers, is_upgrade=scope["type"] == "websocket")
        except AccessError as error:
            await refuse(error, scope, receive, send)
            return
        await self._app(scope, receive, charge_answer(scope, send))


def explain_failed_start(send: Send) -> Send:
    """A failed start is reported with its reason, not with a traceback."""

    async def explained(message: Message) -> None:
        error = sys.exc_info()[1]
        is_failure = message["type"] == "lifespan.startup.failed"
        if is_failure and isinstance(error, (LogError, StartError)):
            message = {**message, "message": str(error)}
        await send(message)

    return explained


def charge_answer(scope: Scope, send: Send) -> Send:
    """Charges the size of an answer to its principal; streams have no known size and are free.

    While the server is being stopped, an answer is the last one on its connection.
    """

    async def charged(message: Message) -> None:
        if message["type"] == "http.response.start":
            if CHARGE in scope:
                size = Headers(raw=message["headers"]).get("content-length", "")
                scope[CHARGE](int(size or 0))
            if is_draining(scope["app"]):
                message = {**message, "headers": [*message["headers"], (b"connection", b"close")]}
        await send(message)

    return charged


async def refuse(error: Exception, scope: Scope, receive: Receive, send: Send) -> None:
    """Answers in place of the application; a refused upgrade is 403, as AHP requires."""
    response = respond_to(error)
    if scope["type"] == "websocket":
        if DENIAL not in scope.get("extensions", {}):
            await send({"type": "websocket.close"})
            return
        if response.status_code == 401:
            response.status_code = 403
    await response(scope, receive, send)


def include_gate(app: FastAPI, access: Access) -> None:
    """The middleware that is added last runs first."""
    if access.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=tuple(access.origins),
            allow_methods=("*",),
            allow_headers=("*",),
            expose_headers=EXPOSED,
        )
    app.add_middleware(Gate, access=access)
