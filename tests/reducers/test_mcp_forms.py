"""MCP forms become questions, and answers become content that the form's own schema accepts."""

from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_server.reducers.forms.answer_checks import check_answer
from session_server.reducers.forms.mcp_forms import content_of, questions_of, request_of
from session_server.reducers.rules.input_rules import input_completed
from session_server.schemas.ahp.actions import InputCompleted
from session_server.schemas.ahp.questions import (
    Answer,
    BooleanQuestion,
    Draft,
    InputRequest,
    IntegerQuestion,
    MultiSelectQuestion,
    NumberQuestion,
    NumberValue,
    Option,
    Question,
    QuestionMeta,
    ResponseKind,
    SelectedManyValue,
    SelectedValue,
    SingleSelectQuestion,
    Skipped,
    Submitted,
    TextQuestion,
    TextValue,
)
from session_server.schemas.limits import OPTIONS_PER_QUESTION, QUESTIONS_PER_REQUEST
from session_server.schemas.mcp import Elicitation, Unshowable
from tests.mcp_strategies import answers_for, requested_schemas
from tests.sessions import OWNER, asking


def one(shape: dict[str, Any], *, required: bool = False) -> Question:
    """The question of a form with a single property `p`."""
    schema = {"type": "object", "properties": {"p": shape}, "required": ["p"] if required else []}
    questions = questions_of(schema)
    assert not isinstance(questions, Unshowable), questions
    return questions[0]


@pytest.mark.proves("mcp.form.string", "mcp.form.pattern")
def test_a_string_becomes_a_text_question() -> None:
    shape = {
        "type": "string",
        "title": "Mail",
        "description": "Where to?",
        "minLength": 3,
        "maxLength": 80,
        "format": "email",
        "pattern": "@",
        "default": "ana@example.com",
    }
    assert one(shape) == TextQuestion(
        id="p",
        title="Mail",
        message="Where to?",
        min=3,
        max=80,
        format="email",
        default_value="ana@example.com",
        meta=QuestionMeta(pattern="@"),
    )


