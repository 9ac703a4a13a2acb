"""The declarations of the shapes that the page is checked against."""

from docs import typescript
from docs.wire_documents import json_schema


def test_every_shape_is_declared_once() -> None:
    lines = typescript.text().splitlines()
    declared = [line.split()[2] for line in lines if line.startswith("export ")]
    assert declared == sorted(json_schema()["$defs"])


def test_what_may_be_left_out_is_never_null() -> None:
    whole = {
        "$defs": {
            "Other": {
                "description": "Of two\nlines.",
                "properties": {
                    "title": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                    "given": {"anyOf": [{"$ref": "#/$defs/Kind"}, {"type": "null"}]},
                    "list": {"type": "array", "items": {"enum": ["a", "b"]}},
                    "map": {"type": "object", "additionalProperties": {"type": "integer"}},
                },
                "required": ["given", "list", "map"],
            },
            "Kind": {
                "anyOf": [
                    {"const": 1},
                    {"properties": {"kind": {"type": "string", "not": {"enum": ["a"]}}}},
                ]
            },
        }
    }
    assert typescript.declarations(whole).splitlines()[2:] == [
        "export type Kind = 1;",
        "",
        "/** Of two lines. */",
        "export interface Other {",
        "  readonly title?: string;",
        "  readonly given: Kind | null;",
        '  readonly list: readonly ("a" | "b")[];',
        "  readonly map: { readonly [key: string]: number };",
        "}",
    ]
