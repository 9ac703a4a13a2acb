"""The generated documents and their parts, for the tests of them."""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import jsonschema
import msgspec

from docs.wire_documents import CLIENT_FRAMES, asyncapi, json_schema
from session_server.schemas import codec
from session_server.schemas.ahp import frames
from session_server.schemas.wire import Unknown, Variant, Wire

SCHEMA = json_schema()
ASYNCAPI = asyncapi()
DEFS: dict[str, Any] = SCHEMA["$defs"]


@cache
def by_payload(message: str) -> jsonschema.Draft7Validator:
    """AsyncAPI's schemas are a superset of draft 7."""
    target = f"#/components/messages/{message}/payload"
    return jsonschema.Draft7Validator({**ASYNCAPI, "$ref": target})


def on_the_wire(value: Any) -> Any:
    return json.loads(codec.encode(value))


def name_of(value: object) -> str:
    return value if isinstance(value, str) else type(value).__name__


def refs(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "$ref" in value:
            assert list(value) == ["$ref"]  # draft 7 would ignore anything beside it
            yield value["$ref"]
        for item in value.values():
            yield from refs(item)
    elif isinstance(value, list):
        for item in value:
            yield from refs(item)


def resolved(document: Any, ref: str) -> Any:
    assert ref.startswith("#/")
    for key in ref[2:].split("/"):
        document = document[key]
    return document


def wire_shapes(base: type[Wire] = Wire) -> Iterator[type[Wire]]:
    for shape in base.__subclasses__():
        if shape.__module__.startswith("session_server.schemas."):
            yield shape
            yield from wire_shapes(shape)


LATER = "session_server.schemas.ahp1."
"""Shapes of later versions, which have published documents of their own."""


def leaves(base: type[Wire] = Wire) -> Iterator[type[Wire]]:
    """The shapes that only later versions build upon."""
    for shape in wire_shapes(base):
        builders = (shape, *shape.__subclasses__())
        if [builder for builder in builders if not builder.__module__.startswith(LATER)] == [shape]:
            yield shape


def families() -> Iterator[type[Variant]]:
    """The open families of 0.3.0: a later version may have a wider one."""
    for family in Variant.__subclasses__():
        others = (msgspec.Struct, Unknown)
        narrower = [part for part in family.__subclasses__() if not issubclass(part, others)]
        yield from narrower or [family]


def without(value: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: item for name, item in value.items() if name != key}


REQUESTS = [f for f in CLIENT_FRAMES if issubclass(f, frames.RequestBase)]