@pytest.mark.proves("mcp.form.number")
def test_numbers_keep_their_bounds() -> None:
    assert one({"type": "number", "minimum": 0.5, "maximum": 2, "default": 1}) == NumberQuestion(
        id="p", message="p", min=0.5, max=2, default_value=1
    )
    assert one({"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 9}) == (
        IntegerQuestion(id="p", message="p", min=1, max=8)
    )
    open_interval = one({"type": "number", "exclusiveMinimum": 0, "minimum": -1})
    assert isinstance(open_interval, NumberQuestion)
    assert open_interval.min is not None
    assert 0 < open_interval.min < 1e-300


@pytest.mark.proves("mcp.form.boolean")
def test_a_boolean_becomes_a_boolean_question() -> None:
    assert one({"type": "boolean", "default": False}) == BooleanQuestion(
        id="p", message="p", default_value=False
    )


@pytest.mark.proves("mcp.form.enum", "mcp.form.one-of", "mcp.form.enum-names")
@pytest.mark.parametrize(
    ("shape", "labels"),
    [
        ({"type": "string", "enum": ["r", "g"]}, ["r", "g"]),
        ({"enum": ["r", "g"]}, ["r", "g"]),
        ({"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]}, ["Red", "Green"]),
        ({"type": "string", "enum": ["r", "g"], "enumNames": ["Red"]}, ["Red", "g"]),
        ({"oneOf": [{"const": "r", "title": "Red"}, {"const": "g"}]}, ["Red", "g"]),
        ({"$ref": "#/$defs/Colour", "title": "Colour"}, ["r", "g"]),
        ({"anyOf": [{"$ref": "#/$defs/Colour"}, {"type": "null"}]}, ["r", "g"]),
    ],
)
def test_a_choice_becomes_a_single_select(shape: dict[str, Any], labels: list[str]) -> None:
    schema = {
        "type": "object",
        "properties": {"p": shape},
        "$defs": {"Colour": {"type": "string", "enum": ["r", "g"]}},
    }
    questions = questions_of(schema)
    assert not isinstance(questions, Unshowable)
    (question,) = questions
    assert isinstance(question, SingleSelectQuestion)
    assert [option.id for option in question.options] == ["r", "g"]
    assert [option.label for option in question.options] == labels


def test_a_constant_is_a_choice_of_one() -> None:
    question = one({"type": "string", "const": "yes"})
    assert isinstance(question, SingleSelectQuestion)
    assert question.options == (Option(id="yes", label="yes"),)


@pytest.mark.proves("mcp.form.multi")
@pytest.mark.parametrize(
    "items",
    [
        {"type": "string", "enum": ["a", "b"]},
        {"anyOf": [{"const": "a", "title": "a"}, {"const": "b", "title": "b"}]},
    ],
)
def test_an_array_becomes_a_multi_select(items: dict[str, Any]) -> None:
    assert one({"type": "array", "items": items, "minItems": 1, "maxItems": 2}) == (
        MultiSelectQuestion(
            id="p",
            message="p",
            min=1,
            max=2,
            options=(Option(id="a", label="a"), Option(id="b", label="b")),
        )
    )


@pytest.mark.proves("mcp.form.select-default")
def test_the_default_of_a_selection_is_recommended_and_filled_in() -> None:
    shapes = {
        "one": {"type": "string", "enum": ["a", "b"], "default": "b"},
        "many": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "default": ["a", "c"]},
    }
    schema = {"type": "object", "properties": shapes}
    questions = questions_of(schema)
    assert not isinstance(questions, Unshowable)
    recommended = [
        [option.id for option in question.options if option.recommended]
        for question in questions
        if isinstance(question, SingleSelectQuestion | MultiSelectQuestion)
    ]
    assert recommended == [["b"], ["a", "c"]]
    assert content_of(schema, {}) == {"one": "b", "many": ["a", "c"]}


@pytest.mark.parametrize(
    ("shape", "default"),
    [
        ({"type": "string", "minLength": 2}, "x"),
        ({"type": "string"}, 3),
        ({"type": "integer"}, True),
        ({"type": "integer"}, 1.5),
        ({"type": "integer"}, 10**400),
        ({"type": "number"}, 2**64),
        ({"type": "boolean"}, "yes"),
        ({"type": "string", "enum": ["a"]}, "b"),
        ({"type": "array", "items": {"enum": ["a"]}}, ["a", 1]),
        ({"type": "array", "items": {"enum": ["a"]}}, "a"),
    ],
)
def test_a_default_that_breaks_its_own_schema_is_ignored(
    shape: dict[str, Any], default: Any
) -> None:
    with_default = {**shape, "default": default}
    assert one(with_default) == one(shape)
    assert content_of({"type": "object", "properties": {"p": with_default}}, {}) == {}


@pytest.mark.proves("mcp.form.required")
def test_exactly_the_required_properties_are_required() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "required": ["b", "not there"],
    }
    questions = questions_of(schema)
    assert not isinstance(questions, Unshowable)
    assert [question.required for question in questions] == [None, True]


@pytest.mark.proves("mcp.form.unshowable")
@pytest.mark.parametrize(
    "shape",
    [
        {"type": "object", "properties": {}},
        {"type": "array", "items": {"type": "string"}},
        {"type": "array"},
        {"type": "string", "enum": []},
        {"type": "string", "enum": [1, 2]},
        {"type": "string", "minLength": "two"},
        {"type": ["string", "integer"]},
        {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        {"anyOf": [{"$ref": "#/$defs/Knot"}]},
        {"type": "integer", "enum": [1, 2]},
        {"type": "boolean", "const": True},
        {"type": "integer", "exclusiveMinimum": 1e300},
        {"type": "integer", "exclusiveMinimum": 2**63 - 1},
        {"type": "number", "exclusiveMaximum": float("inf")},
        {"$ref": "#/$defs/Missing"},
        {"$ref": "#/$defs/Loop"},
        {},
    ],
)
def test_what_cannot_be_shown_is_refused_by_name(shape: dict[str, Any]) -> None:
    outcome = questions_of(
        {
            "type": "object",
            "properties": {"fine": {"type": "string"}, "p": shape},
            "$defs": {
                "Loop": {"$ref": "#/$defs/Loop"},
                "Knot": {"anyOf": [{"$ref": "#/$defs/Knot"}, {"type": "null"}]},
            },
        }
    )
    assert isinstance(outcome, Unshowable)
    assert outcome.property == "p"
    assert "p: " in outcome.reason


def test_a_type_that_may_be_null_is_the_type() -> None:
    assert one({"type": ["integer", "null"]}) == one({"type": "integer"})


@pytest.mark.parametrize("schema", [{"type": "string"}, {"type": "object", "properties": []}, {}])
def test_a_schema_that_is_no_flat_object_is_refused(schema: dict[str, Any]) -> None:
    outcome = questions_of(schema)
    assert isinstance(outcome, Unshowable)
    assert outcome.property is None


@pytest.mark.proves("design.limits.questions")
def test_forms_are_bounded() -> None:
    shapes = {f"p{n}": {"type": "boolean"} for n in range(QUESTIONS_PER_REQUEST)}
    assert not isinstance(questions_of({"type": "object", "properties": shapes}), Unshowable)
    shapes["one more"] = {"type": "boolean"}
    assert isinstance(questions_of({"type": "object", "properties": shapes}), Unshowable)
    values = [str(n) for n in range(OPTIONS_PER_QUESTION)]
    assert one({"enum": values})
    more = questions_of({"type": "object", "properties": {"p": {"enum": [*values, "one more"]}}})
    assert isinstance(more, Unshowable)
    assert str(OPTIONS_PER_QUESTION) in more.reason


@pytest.mark.proves("mcp.url.request")
def test_a_url_request_has_a_url_and_no_questions() -> None:
    asked = request_of("r", Elicitation(mode="url", message="Sign in", url="https://x.example/a"))
    assert asked == InputRequest(id="r", message="Sign in", url="https://x.example/a")
    for url in (None, "", "javascript:alert(1)", "example.com"):
        asked = request_of("r", Elicitation(mode="url", message="Sign in", url=url))
        assert isinstance(asked, Unshowable)


def test_a_form_without_schema_asks_only_for_consent() -> None:
    assert request_of("r", Elicitation(message="Go on?")) == InputRequest(
        id="r", message="Go on?", questions=()
    )


FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "default": "standard"},
        "whole": {"type": "integer"},
        "one": {"type": "string", "enum": ["a", "b"]},
        "many": {"type": "array", "items": {"enum": ["a", "b"]}},
        "flag": {"type": "boolean"},
    },
}


