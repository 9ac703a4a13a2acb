"""Log lines without credentials."""

import logging

import pytest

from session_server.identity.credentials import HIDDEN, RedactingFormatter, redacted

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


def test_what_is_beside_it_stays() -> None:
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
