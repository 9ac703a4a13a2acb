"""JSON Schemas of our own tools, from the Structs that decode their arguments.

Written out without references: not every client follows them.
"""

from typing import Any

import msgspec

DEFINITIONS = "#/$defs/"


def schema_of(shape: type[msgspec.Struct]) -> dict[str, Any]:
    found = msgspec.json.schema(shape)
    definitions: dict[str, Any] = found.pop("$defs", {})
    written: dict[str, Any] = _written_out(found, definitions)
    return written


def _written_out(node: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_written_out(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    here = dict(node)
    reference: str | None = here.pop("$ref", None)
    if reference is not None:
        here = {**definitions[reference.removeprefix(DEFINITIONS)], **here}
    return {key: _written_out(value, definitions) for key, value in here.items()}
