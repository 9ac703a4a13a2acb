"""What of a call may be shown: all that its server says, without the secrets that it repeats.

A secret is recognised as it is and in every spelling that JSON (also JSON in JSON) and URLs have
for it: the text is decoded, and what decodes to a secret is hidden. Other encodings, such as
base64, are not recognised.
"""

import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

import msgspec

from ..schemas.calls import Call

HIDDEN = "•••"

SHORTEST_SECRET = 4
"""Shorter texts occur by chance; hiding them everywhere would make nonsense of what is shown."""

Span = tuple[int, int]


class _Encoding(NamedTuple):
    """How some bytes are written as others."""

    mark: bytes
    """What every escape begins with."""
    escape: re.Pattern[bytes]
    escapes: re.Pattern[bytes]
    """As many as can be decoded together, since a text may consist of nothing else."""
    decode: Callable[[re.Match[bytes]], bytes]
    inner: tuple["_Encoding", ...] = ()
    """What may have been applied before it."""


def _of_json(escapes: re.Match[bytes]) -> bytes:
    if not escapes[0].startswith(b"\\u"):
        return escapes[0][1::2].translate(_JSON_LETTERS)
    units = bytes.fromhex(escapes[0].replace(b"\\u", b"").decode())
    return units.decode("utf-16-be", "surrogatepass").encode("utf-8", "surrogatepass")


def _of_url(escapes: re.Match[bytes]) -> bytes:
    return bytes.fromhex(escapes[0].replace(b"%", b"").decode())


def _of_form(escapes: re.Match[bytes]) -> bytes:
    return escapes[0].replace(b"+", b" ")


_JSON_LETTERS = bytes.maketrans(b"bfnrt", b"\b\f\n\r\t")
_JSON = _Encoding(
    b"\\",
    re.compile(
        rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
        rb'|\\u[0-9a-fA-F]{4}|\\["\\/bfnrt]'
    ),
    re.compile(rb'(?:\\u[0-9a-fA-F]{4})+|(?:\\["\\/bfnrt])+'),
    _of_json,
)
_URL = _Encoding(
    b"%", re.compile(rb"%[0-9a-fA-F]{2}"), re.compile(rb"(?:%[0-9a-fA-F]{2})+"), _of_url
)
_URL_OF_JSON = _URL._replace(inner=(_JSON,))
_FORM = _Encoding(b"+", re.compile(rb"\+"), re.compile(rb"\++"), _of_form, (_URL_OF_JSON,))
_ENCODINGS = (_JSON._replace(inner=(_JSON, _URL)), _URL_OF_JSON, _FORM)

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
    wanted = {secret: _bytes(secret) for secret in secrets}
    return _masked(value, wanted) if wanted else value


def _texts(value: Any) -> list[str]:
    if _is_plain(value):
        text = value if isinstance(value, str) else _number_text(value)
        return [text] if len(text) >= SHORTEST_SECRET else []
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in inner for text in _texts(item)]


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _masked(value: Any, secrets: dict[str, bytes]) -> Any:
    if isinstance(value, str):
        return _masked_text(value, secrets)
    if isinstance(value, dict):
        return {_masked(key, secrets): _masked(inner, secrets) for key, inner in value.items()}
    if isinstance(value, list):
        return [_masked(inner, secrets) for inner in value]
    return HIDDEN if _is_plain(value) and _number_text(value) in secrets else value


def _masked_text(text: str, secrets: dict[str, bytes]) -> str:
    written = _bytes(text)
    pieces: list[bytes] = []
    shown_to = 0
    for start, end in sorted(_spans(written, secrets, _ENCODINGS)):
        if start >= shown_to:
            pieces += (written[shown_to:start], HIDDEN.encode())
        shown_to = max(shown_to, end)
    if not pieces:
        return text
    return b"".join((*pieces, written[shown_to:])).decode("utf-8", "surrogatepass")


def _spans(
    text: bytes, secrets: dict[str, bytes], encodings: tuple[_Encoding, ...]
) -> Iterator[Span]:
    """Where the secrets are, as they are or in these encodings."""
    for secret in secrets.values():
        start = text.find(secret)
        while start >= 0:
            yield start, start + len(secret)
            start = text.find(secret, start + len(secret))
    for encoding in encodings:
        if encoding.mark in text:
            decoded = encoding.escapes.sub(encoding.decode, text)
            if spans := list(_spans(decoded, secrets, encoding.inner)):
                yield from _as_written(text, encoding, spans)


def _as_written(text: bytes, encoding: _Encoding, spans: list[Span]) -> Iterator[Span]:
    """From where something is in the decoded text to where it is in the text."""
    starts, ends, decoded_ends = array("Q"), array("Q"), array("Q", (0,))
    for escape in encoding.escape.finditer(text):
        plain = escape.start() - (ends[-1] if ends else 0)
        decoded_ends.append(decoded_ends[-1] + plain + len(encoding.decode(escape)))
        starts.append(escape.start())
        ends.append(escape.end())
    starts.append(len(text))

    def written(at: int) -> Span:
        passed = bisect_right(decoded_ends, at) - 1
        place = at - decoded_ends[passed] + (ends[passed - 1] if passed else 0)
        return (place, place + 1) if place < starts[passed] else (starts[passed], ends[passed])

    for start, end in spans:
        yield written(start)[0], written(end - 1)[1]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _number_text(value: Any) -> str:
    """The same for 5 and 5.0: JSON has one kind of number."""
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)
