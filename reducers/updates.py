"""How a frozen value changes: into a new one, or into itself when nothing differs."""

from typing import Any, TypeVar

import msgspec

S = TypeVar("S", bound=msgspec.Struct)


def updated(value: S, **changes: Any) -> S:
    """`value` with these fields, or the very same object if they hold already."""
    for name, new in changes.items():
        old = getattr(value, name)
        if old is not new and old != new:
            return msgspec.structs.replace(value, **changes)
    return value
