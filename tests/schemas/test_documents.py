"""The JSON Schema of the wire: a sound document that says what the decoders do."""

import json
from collections.abc import Callable, Iterator
from functools import cache
from types import ModuleType
from typing import Any, get_args

import jsonschema
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docs.wire_documents import CLIENT_FRAMES, HOST_FRAMES, asyncapi, json_schema
from session_server.schemas import (
    codec,
    documents,
    http,
    log_entries,
    mcp,
    nodes,
    principals,
    record,
)
from session_server.schemas.ahp import actions, frames
from session_server.schemas.errors import DecodingError, ErrorCode
from session_server.schemas.wire import Wire
from tests.effort import tries
from tests.schemas.document_parts import (
    ASYNCAPI,
    DEFS,
    SCHEMA,
    families,
    leaves,
    on_the_wire,
    refs,
    resolved,
    without,
)

from . import wire_examples as examples

UNPUBLISHED = (http, mcp, record, log_entries, nodes)
"""What only the log holds, and what other doors than AHP have documents of their own for."""


@cache
def by_schema(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator({**SCHEMA, "$ref": f"#/$defs/{name}"})


def shapes_of(module: ModuleType) -> set[str]:
    """The names of the classes that a module defines itself."""
    found = (value for value in vars(module).values() if isinstance(value, type))
    return {shape.__name__ for shape in found if shape.__module__ == module.__name__}


# The JSON Schema as a document


def test_the_schema_is_a_valid_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == jsonschema.Draft202012Validator.META_SCHEMA["$id"]


def test_every_reference_resolves() -> None:
    assert all(resolved(SCHEMA, ref) for ref in refs(SCHEMA))


def test_documents_are_made_afresh_and_always_the_same() -> None:
    first, second = json_schema(), json_schema()
    assert json.dumps(first) == json.dumps(second)
    first["$defs"]["Status"]["type"] = first["$defs"]["Snapshot"]["properties"]["state"] = "spoilt"
    assert json_schema() == second
    assert json.dumps(asyncapi()) == json.dumps(ASYNCAPI)


def test_names_are_plain_and_in_order() -> None:
    assert list(DEFS) == sorted(DEFS)
    assert all(name.isidentifier() and schema["title"] == name for name, schema in DEFS.items())


def test_descriptions_are_the_docstrings() -> None:
    assert DEFS["Snapshot"]["description"] == (
        "The state of a channel, encoded once for all who ask: `RootState` or `SessionState`.\n\n"
        "Every later action has `serverSeq > fromSeq`."
    )
    assert DEFS["ResponsePart"]["description"] == "One piece of an agent's response."
    assert "description" not in DEFS["Attachment"]


def keywords(schema: dict[str, Any]) -> Iterator[str]:
    yield from schema
    inner = [*schema.get("properties", {}).values()]
    inner += [s for k in ("anyOf", "oneOf", "allOf") for s in schema.get(k, ())]
    inner += [schema[k] for k in ("items", "additionalProperties", "not", "if") if k in schema]
    for each in inner:
        yield from keywords(each)


def test_only_keywords_of_json_schema_are_used() -> None:
    used = {keyword for schema in DEFS.values() for keyword in keywords(schema)}
    known = {*jsonschema.Draft202012Validator.VALIDATORS, "title", "description", "then"}
    assert used - known == set()
    assert "default" not in used


# What is in it, and what is not


def test_every_public_shape_is_published() -> None:
    unpublished = {shape for module in UNPUBLISHED for shape in shapes_of(module)}
    unpublished |= {"FrameHead", "Principal", "Refusal", "Stamp", "UndecodedDispatchParams"}
    named = {shape.__name__ for shape in leaves()}
    assert named - unpublished - set(DEFS) == set()


@pytest.mark.parametrize("shape", get_args(actions.Action), ids=lambda shape: shape.__name__)
def test_every_public_action_is_published_with_its_fields(shape: type[Wire]) -> None:
    schema = DEFS[shape.__name__]
    fields = msgspec.structs.fields(shape)
    assert schema["properties"]["type"] == {"const": shape.__struct_config__.tag}
    assert list(schema["properties"]) == ["type", *(field.encode_name for field in fields)]
    needed = [field.encode_name for field in fields if field.required]
    assert schema["required"] == ["type", *needed]


def test_actions_that_are_not_public_are_exactly_the_private_ones() -> None:
    every = set(leaves(actions.ActionBase))
    assert every - set(get_args(actions.Action)) == set(get_args(log_entries.LoggedAction)) - set(
        get_args(actions.Action)
    )


@pytest.mark.parametrize("name", ["Action", "ClientAction", "HostAction"])
def test_a_union_of_actions_is_a_choice_by_type(name: str) -> None:
    members = [resolved(SCHEMA, choice["$ref"]) for choice in DEFS[name]["oneOf"]]
    types = [member["properties"]["type"]["const"] for member in members]
    assert types == [shape.__struct_config__.tag for shape in get_args(getattr(actions, name))]
    assert len(set(types)) == len(types)
    assert all("type" in member["required"] for member in members)


@pytest.mark.parametrize("module", UNPUBLISHED, ids=lambda module: module.__name__)
def test_no_private_shape_is_published(module: ModuleType) -> None:
    assert shapes_of(module)
    assert shapes_of(module) & (set(DEFS) | set(ASYNCAPI["components"]["messages"])) == set()


def test_refusals_are_not_published() -> None:
    assert not {"Refusal", "RefusalCode"} & set(DEFS)


def test_of_principals_only_what_others_may_see_is_published() -> None:
    assert shapes_of(principals) & set(DEFS) == {"Author", "Provenance", "Role"}


@pytest.mark.proves("design.calls.secret-state")
@pytest.mark.parametrize("document", [SCHEMA, ASYNCAPI], ids=["json schema", "asyncapi"])
def test_no_private_tag_or_field_is_mentioned(document: dict[str, Any]) -> None:
    text = json.dumps(document)
    tags = {str(shape.__struct_config__.tag) for shape in get_args(record.PrivateAction)}
    fields = {"requestState", "privateArguments", "fingerprint", "heldCompletion", "notBefore"}
    assert {word for word in tags | fields if f'"{word}"' in text} == set()


def test_every_open_family_is_published() -> None:
    ours = [f for f in families() if f.__module__.startswith("session_server.")]
    assert set(ours) == set(documents.FAMILIES)


def test_error_codes_are_published_by_name() -> None:
    published = {choice["title"]: choice["const"] for choice in DEFS["ErrorCode"]["oneOf"]}
    assert published == {code.name: code.value for code in ErrorCode}


def test_combined_status_values_include_their_bits() -> None:
    told = DEFS["Status"]["description"].splitlines()[-1]
    assert told == "IDLE 1, ERROR 2, IN_PROGRESS 8, INPUT_NEEDED 24, IS_READ 32, IS_ARCHIVED 64"


def test_a_union_without_a_name_is_an_error() -> None:
    unnamed = {"discriminator": {"propertyName": "type", "mapping": {"a": "#/$defs/A"}}}
    with pytest.raises(KeyError):
        documents.tidied(unnamed)


# What the schema accepts

ALL = (
    *examples.STATES,
    *examples.CLIENT_ACTIONS,
    *examples.HOST_ACTIONS,
    *examples.CLIENT_FRAMES,
    *examples.HOST_FRAMES,
)
ONE_OF_EACH = {type(example).__name__: on_the_wire(example) for example in ALL}
UNIONS = {
    "ClientAction": get_args(actions.ClientAction),
    "HostAction": get_args(actions.HostAction),
    "HostFrame": HOST_FRAMES,
}


def test_there_is_an_example_of_everything() -> None:
    shown = {type(example) for example in ALL}
    wanted = {*get_args(actions.Action), *CLIENT_FRAMES, *HOST_FRAMES}
    assert wanted - shown == set()
    assert set(examples.RESULTS) == set(documents.RESULTS)


def test_what_is_encoded_is_accepted() -> None:
    for example in ALL:
        by_schema(type(example).__name__).validate(on_the_wire(example))


@pytest.mark.parametrize("name", UNIONS)
def test_what_is_encoded_is_accepted_by_its_union(name: str) -> None:
    for kind in UNIONS[name]:
        by_schema(name).validate(ONE_OF_EACH[kind.__name__])


def test_a_rejected_action_may_be_anything() -> None:
    rejection = on_the_wire(
        next(f for f in examples.HOST_FRAMES if isinstance(f, frames.RejectionNotification))
    )
    rejection["params"]["action"] = None
    by_schema("HostFrame").validate(rejection)


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_required_fields_are_needed_and_null_is_accepted_for_the_others(name: str) -> None:
    value, needed = ONE_OF_EACH[name], DEFS[name]["required"]
    assert needed
    for field in needed:
        assert not by_schema(name).is_valid(without(value, field)), field
    by_schema(name).validate({**value, **dict.fromkeys(DEFS[name]["properties"].keys() - needed)})
    anything = {name for name, schema in DEFS[name]["properties"].items() if not schema}
    for field in value.keys() - anything:
        assert not by_schema(name).is_valid({**value, field: [[1]]}), field


@pytest.mark.parametrize("union", ["Action", "ClientAction", "HostAction"])
def test_a_wrong_tag_is_refused(union: str) -> None:
    value = ONE_OF_EACH["TitleChanged"]
    for tag in ("session/unheardOf", "private/callSent"):
        assert not by_schema(union).is_valid({**value, "type": tag})


def test_clients_and_the_host_have_no_action_in_common() -> None:
    for union, other in (("ClientAction", "HostAction"), ("HostAction", "ClientAction")):
        for kind in UNIONS[union]:
            assert not by_schema(other).is_valid(ONE_OF_EACH[kind.__name__])


def test_only_an_agent_may_dispatch_a_host_action() -> None:
    frame = on_the_wire(examples.CLIENT_FRAMES[-1])
    assert by_schema("AgentFrame").is_valid(frame)
    assert not by_schema("ClientFrame").is_valid(frame)


@pytest.mark.parametrize(
    ("name", "value", "valid"),
    [
        ("Customization", {"type": "planet", "rings": 3}, True),
        ("Customization", {"type": "plugin"}, False),
        ("Customization", {"rings": 3}, False),
        ("Customization", {"type": 3}, False),
        ("ResponsePart", {"kind": "song"}, True),
        ("ResponsePart", {"kind": "markdown", "id": "p1"}, False),
        ("Question", {"kind": "riddle", "id": "q", "message": "?"}, False),
        ("InputAnswerChanged", "no object", False),
        ("RpcError", {"code": -32001, "message": ""}, True),
        ("RpcError", {"code": 1, "message": ""}, True),
        ("RpcError", {"code": "1", "message": ""}, False),
        ("RpcError", {"code": -32007, "message": "", "data": {"resources": []}}, True),
        ("RpcError", {"code": -32007, "message": "", "data": {}}, False),
        ("RpcError", {"code": -32008, "message": "", "data": {}}, True),
        ("ErrorCode", -32011, True),
        ("ErrorCode", 0, False),
        ("Status", 24 | 32, True),
        ("Status", -1, False),
        ("Status", 1.5, False),
        ("Snapshot", {"resource": "x", "fromSeq": 1, "state": {}}, False),
        ("SummaryChanges", {}, True),
        ("SummaryChanges", {"activity": ""}, True),
        ("SummaryChanges", {"agent": None}, False),
        ("SummaryChanges", {"title": None}, False),
        ("ReconnectResult", {"type": "replay", "actions": []}, False),
        ("ReconnectResult", {"type": "replay", "actions": [], "missing": []}, True),
    ],
)
def test_the_schema_draws_the_line_where_it_should(name: str, value: Any, valid: bool) -> None:
    assert by_schema(name).is_valid(value) is valid


# The schema and the decoders

DECODED: tuple[tuple[str, Callable[[bytes], object], tuple[Wire, ...]], ...] = (
    ("ClientAction", codec.decode_client_action, examples.CLIENT_ACTIONS),
    ("Action", codec.decode_action, examples.HOST_ACTIONS),
    ("ClientFrame", codec.decode_client_frame, examples.CLIENT_FRAMES),
    ("AgentFrame", codec.decode_agent_frame, examples.CLIENT_FRAMES),
    ("HostNotification", codec.decode_host_notification, examples.HOST_FRAMES),
    ("RootState", codec.decode_root_state, (examples.ROOT_STATE,)),
    ("SessionState", codec.decode_session_state, (examples.SESSION_STATE, examples.FRESH_STATE)),
)
JUNK: tuple[Any, ...] = (
    None,
    0,
    -1,
    1.5,
    2**53,
    True,
    "x",
    "",
    [],
    {},
    ["x"],
    [{}],
    {"type": "x", "kind": "x"},
)


def is_decoded(decode: Callable[[bytes], object], value: Any) -> bool:
    try:
        decode(json.dumps(value).encode())
    except DecodingError:
        return False
    return True


@st.composite
def spoilt(draw: st.DrawFn, value: Any) -> Any:
    """The same with one thing, somewhere in it, left out or replaced."""
    inner = [*value] if isinstance(value, dict) else []
    inner = [*range(len(value))] if isinstance(value, list) else inner
    if not inner or draw(st.integers(0, 5)) == 0:
        return draw(st.sampled_from(JUNK))
    key = draw(st.sampled_from(inner))
    if isinstance(value, list):
        return [*value[:key], draw(spoilt(value[key])), *value[key + 1 :]]
    # The decoder forgives a frame without its version, and a client's plugin without its type.
    if key != "jsonrpc" and "nonce" not in value and draw(st.booleans()):
        return without(value, key)
    return {**value, key: draw(spoilt(value[key]))}


@settings(max_examples=tries(in_ci=150, at_hand=30))
@given(data=st.data())
def test_the_schema_accepts_exactly_what_is_decoded(data: st.DataObject) -> None:
    name, decode, values = data.draw(st.sampled_from(DECODED))
    value = data.draw(spoilt(on_the_wire(data.draw(st.sampled_from(values)))))
    assert by_schema(name).is_valid(value) is is_decoded(decode, value)
