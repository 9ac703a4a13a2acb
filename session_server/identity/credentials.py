"""The credential of a request: taken from where it was sent, and kept out of everything else."""

from collections.abc import MutableMapping
from typing import Any
from urllib.parse import unquote_plus

from starlette.requests import HTTPConnection

PARAMETER = "tkn"
_TAKEN = "session_server.credential"


def hide_credential(scope: MutableMapping[str, Any]) -> None:
    """Takes the token out of the query, before anything can log or echo it."""
    query: bytes = scope.get("query_string", b"")
    if not query:
        return
    parts = query.decode("latin-1").split("&")
    kept = [part for part in parts if not _is_credential(part)]
    if len(kept) < len(parts):
        first = next(part for part in parts if _is_credential(part))
        scope[_TAKEN] = unquote_plus(first.partition("=")[2])
        scope["query_string"] = "&".join(kept).encode("latin-1")


def _is_credential(part: str) -> bool:
    return unquote_plus(part.partition("=")[0]) == PARAMETER


def credential_of(connection: HTTPConnection) -> str | None:
    """A bearer header, or else the token that was in the query."""
    scheme, _, token = connection.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip()
    taken: str | None = connection.scope.get(_TAKEN)
    return taken
