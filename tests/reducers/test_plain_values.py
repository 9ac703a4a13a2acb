"""Answers as plain values: what goes out comes in again, and defaults are filled in as MCP does."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_server.reducers.forms.answer_checks import check_answer, check_value
from session_server.reducers.forms.mcp_forms import content_of, questions_of
from session_server.reducers.forms.plain_values import content_value, value_of
from session_server.reducers.forms.review import plain_content
from session_server.schemas.ahp.questions import (
    BooleanQuestion,
    BooleanValue,
    IntegerQuestion,
    MultiSelectQuestion,
    NumberValue,
    Option,
    Question,
    SelectedManyValue,
    SelectedValue,
    SingleSelectQuestion,
    Skipped,
    Submitted,
    TextQuestion,
    TextValue,
    Value,
)
from session_server.schemas.errors import RefusalCode
from session_server.schemas.mcp import Unshowable
from tests.mcp_strategies import answers_for, requested_schemas
from tests.strategies import fitting_values, questions

OPTIONS = (Option(id="a", label="A"), Option(id="b", label="B", recommended=True))
TEXT = TextQuestion(id="q", message="?")
ONE = SingleSelectQuestion(id="q", message="?", options=OPTIONS)
MANY = MultiSelectQuestion(id="q", message="?", options=OPTIONS)
MANY_OR_OWN = MultiSelectQuestion(id="q", message="?", options=OPTIONS, allow_freeform_input=True)


@given(st.data())
def test_a_value_that_is_made_plain_and_read_again_means_the_same(data: st.DataObject) -> None:
    question: Question = data.draw(questions())
    value: Value = data.draw(fitting_values(question))
    plain = content_value(question, value)
    again = value_of(question, plain)
    assert again is not None
    assert check_value(question, again) is None
    assert content_value(question, again) == plain


@pytest.mark.parametrize(
    ("question", "plain", "value"),
    [
        (TEXT, "x", TextValue(value="x")),
        (ONE, "a", SelectedValue(value="a")),
        (ONE, ["a", "own"], SelectedValue(value="a", freeform_values=("own",))),
        (MANY, ["a", "b"], SelectedManyValue(value=("a", "b"))),
        (MANY, ["a", "own"], SelectedManyValue(value=("a", "own"))),
        (MANY_OR_OWN, ["a", "own"], SelectedManyValue(value=("a",), freeform_values=("own",))),
        (MANY_OR_OWN, ["a"], SelectedManyValue(value=("a",))),
        (BooleanQuestion(id="q", message="?"), True, BooleanValue(value=True)),
        (IntegerQuestion(id="q", message="?"), 3, NumberValue(value=3)),
    ],
)
def test_plain_values_take_their_questions_kind(
    question: Question, plain: Any, value: Value
) -> None:
    assert value_of(question, plain) == value


@pytest.mark.parametrize(
    ("question", "plain"),
    [(TEXT, 7), (TEXT, ["x"]), (TEXT, True), (ONE, 7), (MANY, "a"), (MANY, False)],
)
def test_a_value_of_another_kind_is_refused_as_such(question: Question, plain: Any) -> None:
    value = value_of(question, plain)
    assert value is not None
    refusal = check_answer(question, Submitted(value=value))
    assert refusal.code is RefusalCode.WRONG_KIND


@pytest.mark.parametrize("plain", [None, {}, [1], ["a", 2], [None]])
@pytest.mark.parametrize("question", [TEXT, ONE, MANY])
def test_what_can_be_no_answer_has_no_value(question: Question, plain: Any) -> None:
    assert value_of(question, plain) is None


def test_defaults_stand_in_for_what_nobody_answered() -> None:
    asked = (
        TextQuestion(id="text", message="?", default_value="d"),
        TextQuestion(id="required", message="?", default_value="d", required=True),
        TextQuestion(id="bad", message="?", default_value="d", min=2),
        TextQuestion(id="skipped", message="?", default_value="d"),
        TextQuestion(id="none", message="?"),
        SingleSelectQuestion(id="one", message="?", options=OPTIONS),
        IntegerQuestion(id="given", message="?", default_value=1),
    )
    answers = {"skipped": Skipped(), "given": Submitted(value=NumberValue(value=2.0))}
    assert plain_content(asked, answers) == {"text": "d", "one": "b", "given": 2}


@given(st.data())
def test_of_a_schema_the_content_is_the_schemas_own(data: st.DataObject) -> None:
    """But for what questions cannot tell: the order of a default's choices, and one of none."""
    schema = data.draw(requested_schemas())
    asked = questions_of(schema)
    assert not isinstance(asked, Unshowable)
    answers = {q.id: data.draw(answers_for(q)) for q in asked if data.draw(st.booleans())}
    mine, own = plain_content(asked, answers), content_of(schema, answers)
    assert {k: _unordered(v) for k, v in mine.items()} == {
        k: _unordered(v) for k, v in own.items() if v != [] or isinstance(answers.get(k), Submitted)
    }


def _unordered(value: Any) -> Any:
    return sorted(value) if isinstance(value, list) else value
