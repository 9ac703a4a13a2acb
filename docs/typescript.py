"""Writes TypeScript declarations of AHP's shapes, for the page's type checker.

Made from the same JSON Schema as the reference. Everything is read-only, as states are. A field
that may be left out is never `null` in what the host sends, apart from changes of a summary, where
`null` says that a field was cleared. Kinds of open unions that this version does not know are left
out, since they would take the meaning from every comparison of a kind.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docs.wire_documents import json_schema

TARGET = Path(__file__).parents[1] / "build" / "page" / "client" / "types.d.ts"
"""Next to the page for the type checker: `rootDirs` in tests/page/tsconfig.json joins both."""

Schema = dict[str, Any]

OPENING = "// Written by docs/typescript.py from the shapes in schemas/."
_NAMES = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean"}


def declarations(document: Schema) -> str:
    """One exported type per definition."""
    shapes = document["$defs"]
    blocks = [block for name in sorted(shapes) for block in _declared(name, shapes[name])]
    return "\n".join([OPENING, "", *blocks])


def _declared(name: str, schema: Schema) -> Iterator[str]:
    yield from _comment(schema, "")
    if "properties" not in schema:
        yield f"export type {name} = {_type(schema)};\n"
        return
    yield f"export interface {name} {{"
    required = schema.get("required", ())
    for field, shape in schema["properties"].items():
        yield from _comment(shape, "  ")
        yield f"  readonly {_field(field, shape, is_required=field in required)};"
    yield "}\n"


def _comment(schema: Schema, indent: str) -> Iterator[str]:
    if "description" in schema:
        yield f"{indent}/** {' '.join(schema['description'].split())} */"


def _field(name: str, schema: Schema, *, is_required: bool) -> str:
    if is_required:
        return f"{name}: {_type(schema)}"
    return f"{name}?: {_type(_without_null(schema))}"


def _without_null(schema: Schema) -> Schema:
    if "anyOf" not in schema:
        return schema
    return {"anyOf": [part for part in schema["anyOf"] if part.get("type") != "null"]}


def _type(schema: Schema) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    if "oneOf" in schema or "anyOf" in schema:
        return _union(schema.get("oneOf") or schema["anyOf"])
    return _of_type(schema)


def _union(parts: list[Schema]) -> str:
    known = [_type(part) for part in parts if not _is_stranger(part)]
    return " | ".join(dict.fromkeys(known))


def _is_stranger(schema: Schema) -> bool:
    return any("not" in field for field in schema.get("properties", {}).values())


def _of_type(schema: Schema) -> str:
    match schema.get("type"):
        case "array":
            inner = _type(schema["items"])
            return f"readonly ({inner})[]" if "|" in inner else f"readonly {inner}[]"
        case "object":
            inner = _type(schema.get("additionalProperties", {}))
            return f"{{ readonly [key: string]: {inner} }}"
        case "null":
            return "null"
        case None:
            return "any"
        case name:
            return _NAMES[name]


def text() -> str:
    return declarations(json_schema())


def write() -> None:
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    write()
