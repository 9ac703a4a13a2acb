"""Text formats and patterns of MCP forms, and which web addresses people may be asked to open."""

import re
from collections.abc import Callable
from datetime import date, datetime
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Any
from unicodedata import category

import msgspec
import re2
from email_validator import EmailNotValidError, validate_email

from session_server.schemas.limits import PATTERN_CHARS


def matches(pattern: str, text: str) -> bool:
    """Whether the pattern is found anywhere in the text, as JSON Schema has it."""
    compiled = _compiled(pattern)
    return compiled is None or compiled.search(text) is not None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    if len(pattern) > PATTERN_CHARS:
        return None
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 1 << 20
    try:
        return re2.compile(pattern, options)
    except re2.error:
        return None


_DATE_TIME = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII | re.IGNORECASE
)

# RFC 3986, appendix A. No maintained library checks a URI strictly: they normalise it.
_PCHAR = r"(?:[\w.~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})"
_URI = re.compile(
    rf"[A-Za-z][A-Za-z0-9+.-]*:"
    rf"(?://(?:(?:[\w.~!$&'()*+,;=:-]|%[0-9A-Fa-f]{{2}})*@)?"
    rf"(?:\[(?P<ip6>[0-9A-Fa-f:.]+)\]|(?:[\w.~!$&'()*+,;=-]|%[0-9A-Fa-f]{{2}})*)"
    rf"(?::(?P<port>\d{{0,5}}))?(?:/{_PCHAR}*)*"
    rf"|/(?:{_PCHAR}+(?:/{_PCHAR}*)*)?|{_PCHAR}+(?:/{_PCHAR}*)*|)"
    rf"(?:\?(?:{_PCHAR}|[/?])*)?(?:#(?:{_PCHAR}|[/?])*)?",
    re.ASCII,
)

_WEB_ADDRESS = re.compile(
    r"https?://(?:\[(?P<ip6>[0-9a-f:.]+)\]|(?P<name>[^\s\\/?#@:\[\]]+))"
    r"(?::(?P<port>[0-9]{0,5}))?(?:[/?#][^\s\\]*)?",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.IGNORECASE)
_NAME_MARKS = frozenset("-_0123456789")


def is_email(text: str) -> bool:
    """An address that could exist; whether it does is not for a form to find out.

    The library refuses domains of private networks (`.local`, `localhost`); under one more label
    their syntax is checked all the same.
    """
    return _is_accepted(lambda: validate_email(f"{text}.example", check_deliverability=False))


def is_uri(text: str) -> bool:
    """An absolute URI."""
    found = _URI.fullmatch(text)
    if found is None or int(found["port"] or 0) > 65_535:
        return False
    return found["ip6"] is None or _is_accepted(lambda: IPv6Address(found["ip6"]))


def is_web_address(text: str) -> bool:
    """Whether people may be asked to open this: http or https with a host, and without a user.

    The part before an `@` looks like the host and is not (`https://bank.example@evil.example`).
    Backslashes are refused because browsers read them as slashes, so that another host could be
    opened than the one shown; spaces, control and invisible characters hide what follows them.
    """
    found = _WEB_ADDRESS.fullmatch(text)
    if found is None or not text.isprintable():
        return False
    if not 0 < int(found["port"] or 80) <= 65_535:
        return False
    if found["ip6"] is not None:
        return _is_accepted(lambda: IPv6Address(found["ip6"]))
    return _is_host_name(found["name"])


def is_date(text: str) -> bool:
    return _is_accepted(lambda: msgspec.convert(text, date))


def is_date_time(text: str) -> bool:
    """RFC 3339, with its time zone."""
    is_complete = _DATE_TIME.fullmatch(text) is not None
    return is_complete and _is_accepted(lambda: msgspec.convert(text, datetime))


FORMATS: dict[str, tuple[Callable[[str], bool], str]] = {
    "email": (is_email, "an e-mail address, such as ana@example.com"),
    "uri": (is_uri, "a full URI, such as https://example.com"),
    "date": (is_date, "a date, such as 2026-07-28"),
    "date-time": (is_date_time, "a date and time with its zone, such as 2026-07-28T14:00:00Z"),
}
"""Name → check, and a description of what is valid."""


def _is_accepted(read: Callable[[], object]) -> bool:
    try:
        read()
    except (msgspec.ValidationError, EmailNotValidError, AddressValueError):
        return False
    return True


def _is_host_name(text: str) -> bool:
    """In any script. Browsers read numbers as addresses; only their usual form is allowed."""
    labels = text.removesuffix(".").split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return _is_accepted(lambda: IPv4Address(text))
    return all(_is_label(label) for label in labels)


def _is_label(text: str) -> bool:
    has_letters = all(c in _NAME_MARKS or category(c)[0] in "LM" for c in text)
    return has_letters and text.strip("-") == text != ""
