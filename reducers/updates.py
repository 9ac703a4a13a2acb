"""How a frozen value changes: into a new one, or into itself when nothing differs."""

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


def _is_same(old: Any, new: Any) -> bool:
    """Python takes `1`, `1.0` and `True` for equal; JSON, and so every mirror, does not."""
    return old is new or (old == new and _encode(old) == _encode(new))
