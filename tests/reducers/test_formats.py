"""Formats and patterns: what they take, and that nothing makes them hang."""

import json
from itertools import chain
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from session_server.reducers.forms.formats import FORMATS, is_web_address, matches
from session_server.schemas.limits import PATTERN_CHARS

ADDRESSES = json.loads((Path(__file__).parents[1] / "corpus" / "web_addresses.json").read_text())

GOOD = {
    "email": ["ana@example.com", "b.o+list@sub.example.org", "ü@exämple.org", "a@intranet.local"],
    "uri": [
        "https://example.com",
        "http://ana:secret@example.com:8080/a/b?c=d&e#f",
        "http://[2001:db8::1]:80/",
        "urn:isbn:0451450523",
        "mailto:ana@example.com",
        "file:///etc/hosts",
        "x:/a",
        "x:",
        "http://a/%C3%A4",
    ],
    "date": ["2026-07-28", "2024-02-29"],
    "date-time": ["2026-07-28T14:00:00Z", "2026-07-28t14:00:00.25+02:00"],
}
BAD = {
    "email": ["", "ana", "@", "a@", "Ana <a@example.com>", "a b@example.com", "a@example.com\n"],
    "uri": [
        "",
        "example.com",
        "/a/b",
        "http://a b",
        "http://exämple.com",
        "http://a/%zz",
        "http://a\n",
        "http://[::1",
        "http://[1:2]/",
        "http://a:99999/",
        f"http://a:{'9' * 5000}/",
        "1http://a",
        "x://a/<>",
    ],
    "date": ["", "20260728", "2026-02-30", "2026-7-28", "2026-07-28\n", "28.07.2026"],
    "date-time": [
        "",
        "2026-07-28",
        "2026-07-28T14:00:00",
        "2026-07-28 14:00:00Z",
        "2026-07-28T25:00:00Z",
        "2026-07-28T14:00:00+0200",
        "2026-02-30T14:00:00Z",
    ],
}


@pytest.mark.proves("mcp.form.formats")
@pytest.mark.parametrize("name", FORMATS)
def test_each_format_takes_the_good_and_refuses_the_bad(name: str) -> None:
    fits, message = FORMATS[name]
    assert [text for text in GOOD[name] if not fits(text)] == []
    assert [text for text in BAD[name] if fits(text)] == []
    assert message


@given(st.sampled_from(sorted(FORMATS)), st.text() | st.sampled_from([*chain(*GOOD.values())]))
def test_what_fits_here_fits_a_json_schema_validator(name: str, text: str) -> None:
    if FORMATS[name][0](text):
        assert Draft202012Validator.FORMAT_CHECKER.conforms(text, name)


def test_a_pattern_is_searched_not_anchored() -> None:
    assert matches("b", "abc")
    assert not matches("^b", "abc")


@pytest.mark.proves("mcp.form.pattern-hint")
@pytest.mark.parametrize("pattern", ["(?=a)b", r"(a)\1", "(", "x" * (PATTERN_CHARS + 1)])
def test_a_pattern_that_cannot_run_refuses_nothing(pattern: str) -> None:
    assert matches(pattern, "anything")


@pytest.mark.proves("mcp.form.pattern-linear")
def test_a_hostile_pattern_takes_no_time() -> None:
    """A backtracking engine needs 2^40 steps for this; the bound is seconds away from both."""
    started = process_time()
    assert not matches("^(a+)+$", "a" * 40 + "!")
    assert process_time() - started < 5


@pytest.mark.parametrize("address", ADDRESSES["openable"])
def test_http_and_https_addresses_with_a_host_may_be_opened(address: str) -> None:
    assert is_web_address(address)


@pytest.mark.parametrize("address", ADDRESSES["refused"])
def test_files_options_and_hidden_characters_are_no_web_addresses(address: str) -> None:
    assert not is_web_address(address)
