"""How frozen values change: what stays the same stays the same object, and compares as JSON."""

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from session_server.schemas.wire import encode_variant

S = TypeVar("S", bound=msgspec.Struct)

_encode = msgspec.json.Encoder(enc_hook=encode_variant, order="deterministic").encode


def updated(value: S, **changes: Any) -> S:
    """`value` with these fields, or the very same object if they hold already."""
    for name, new in changes.items():
        if not is_same(getattr(value, name), new):
            return msgspec.structs.replace(value, **changes)
    return value


def encoded_size(value: Any) -> int:
    return len(_encode(value))


def latest(values: Sequence[S], number: int, size: int) -> tuple[S, ...]:
    """The last of them: at most so many, with at most so many bytes; the very last always is."""
    first = len(values)
    while first > 0 and len(values) - first < number:
        size -= encoded_size(values[first - 1])
        if size < 0 and first < len(values):
            break
        first -= 1
    return tuple(values[first:])


def is_same(old: Any, new: Any) -> bool:
    """Equal as JSON: for Python `1`, `1.0` and `True` are equal, for mirrors they are not."""
    return old is new or (old == new and _encode(old) == _encode(new))
