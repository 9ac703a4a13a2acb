"""Where a credential may stand in a request, and that it stays nowhere else."""

import logging
from typing import Any

import pytest
from starlette.requests import HTTPConnection

from session_server.identity.credentials import (
    HIDDEN,
    RedactingFormatter,
    chosen_subprotocol,
    credential_of,
    hide_credential,
    redacted,
)
from session_server.schemas.errors import AmbiguousRequestError


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


# Log lines without credentials


TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJqdGkiOiJhYmMifQ.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    "line",
    [
        f"GET /ahp?tkn={TOKEN} HTTP/1.1",
        f"GET /ahp?x=1&tkn={TOKEN}&y=2 HTTP/1.1",
        f"< Authorization: Bearer {TOKEN}",
        f"('authorization', 'Bearer {TOKEN}')",
        f"b'/ahp?tkn={TOKEN}'",
        "< Sec-WebSocket-Protocol: ahp, bearer.c2lnbmF0dXJl",
        f"token={TOKEN},",
        f"{TOKEN}",
        '< TEXT {"method":"authenticate","params":{"resource":"x","token": "c2lnbmF0dXJl"}}',
    ],
)
def test_what_looks_like_a_token_is_hidden(line: str) -> None:
    assert TOKEN not in redacted(line)
    assert "c2lnbmF0dXJl" not in redacted(line)
    assert HIDDEN in redacted(line)


def test_a_known_token_is_hidden_wherever_it_stands() -> None:
    assert redacted("x=plain-word;", ("plain-word",)) == f"x={HIDDEN};"


def test_text_around_a_token_stays() -> None:
    said = redacted(f'127.0.0.1:5 - "GET /v1/sessions?wait=5&tkn={TOKEN}&x=1 HTTP/1.1" 200')
    assert said == f'127.0.0.1:5 - "GET /v1/sessions?wait=5&tkn={HIDDEN}&x=1 HTTP/1.1" 200'


def test_arguments_and_tracebacks_are_redacted_too() -> None:
    formatter = RedactingFormatter(("plain-word",))
    try:
        int(f"plain-word {TOKEN}")
    except ValueError as error:
        problem = (type(error), error, error.__traceback__)
    record = logging.LogRecord("x", 40, "f.py", 1, "saw %s", (TOKEN,), problem)
    said = formatter.format(record)
    assert "ValueError" in said
    assert "plain-word" not in said
    assert TOKEN not in said
