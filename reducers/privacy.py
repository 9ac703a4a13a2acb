"""What of a call may be shown: all that its server says, without the secrets that it repeats.

A secret is recognised as it is, escaped as in JSON (once or twice), percent-encoded as in URLs, and
escaped and then percent-encoded. Other encodings, such as base64, are not recognised.
"""

import functools
import json
import re
from collections.abc import Iterable
from typing import Any, TypeVar
from urllib.parse import quote, quote_plus

import msgspec

from ..schemas.calls import Call

HIDDEN = "•••"

SHORTEST_SECRET = 4
"""Shorter texts occur by chance; hiding them everywhere would make nonsense of what is shown."""

SHORT = 2_048
"""Longer secrets are in no URL, and are looked for as they are and escaped once, as in JSON."""

_UNCHANGED = re.compile(r"[A-Za-z0-9_.~-]*")
_PERCENT = re.compile(r"%[0-9A-F]{2}")
_LEFT_ALONE = ("", "/", "!'()*", ";,/?:@&=+$!'()*#")
"""What encoders of URLs leave as it is: all is encoded, Python's, JavaScript's two."""

T = TypeVar("T")


def shown_arguments(call: Call) -> str:
    """The arguments as text for people, with the private ones hidden."""
    arguments: dict[str, Any] = call.params.get("arguments") or {}
    shown = {
        name: HIDDEN if name in call.private_arguments else value
        for name, value in arguments.items()
    }
    return msgspec.json.encode(masked(call, shown)).decode()


def masked(call: Call, value: T) -> T:
    """What a server says, without the private arguments that it repeats."""
    arguments: dict[str, Any] = call.params.get("arguments") or {}
    secrets = {text for name in call.private_arguments for text in _texts(arguments.get(name))}
    return hidden(value, secrets)


def hidden(value: T, secrets: Iterable[str]) -> T:
    """The value with every secret in it replaced, in keys, texts and numbers."""
    forms = {form for secret in secrets for form in _forms(secret)}
    # The longest first, since one may be part of another.
    return _masked(value, sorted(forms, key=len, reverse=True)) if forms else value


def _forms(secret: str) -> Iterable[str]:
    """The ways in which common encoders write it."""
    return _short_forms(secret) if len(secret) <= SHORT else {secret, *_in_json(secret)}


@functools.lru_cache(maxsize=256)
def _short_forms(secret: str) -> frozenset[str]:
    if _UNCHANGED.fullmatch(secret):
        return frozenset((secret,))
    once = _in_json(secret)
    return frozenset({secret, *once}.union(*map(_in_json, once), *map(_in_urls, (secret, *once))))


def _in_json(text: str) -> set[str]:
    written = {json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
    return written | {form.replace("/", "\\/") for form in written}


def _in_urls(text: str) -> set[str]:
    encoded = {quote(text, safe, errors="surrogatepass") for safe in _LEFT_ALONE}
    encoded.add(quote_plus(text, errors="surrogatepass"))
    return encoded | {_PERCENT.sub(lambda found: found[0].lower(), form) for form in encoded}


def _texts(value: Any) -> list[str]:
    if _is_plain(value):
        text = value if isinstance(value, str) else _number_text(value)
        return [text] if len(text) >= SHORTEST_SECRET else []
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in inner for text in _texts(item)]


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _masked(value: Any, secrets: list[str]) -> Any:
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, HIDDEN)
        return value
    if isinstance(value, dict):
        return {_masked(key, secrets): _masked(inner, secrets) for key, inner in value.items()}
    if isinstance(value, list):
        return [_masked(inner, secrets) for inner in value]
    return HIDDEN if _is_plain(value) and _number_text(value) in secrets else value


def _number_text(value: Any) -> str:
    """The same for 5 and 5.0: JSON has one kind of number."""
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)
