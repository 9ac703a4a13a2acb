"""The credential of a request: taken from where it was sent, and kept out of everything else.

It may stand in three places: `Authorization: Bearer …`, `?tkn=…` as in share links, and, for pages
that open a WebSocket and cannot set headers, a subprotocol `bearer.…` offered next to `ahp`.
"""

from collections.abc import Iterator, MutableMapping
from typing import Any
from urllib.parse import unquote_plus

from starlette.requests import HTTPConnection

from session_server.identity.errors import AmbiguousRequestError

PARAMETER = "tkn"
SUBPROTOCOL = "ahp"
"""What the host answers to a client that offers it; the subprotocol with the token never is."""

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
    """What a WebSocket is answered with; a browser ends one whose offers are all ignored."""
    return SUBPROTOCOL if SUBPROTOCOL in connection.scope.get("subprotocols", []) else None
