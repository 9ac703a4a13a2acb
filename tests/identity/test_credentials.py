"""Where a credential may stand in a request, and that it stays nowhere else."""

from typing import Any

import pytest
from starlette.requests import HTTPConnection

from session_server.identity.credentials import (
    chosen_subprotocol,
    credential_of,
    hide_credential,
)
from session_server.identity.errors import AmbiguousRequestError


def scope_of(query: bytes = b"", *headers: tuple[bytes, bytes]) -> dict[str, Any]:
    scope: dict[str, Any] = {"type": "http", "query_string": query, "headers": list(headers)}
    hide_credential(scope)
    return scope


@pytest.mark.parametrize(
    ("query", "left", "credential"),
    [
        (b"tkn=abc", b"", "abc"),
        (b"wait=5&tkn=abc&x=%20y", b"wait=5&x=%20y", "abc"),
        (b"t%6Bn=a%2Db", b"", "a-b"),
        (b"tkn=same&tkn=same", b"", "same"),
        (b"tkn=", b"", ""),
        (b"tkn", b"", ""),
        (b"xtkn=abc", b"xtkn=abc", None),
        (b"", b"", None),
    ],
)
def test_the_token_is_taken_out_of_the_query(
    query: bytes, left: bytes, credential: str | None
) -> None:
    scope = scope_of(query)
    assert scope["query_string"] == left
    assert credential_of(HTTPConnection(scope)) == credential


@pytest.mark.parametrize(
    ("header", "query", "credential"),
    [
        (b"Bearer abc", b"", "abc"),
        (b"bearer   abc ", b"tkn=abc", "abc"),
        (b"Bearer", b"", ""),
        (b"Basic abc", b"tkn=query", "query"),
        (b"", b"tkn=query", "query"),
    ],
)
def test_a_bearer_header_carries_the_token(header: bytes, query: bytes, credential: str) -> None:
    scope = scope_of(query, (b"authorization", header))
    assert credential_of(HTTPConnection(scope)) == credential


def offering(*subprotocols: str, query: bytes = b"") -> dict[str, Any]:
    return {
        "type": "websocket",
        "query_string": query,
        "headers": [(b"sec-websocket-protocol", ", ".join(subprotocols).encode())],
        "subprotocols": list(subprotocols),
    }


def test_the_token_is_taken_out_of_the_subprotocols() -> None:
    scope = offering("ahp", "bearer.a-b.c")
    hide_credential(scope)
    connection = HTTPConnection(scope)
    assert credential_of(connection) == "a-b.c"
    assert chosen_subprotocol(connection) == "ahp"
    assert "a-b.c" not in str((scope["headers"], scope["subprotocols"]))


@pytest.mark.parametrize("offered", [(), ("other",), ("bearer.abc",)])
def test_only_a_known_subprotocol_is_chosen(offered: tuple[str, ...]) -> None:
    scope = offering(*offered)
    hide_credential(scope)
    assert chosen_subprotocol(HTTPConnection(scope)) is None


def test_two_different_tokens_are_refused_wherever_they_stand() -> None:
    with pytest.raises(AmbiguousRequestError):
        scope_of(b"tkn=first&tkn=second")
    for scope in (offering("bearer.a", "bearer.b"), offering("bearer.a", query=b"tkn=b")):
        with pytest.raises(AmbiguousRequestError):
            hide_credential(scope)
        assert scope["query_string"] == b""
    both = scope_of(b"tkn=query", (b"authorization", b"Bearer header"))
    with pytest.raises(AmbiguousRequestError):
        credential_of(HTTPConnection(both))
