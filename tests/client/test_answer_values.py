"""Plain values become answers of the right kind, or say what is wrong with them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_server.client.answer_values import answer_of, answers_of, asked, value_of
from session_server.client.errors import InvalidAnswer
from session_server.reducers.forms.answer_checks import check_answer
from session_server.reducers.forms.plain_values import content_value
from session_server.schemas.ahp.questions import (
    BooleanQuestion,
    BooleanValue,
    Draft,
    InputRequest,
    IntegerQuestion,
    MultiSelectQuestion,
    NumberQuestion,
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
from tests.strategies import fitting_values, questions

CITIES = (Option(id="oslo", label="Oslo"), Option(id="rome", label="Rome, Italy"))
TEXT = TextQuestion(id="t", message="Name?", title="Name", max=5)
NUMBER = NumberQuestion(id="n", message="Budget?")
WHOLE = IntegerQuestion(id="i", message="People?", min=1)
YES = BooleanQuestion(id="b", message="Sure?")
ONE = SingleSelectQuestion(id="o", message="City?", options=CITIES)
ONE_FREE = SingleSelectQuestion(id="of", message="City?", options=CITIES, allow_freeform_input=True)
MANY = MultiSelectQuestion(id="m", message="Cities?", options=CITIES, max=1)
MANY_FREE = MultiSelectQuestion(
    id="mf", message="Cities?", options=CITIES, allow_freeform_input=True
)


@pytest.mark.parametrize(
    ("question", "plain", "value"),
    [
        (TEXT, "Ana", TextValue(value="Ana")),
        (NUMBER, 3, NumberValue(value=3)),
        (NUMBER, 2.5, NumberValue(value=2.5)),
        (WHOLE, 3, NumberValue(value=3)),
        (WHOLE, 3.0, NumberValue(value=3)),
        (YES, True, BooleanValue(value=True)),
        (ONE, "oslo", SelectedValue(value="oslo")),
        (ONE, "Rome, Italy", SelectedValue(value="rome")),
        (ONE_FREE, "oslo", SelectedValue(value="oslo")),
        (ONE_FREE, "Bergen", SelectedValue(value="", freeform_values=("Bergen",))),
        (MANY, ["oslo"], SelectedManyValue(value=("oslo",))),
        (MANY, {"Oslo"}, SelectedManyValue(value=("oslo",))),
        (MANY, [], SelectedManyValue(value=())),
        (
            MANY_FREE,
            ("oslo", "Bergen"),
            SelectedManyValue(value=("oslo",), freeform_values=("Bergen",)),
        ),
        (ONE, SelectedValue(value="oslo"), SelectedValue(value="oslo")),
    ],
)
def test_a_plain_value_takes_the_kind_of_its_question(
    question: Question, plain: Any, value: Value
) -> None:
    converted = value_of(question, plain)
    assert converted == value
    assert type(getattr(converted, "value", None)) is type(getattr(value, "value", None))
    assert answer_of(question, plain) == Submitted(value=value)
    assert answer_of(question, plain, draft=True) == Draft(value=value)


@pytest.mark.parametrize(
    ("question", "plain", "text"),
    [
        (TEXT, 5, "Name: takes text, not 5 (int)."),
        (NUMBER, "5", "Budget?: takes a number, not '5' (str)."),
        (NUMBER, True, "Budget?: takes a number, not True (bool)."),
        (WHOLE, None, "People?: takes a whole number, not None (NoneType)."),
        (WHOLE, False, "People?: takes a whole number, not False (bool)."),
        (YES, 1, "Sure?: takes True or False, not 1 (int)."),
        (ONE, 1, "City?: takes the id of an option, not 1 (int)."),
        (ONE, "olso", "City?: 'olso' is not one of the options: did you mean 'oslo'?"),
        (ONE, "xyz", "City?: 'xyz' is not one of the options: use 'oslo' or 'rome'."),
        (MANY, "oslo", "Cities?: takes a list of ids of options, not 'oslo' (str)."),
        (MANY, 1, "Cities?: takes a list of ids of options, not 1 (int)."),
        (MANY, [1], "Cities?: takes a list of ids of options, not 1 (int)."),
        (MANY, ["rom"], "Cities?: 'rom' is not one of the options: did you mean 'rome'?"),
    ],
)
def test_a_value_of_the_wrong_kind_says_what_would_be_right(
    question: Question, plain: Any, text: str
) -> None:
    for draft in (False, True):
        with pytest.raises(InvalidAnswer) as error:
            answer_of(question, plain, draft=draft)
        assert str(error.value) == text
        assert error.value.question_id == question.id


@pytest.mark.parametrize(
    ("question", "plain", "text"),
    [
        (TEXT, "much too long", "at most 5 characters"),
        (WHOLE, 0, "at least 1"),
        (WHOLE, 1.5, "whole number"),
        (NUMBER, float("nan"), "finite"),
        (MANY, ["oslo", "rome"], "at most 1 choices"),
    ],
)
def test_only_an_answer_that_counts_is_held_to_all_rules(
    question: Question, plain: Any, text: str
) -> None:
    assert isinstance(answer_of(question, plain, draft=True), Draft)
    with pytest.raises(InvalidAnswer, match=text):
        answer_of(question, plain)


def test_the_answers_of_a_completion_may_skip() -> None:
    request = InputRequest(id="r", questions=(TEXT, YES))
    assert answers_of(request, {"t": "Ana", "b": None}) == {
        "t": Submitted(value=TextValue(value="Ana")),
        "b": Skipped(),
    }


@pytest.mark.parametrize(
    ("questions_there", "text"),
    [
        ((TEXT, YES), "This request has no question 'x': use 't' or 'b'."),
        ((TextQuestion(id="xx", message=""),), "no question 'x': did you mean 'xx'?"),
        (None, "This request has no questions: accept or decline it."),
    ],
)
def test_an_unknown_question_says_which_there_are(questions_there: Any, text: str) -> None:
    with pytest.raises(InvalidAnswer) as error:
        asked(InputRequest(id="r", questions=questions_there), "x")
    assert text in str(error.value)
    assert error.value.question_id is None


@given(data=st.data(), question=questions())
def test_what_a_form_gives_out_can_be_put_in_again(data: st.DataObject, question: Question) -> None:
    value = data.draw(fitting_values(question))
    plain = content_value(question, value)
    answer = answer_of(question, plain)
    assert isinstance(answer, Submitted)
    assert answer.value is not None
    assert check_answer(question, answer) is None
    assert content_value(question, answer.value) == plain
