"""Credentials: found in a request, hidden from logs, turned into a principal, and their end."""

import asyncio
import logging
import re
import secrets
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from typing import Any, TypeVar
from urllib.parse import unquote_plus

from starlette.requests import HTTPConnection

from session_server.host.host import Host
from session_server.identity.failed_credentials import FailedCredentials
from session_server.identity.origins import Access
from session_server.identity.tokens import Tokens
from session_server.schemas.errors import (
    AmbiguousRequestError,
    BadCredentialError,
    NoCredentialError,
)
from session_server.schemas.principals import (
    AGENT_PREFIX,
    HOST,
    LOCAL_ID,
    OWNER_ID,
    SHARE_PREFIX,
    Principal,
    Role,
)

HIDDEN = "•••"

_ISSUED = re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]*")
_IN_QUERY = re.compile(r"(?i)\b(tkn=)[^&#\s\"'\\]+")
_IN_HEADER = re.compile(r"(?i)\b(bearer(?:\s+|\.))[^\s\"',\\]+")

_IN_JSON = re.compile(r'("token"\s*:\s*")[^"]+')


def redacted(text: str, known: tuple[str, ...] = ()) -> str:
    """The text without known credentials and without anything that looks like one."""
    for secret in known:
        text = text.replace(secret, HIDDEN)
    text = _ISSUED.sub(HIDDEN, text)
    text = _IN_QUERY.sub(rf"\1{HIDDEN}", text)
    text = _IN_JSON.sub(rf"\1{HIDDEN}", text)
    return _IN_HEADER.sub(rf"\1{HIDDEN}", text)


class RedactingFormatter(logging.Formatter):
    """Messages, arguments and tracebacks alike."""

    def __init__(self, known: tuple[str, ...] = ()) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s  %(message)s")
        self._known = known

    def format(self, record: logging.LogRecord) -> str:
        return redacted(super().format(record), self._known)


ASK_FOR_ANOTHER = "ask the host's owner for a new one"

T = TypeVar("T")


class _Waiting:
    """A request, as something that can be closed."""

    def __init__(self) -> None:
        self.closed_with: int | None = None
        self.end: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def close(self, code: int, reason: str) -> None:
        if not self.end.done():
            self.closed_with = code
            self.end.set_result(reason)


async def while_allowed(host: Host, principal: Principal, work: Awaitable[T]) -> T:
    """The result of the work; raises `BadCredentialError` once the credential is not valid."""
    if principal.credential is None:
        return await work
    waiting, task = _Waiting(), asyncio.ensure_future(work)
    host.connections.bind(principal, waiting)
    try:
        await asyncio.wait((task, waiting.end), return_when=asyncio.FIRST_COMPLETED)
        if waiting.end.done():
            reason = waiting.end.result()
            raise BadCredentialError(f"{reason[0].upper()}{reason[1:]}; {ASK_FOR_ANOTHER}.")
        return task.result()
    finally:
        host.connections.release(principal, waiting)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


PARAMETER = "tkn"
SUBPROTOCOL = "ahp"
"""Accepted if the client offers it; the subprotocol with the token is never echoed."""

TOKEN_SUBPROTOCOL = "bearer."  # noqa: S105
_OFFERED = b"sec-websocket-protocol"
_TAKEN = "session_server.credential"

TWO_CREDENTIALS = "The request carries two different tokens; send one."


def hide_credential(scope: MutableMapping[str, Any]) -> None:
    """Takes tokens out of the query and the subprotocols, before anything can log or echo them."""
    taken = [*_from_query(scope), *_from_subprotocols(scope)]
    if not taken:
        return
    scope[_TAKEN] = taken[0]
    if len(set(taken)) > 1:
        raise AmbiguousRequestError(TWO_CREDENTIALS)


def _from_query(scope: MutableMapping[str, Any]) -> Iterator[str]:
    query: bytes = scope.get("query_string", b"")
    if not query:
        return
    parts = query.decode("latin-1").split("&")
    kept = [part for part in parts if not _is_credential(part)]
    if len(kept) < len(parts):
        scope["query_string"] = "&".join(kept).encode("latin-1")
        yield from (unquote_plus(part.partition("=")[2]) for part in parts if _is_credential(part))


def _is_credential(part: str) -> bool:
    return unquote_plus(part.partition("=")[0]) == PARAMETER


def _from_subprotocols(scope: MutableMapping[str, Any]) -> Iterator[str]:
    offered: list[str] = scope.get("subprotocols", [])
    kept = [each for each in offered if not each.startswith(TOKEN_SUBPROTOCOL)]
    if len(kept) < len(offered):
        scope["subprotocols"] = kept
        rest = [(name, value) for name, value in scope["headers"] if name != _OFFERED]
        scope["headers"] = [*rest, (_OFFERED, ", ".join(kept).encode("latin-1"))]
        yield from (each[len(TOKEN_SUBPROTOCOL) :] for each in offered if each not in kept)


def credential_of(connection: HTTPConnection) -> str | None:
    """The token of the request, wherever it was; one that was sent twice must be the same."""
    taken: str | None = connection.scope.get(_TAKEN)
    scheme, _, text = connection.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer":
        return taken
    token = text.strip()
    if taken is not None and taken != token:
        raise AmbiguousRequestError(TWO_CREDENTIALS)
    return token


def chosen_subprotocol(connection: HTTPConnection) -> str | None:
    """The subprotocol to accept; a browser closes a WebSocket that accepts none of its offers."""
    return SUBPROTOCOL if SUBPROTOCOL in connection.scope.get("subprotocols", []) else None


PrincipalOf = Callable[[HTTPConnection], Awaitable[Principal]]
"""Proves who sends a request; raises an `AccessError` if nobody may send it."""

LOCAL = Principal(id=LOCAL_ID, role=Role.OWNER)
"""Anyone without a credential, where none is required."""

OWNER = Principal(id=OWNER_ID, role=Role.OWNER)
"""Anyone with the connection token."""

RESERVED = frozenset({HOST.id, LOCAL.id, OWNER.id})
RESERVED_PREFIXES = (AGENT_PREFIX, "call:", SHARE_PREFIX, "token:")
"""Ids that tokens cannot have, because the host uses them itself."""

NO_CREDENTIAL = "A token is required: as `Authorization: Bearer …`, or as `?tkn=…` in the URL."


class Identities:
    def __init__(self, access: Access, tokens: Tokens) -> None:
        self.tokens = tokens
        self.failures = FailedCredentials()
        self._connection_token = access.connection_token

    def principal(self, credential: str | None, address: str | None = None) -> Principal:
        """The principal of a credential; failures are counted and throttled by their address."""
        if credential is None:
            if self._connection_token is not None:
                raise NoCredentialError(NO_CREDENTIAL)
            return LOCAL
        if self._is_connection_token(credential):
            return OWNER
        try:
            return self.tokens.principal(credential)
        except BadCredentialError as error:
            raise self.failures.failed(error, address) from None

    def _is_connection_token(self, credential: str) -> bool:
        """In constant time, so that the time does not show how much of it was right."""
        known = self._connection_token
        return known is not None and secrets.compare_digest(credential.encode(), known.encode())


def is_reserved(principal_id: str) -> bool:
    return principal_id in RESERVED or principal_id.startswith(RESERVED_PREFIXES)
