"""Whether new configuration values fit the schema that describes them."""

from collections.abc import Callable, Mapping
from typing import Any

from ..schemas.config import ConfigPropertySchema
from ..schemas.refusals import Refusal, RefusalCode

_FITS: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def check_config(
    properties: Mapping[str, ConfigPropertySchema], values: Mapping[str, Any]
) -> Refusal | None:
    for name, value in values.items():
        shape = properties.get(name)
        if shape is None:
            return _refusal(f"There is no setting {name!r}.")
        if shape.read_only:
            return _refusal(f"The setting “{shape.title}” is read-only.")
        if not _fits(shape, value):
            return _refusal(f"The setting “{shape.title}” does not take this value.")
    return None


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