@pytest.mark.proves("mcp.form.content-values")
def test_content_is_plain_json_under_the_names_of_the_properties() -> None:
    answers: dict[str, Answer] = {
        "text": Submitted(value=TextValue(value="hi")),
        "whole": Submitted(value=NumberValue(value=3.0)),
        "one": Submitted(value=SelectedValue(value="b")),
        "many": Submitted(value=SelectedManyValue(value=("b", "a"))),
    }
    content = content_of(FORM, answers)
    assert content == {"text": "hi", "whole": 3, "one": "b", "many": ["b", "a"]}
    assert msgspec.json.encode(content["whole"]) == b"3"


@pytest.mark.proves("mcp.form.defaults", "design.calls.default", "mcp.form.submitted-only")
def test_an_unanswered_or_drafted_property_gets_its_default() -> None:
    assert content_of(FORM, {}) == {"text": "standard"}
    draft = Draft(value=TextValue(value="half-ty"))
    assert content_of(FORM, {"text": draft}) == {"text": "standard"}
    assert content_of(FORM, {"whole": Draft(value=NumberValue(value=3))}) == {"text": "standard"}


@pytest.mark.proves("design.calls.skipped")
def test_a_skipped_property_is_left_out_with_its_default() -> None:
    assert content_of(FORM, {"text": Skipped()}) == {}


@pytest.mark.proves("design.calls.required-default")
def test_a_required_property_does_not_fall_back_to_its_default() -> None:
    assert content_of({**FORM, "required": ["text"]}, {}) == {}


@pytest.mark.proves("mcp.retry.valid-content")
@given(st.data())
def test_what_the_rules_accept_the_schema_accepts(data: st.DataObject) -> None:
    schema = data.draw(requested_schemas())
    questions = questions_of(schema)
    assert not isinstance(questions, Unshowable), questions
    drawn = {q.id: data.draw(st.none() | answers_for(q)) for q in questions}
    answers = {
        q.id: answer
        for q in questions
        if (answer := drawn[q.id]) is not None and check_answer(q, answer) is None
    }
    record = asking(InputRequest(id="r", questions=questions, answers=answers or None))
    action = InputCompleted(request_id="r", response=ResponseKind.ACCEPT)
    if input_completed(OWNER, record, action) is None:
        jsonschema.validate(
            content_of(schema, answers),
            schema,
            cls=jsonschema.Draft202012Validator,
            format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER,
        )


@given(requested_schemas())
def test_every_form_that_can_be_asked_can_be_accepted_as_proposed(schema: dict[str, Any]) -> None:
    """The defaults alone never break the schema, whatever else is missing."""
    optional = {**schema, "required": []}
    jsonschema.validate(content_of(optional, {}), optional)
