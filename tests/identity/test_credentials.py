"""Where a credential may stand in a request, and that it stays nowhere else."""

from typing import Any

import pytest
from starlette.requests import HTTPConnection

from session_server.identity.credentials import credential_of, hide_credential


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
        (b"tkn=first&tkn=second", b"", "first"),
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
    ("header", "credential"),
    [
        (b"Bearer abc", "abc"),
        (b"bearer   abc ", "abc"),
        (b"Bearer", ""),
        (b"Basic abc", "query"),
        (b"", "query"),
    ],
)
def test_a_bearer_header_counts_before_the_query(header: bytes, credential: str) -> None:
    scope = scope_of(b"tkn=query", (b"authorization", header))
    assert credential_of(HTTPConnection(scope)) == credential
