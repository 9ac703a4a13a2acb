"""Secrets that a server repeats: how they are recognised."""

import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from session_server.reducers.privacy import HIDDEN, SHORT, SHORTEST_SECRET, masked
from tests.reducers.calling import call


def percent(text: str, **more: Any) -> str:
    return quote(text, errors="surrogatepass", **more)


def in_json(text: str) -> str:
    return json.dumps(text)[1:-1]


ENCODERS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "JSON": in_json,
    "JSON with other letters": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "JSON of PHP": lambda text: in_json(text).replace("/", "\\/"),
    "JSON in JSON": lambda text: in_json(in_json(text)),
    "a part of a URL": lambda text: percent(text, safe=""),
    "a path": percent,
    "a form": lambda text: quote_plus(text, errors="surrogatepass"),
    "encodeURIComponent": lambda text: percent(text, safe="!'()*"),
    "lower case": lambda text: re.sub("%..", lambda it: it[0].lower(), percent(text, safe="")),
    "JSON in a URL": lambda text: percent(in_json(text), safe=""),
}


@pytest.mark.parametrize("how", ENCODERS)
@example(secret='s3 crét/+"\\\n🚀')
@given(secret=st.text(min_size=SHORTEST_SECRET, max_size=SHORT))
def test_private_arguments_are_hidden_in_every_common_encoding(how: str, secret: str) -> None:
    params = {"name": "deploy", "arguments": {"token": secret}}
    of = call(params=params, private_arguments=("token",))
    encoded = ENCODERS[how](secret)
    assert masked(of, encoded) == HIDDEN
    assert secret not in masked(of, f"before {encoded} after").removeprefix("before ")


def test_a_long_private_argument_is_hidden_in_json_too() -> None:
    letter = 'Dear "friend",\n' * SHORT
    params = {"name": "send", "arguments": {"letter": letter}}
    of = call(params=params, private_arguments=("letter",))
    assert masked(of, in_json(letter)) == HIDDEN
    assert masked(of, [letter, 5]) == [HIDDEN, 5]


def test_a_private_number_is_hidden_as_a_fraction_too() -> None:
    params = {"name": "pay", "arguments": {"pin": 471_147, "limit": 99_999.0}}
    of = call(params=params, private_arguments=("pin", "limit"))
    assert masked(of, [471_147, 471_147.0, 99_999, "99999", 1.5]) == [HIDDEN] * 4 + [1.5]
