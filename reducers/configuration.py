"""Whether new configuration values fit the schema that describes them."""

from collections.abc import Callable, Mapping
from typing import Any

from ..schemas.config import (
    ConfigPropertySchema,
    RootConfigState,
    SessionConfigPropertySchema,
    SessionConfigState,
)
from ..schemas.refusals import Refusal, RefusalCode

_FITS: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


Config = RootConfigState | SessionConfigState


def check_config(
    config: Config | None, changes: Mapping[str, Any], *, replace: bool
) -> Refusal | None:
    """What is named must be known, changeable and fitting; what `replace` drops, droppable."""
    shapes = {} if config is None else config.schema.properties
    for name, value in changes.items():
        shape = shapes.get(name)
        if shape is None:
            return _refusal(f"There is no setting {name!r}.")
        if _is_fixed(shape):
            return _refusal(f"The setting “{shape.title}” cannot be changed.")
        if not _fits(shape, value):
            return _refusal(f"The setting “{shape.title}” does not take this value.")
    return _check_dropped(config, changes) if replace and config is not None else None


def _check_dropped(config: Config, changes: Mapping[str, Any]) -> Refusal | None:
    needed = config.schema.required or ()
    for name in config.values.keys() - changes.keys():
        shape = config.schema.properties.get(name)
        if name in needed or (shape is not None and _is_fixed(shape)):
            return _refusal(f"The setting {name!r} cannot be left out.")
    return None


def _is_fixed(shape: ConfigPropertySchema) -> bool:
    """Read-only, or a session's that was meant to be chosen at its creation."""
    if isinstance(shape, SessionConfigPropertySchema) and not shape.session_mutable:
        return True
    return bool(shape.read_only)


def _fits(shape: ConfigPropertySchema, value: Any) -> bool:
    """Type all the way down; a fixed set of strings is binding."""
    if not _FITS[shape.type](value):
        return False
    if shape.type == "array" and shape.items is not None:
        return all(_fits(shape.items, item) for item in value)
    if shape.type == "object":
        known = shape.properties or {}
        return all(name in value for name in shape.required or ()) and all(
            _fits(known[name], item) for name, item in value.items() if name in known
        )
    return shape.enum is None or value in shape.enum or _is_open(shape)


def _is_open(shape: ConfigPropertySchema) -> bool:
    """A dynamic enumeration only lists suggestions."""
    return bool(getattr(shape, "enum_dynamic", None))


def _refusal(message: str) -> Refusal:
    return Refusal(code=RefusalCode.NOT_CONFIGURABLE, message=message)
