"""How a frozen value changes: into a new one, or into itself when nothing differs."""

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from ..schemas.variants import encode_variant

S = TypeVar("S", bound=msgspec.Struct)

_encode = msgspec.json.Encoder(enc_hook=encode_variant, order="deterministic").encode


def updated(value: S, **changes: Any) -> S:
    """`value` with these fields, or the very same object if they hold already."""
    for name, new in changes.items():
        if not _is_same(getattr(value, name), new):
            return msgspec.structs.replace(value, **changes)
    return value


def latest(values: Sequence[S], number: int, size: int) -> tuple[S, ...]:
    """The last of them: at most so many, with at most so many bytes; the very last always is."""
    first = len(values)
    while first > 0 and len(values) - first < number:
        size -= len(_encode(values[first - 1]))
        if size < 0 and first < len(values):
            break
        first -= 1
    return tuple(values[first:])


def _is_same(old: Any, new: Any) -> bool:
    """Python takes `1`, `1.0` and `True` for equal; JSON, and so every mirror, does not."""
    return old is new or (old == new and _encode(old) == _encode(new))
