"""What is encoded here is valid by the protocol's published schemas, once those are repaired.

As published they refer to enumerations that are not there, list an empty choice in unions, and
demand `origin` and `usage`, which the protocol itself leaves out.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from jsonschema import Draft202012Validator

from session_server.schemas.ahp.actions import Action
from session_server.schemas.codec import encode
from session_server.schemas.wire import Unknown, Wire
from tests.schemas import wire_examples as examples

PUBLISHED = Path(__file__).parents[3] / "shared" / "ahp" / "schema"
pytestmark = pytest.mark.skipif(
    not PUBLISHED.is_dir(), reason="the protocol's schemas are not at hand"
)
WRONGLY_REQUIRED = {"origin", "usage"}


def repaired(node: Any, known: set[str]) -> Any:
    if isinstance(node, list):
        return [repaired(item, known) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node and node["$ref"].removeprefix("#/$defs/") not in known:
        return {}
    fixed = {key: repaired(value, known) for key, value in node.items()}
    if "oneOf" in fixed:
        # Without the enumerations, the members of a union can no longer be told apart.
        first, *rest = fixed.pop("oneOf")
        fixed["anyOf"] = rest if first == {} else [first, *rest]
    if isinstance(fixed.get("required"), list):
        fixed["required"] = [name for name in fixed["required"] if name not in WRONGLY_REQUIRED]
    if set(fixed.get("properties", ())) in ({"items"}, {"uri", "content"}):
        return {"type": "object"}  # named types inside anonymous ones came out as strings
    return fixed


@cache
def published(name: str) -> dict[str, Any]:
    document = json.loads((PUBLISHED / f"{name}.schema.json").read_text())
    definitions = document["$defs"]
    return {"$defs": repaired(definitions, set(definitions))}


MARK = "a kind that this version does not know"


def known_part(node: Any) -> Any:
    """Without the members of open families that only a later version has."""
    if isinstance(node, list):
        return [known_part(item) for item in node if item != MARK]
    if isinstance(node, dict):
        return {key: known_part(value) for key, value in node.items()}
    return node


def validate(value: Wire, document: str, definition: str) -> None:
    schema = {**published(document), "$ref": f"#/$defs/{definition}"}
    plain = msgspec.json.decode(msgspec.json.encode(value, enc_hook=lambda _: MARK))
    Draft202012Validator(schema).validate(known_part(plain))


ACTIONS: list[Wire] = [
    action
    for kind in get_args(Action)
    for action in examples.variants(kind)
    if not any(isinstance(getattr(action, name), Unknown) for name in action.__struct_fields__)
]


def definition_of(action: Wire) -> str:
    channel, _, name = str(action.__struct_config__.tag).partition("/")
    return f"{channel.capitalize()}{name[0].upper()}{name[1:]}Action"


@pytest.mark.proves("ahp.shapes.schema", "design.wire.additive")
@pytest.mark.parametrize("action", ACTIONS, ids=definition_of)
def test_every_action_is_valid_by_the_published_schema(action: Wire) -> None:
    validate(action, "actions", definition_of(action))


@pytest.mark.proves("ahp.shapes.schema", "design.wire.additive")
@pytest.mark.parametrize(
    ("value", "document", "definition"),
    [
        (examples.ROOT_STATE, "state", "RootState"),
        (examples.SESSION_STATE, "state", "SessionState"),
        (examples.FRESH_STATE, "state", "SessionState"),
        (examples.ENVELOPE, "actions", "ActionEnvelope"),
        (examples.HOST_ENVELOPE, "actions", "ActionEnvelope"),
    ],
)
def test_states_and_envelopes_are_valid_by_the_published_schema(
    value: Wire, document: str, definition: str
) -> None:
    validate(value, document, definition)


@pytest.mark.proves("ahp.shapes.schema")
@pytest.mark.parametrize("frame", examples.CLIENT_FRAMES, ids=lambda f: type(f).__name__)
def test_params_are_valid_by_the_published_schema(frame: Any) -> None:
    definition = f"{type(frame.params).__name__}"
    if definition in published("commands")["$defs"]:
        validate(frame.params, "commands", definition)
    else:
        assert definition in NOT_PUBLISHED


NOT_PUBLISHED = {"Params", "RootParams", "PresenceUpdateParams", "AgentDispatchActionParams"}


def test_the_repaired_schemas_still_refuse_what_is_wrong() -> None:
    broken = msgspec.json.decode(encode(examples.SESSION_STATE))
    del broken["summary"]["title"]
    schema = {**published("state"), "$ref": "#/$defs/SessionState"}
    assert not Draft202012Validator(schema).is_valid(broken)
