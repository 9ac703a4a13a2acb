"""The generated documents and their parts, for the tests of them."""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import jsonschema

from session_server.schemas import codec, documents
from session_server.schemas.ahp import frames
from session_server.schemas.wire import Wire

SCHEMA = documents.json_schema()
ASYNCAPI = documents.asyncapi()
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


def without(value: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: item for name, item in value.items() if name != key}


REQUESTS = [f for f in documents.CLIENT_FRAMES if issubclass(f, frames.RequestBase)]
