"""Secrets that a server repeats: how they are recognised."""

import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from session_server.reducers.calls.redaction import END_CHARS, HIDDEN, SHORTEST_SECRET, masked
from session_server.schemas.limits import REDACTIONS_PER_VALUE
from tests.reducers.calling import call


def percent(text: str, **more: Any) -> str:
    return quote(text, errors="surrogatepass", **more)


def in_json(text: str) -> str:
    return json.dumps(text)[1:-1]


def units(text: str) -> list[str]:
    return [
        f"{unit:04x}" for unit in memoryview(text.encode("utf-16", "surrogatepass")[2:]).cast("H")
    ]


def all_escaped(text: str) -> str:
    return "".join(f"\\u{unit}" for unit in units(text))


def all_percent(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "surrogatepass"))


def mixed(encode: Callable[[str], str], usual: Callable[[str], str]) -> Callable[[str], str]:
    """Every third character as usual, the others escaped, in capitals and not."""

    def encoded(text: str) -> str:
        def one(at: int, character: str) -> str:
            escaped = encode(character)
            return (usual(character), escaped.lower(), escaped.upper().replace("U", "u"))[at % 3]

        return "".join(one(at, character) for at, character in enumerate(text))

    return encoded


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
    "JSON with every character escaped": all_escaped,
    "JSON with some characters escaped": mixed(all_escaped, in_json),
    "JSON in JSON with some characters escaped": lambda text: in_json(
        mixed(all_escaped, in_json)(text)
    ),
    "every byte of a URL": all_percent,
    "some bytes of a URL": mixed(all_percent, lambda text: percent(text, safe="")),
    "a URL in JSON": lambda text: all_escaped(percent(text, safe="")),
    "all of JSON in a URL": lambda text: all_percent(all_escaped(text)),
    "JSON in a URL": lambda text: percent(in_json(text), safe=""),
}


@pytest.mark.parametrize("how", ENCODERS)
@example(secret='s3 crét/+"\\\n🚀')
@example(secret='s3cr"et/päss&word+x<1')
@given(secret=st.text(min_size=SHORTEST_SECRET, max_size=200))
def test_private_arguments_are_hidden_in_every_common_encoding(how: str, secret: str) -> None:
    params = {"name": "deploy", "arguments": {"token": secret}}
    of = call(params=params, private_arguments=("token",))
    encoded = ENCODERS[how](secret)
    assert masked(of, encoded) == HIDDEN
    assert secret not in masked(of, f"before {encoded} after").removeprefix("before ")


def test_a_long_private_argument_is_hidden_in_json_too() -> None:
    letter = 'Dear "friend",\n' * 2_048
    params = {"name": "send", "arguments": {"letter": letter}}
    of = call(params=params, private_arguments=("letter",))
    assert masked(of, in_json(letter)) == HIDDEN
    assert masked(of, [letter, 5]) == [HIDDEN, 5]


def test_a_long_private_argument_is_hidden_up_to_its_end() -> None:
    letter = "".join(chr(0x4E00 + at) for at in range(500))
    params = {"name": "send", "arguments": {"letter": letter}}
    of = call(params=params, private_arguments=("letter",))
    begin, end = letter[:END_CHARS], letter[-END_CHARS:]
    shown = {
        f"a {letter} b {all_percent(letter)} c": f"a {HIDDEN} b {HIDDEN} c",
        f"a {begin} b": f"a {HIDDEN} b",
        f"a {end} b": f"a {end} b",
        f"{end} {begin}{end}": f"{end} {HIDDEN}{end}",
    }
    assert {text: masked(of, text) for text in shown} == shown


def test_many_private_arguments_are_looked_for() -> None:
    values = [f"value-{number:05}-{'x' * 20}" for number in range(100)]
    params = {"name": "send", "arguments": {"all": values}}
    of = call(params=params, private_arguments=("all",))
    assert masked(of, [*values, "another"]) == [HIDDEN] * 100 + ["another"]


def test_texts_that_repeat_secrets_too_often_are_hidden_as_a_whole() -> None:
    params = {"name": "send", "arguments": {"token": "s3cr3t"}}
    of = call(params=params, private_arguments=("token",))
    few = "is %733cr3t " * (REDACTIONS_PER_VALUE - 1)
    assert masked(of, few) == few.replace("%733cr3t", HIDDEN)
    many = "is %733cr3t " * REDACTIONS_PER_VALUE
    value = {"first s3cr3t": many, "second": ["a s3cr3t", "another", 5]}
    expected = {f"first {HIDDEN}": HIDDEN, "second": [HIDDEN, "another", 5]}
    assert masked(of, value) == expected


def test_only_what_decodes_to_a_secret_is_hidden() -> None:
    arguments = {"user": "abcd", "token": "abcd/efgh", "note": "h äh"}
    params = {"name": "deploy", "arguments": arguments}
    of = call(params=params, private_arguments=tuple(arguments))
    shown = {
        r"ä\n abcd\/efgh \n100%": rf"ä\n {HIDDEN} \n100%",
        r"\t%61bcd%2fefgh%20%C3%A4h%20": rf"\t{HIDDEN}%20",
        "1+1 h+%c3%a4h+abc": f"1+1 {HIDDEN}+abc",
        "abcdabcd": HIDDEN * 2,
        r"\u0061bc %zz \u00e": r"\u0061bc %zz \u00e",
    }
    assert {text: masked(of, text) for text in shown} == shown


def test_a_private_number_is_hidden_as_a_fraction_too() -> None:
    params = {"name": "pay", "arguments": {"pin": 471_147, "limit": 99_999.0}}
    of = call(params=params, private_arguments=("pin", "limit"))
    assert masked(of, [471_147, 471_147.0, 99_999, "99999", 1.5]) == [HIDDEN] * 4 + [1.5]
