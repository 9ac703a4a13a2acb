"""Drafts need the right kind; submitted answers need everything the question demands."""

import math

import pytest

from session_server.reducers.forms.answer_checks import check_answer, check_value
from session_server.schemas.ahp.questions import (
    Answer,
    BooleanQuestion,
    BooleanValue,
    Draft,
    IntegerQuestion,
    MultiSelectQuestion,
    NumberQuestion,
    NumberValue,
    Option,
    Question,
    QuestionMeta,
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
from session_server.schemas.limits import ANSWER_CHARS, FREEFORM_VALUES, OPTIONS_PER_QUESTION

ABC = tuple(Option(id=i, label=i.upper()) for i in "abc")

TEXT = TextQuestion(id="q", message="Text", min=2, max=4)
MAIL = TextQuestion(id="q", message="Mail", format="email")
HINTED = TextQuestion(id="q", message="Host", format="hostname")
CODE = TextQuestion(id="q", message="Code", meta=QuestionMeta(pattern="^[A-Z]+$"))
NUMBER = NumberQuestion(id="q", message="Number", min=-1, max=1.5)
WHOLE = IntegerQuestion(id="q", message="Whole", min=0, max=10)
FLAG = BooleanQuestion(id="q", message="Flag")
ONE = SingleSelectQuestion(id="q", message="One", options=ABC)
ONE_OR_OWN = SingleSelectQuestion(id="q", message="One", options=ABC, allow_freeform_input=True)
MANY = MultiSelectQuestion(id="q", message="Many", options=ABC, min=1, max=2)
MANY_OR_OWN = MultiSelectQuestion(
    id="q", message="Many", options=ABC, allow_freeform_input=True, min=1, max=3
)


def text(value: str) -> TextValue:
    return TextValue(value=value)


def number(value: float) -> NumberValue:
    return NumberValue(value=value)


def one(value: str, *own: str) -> SelectedValue:
    return SelectedValue(value=value, freeform_values=own or None)


def many(*values: str, own: tuple[str, ...] | None = None) -> SelectedManyValue:
    return SelectedManyValue(value=values, freeform_values=own)


GOOD: list[tuple[Question, Value]] = [
    (TEXT, text("ab")),
    (TEXT, text("abcd")),
    (TEXT, text("🙂🙂🙂🙂")),
    (MAIL, text("ana@example.com")),
    (HINTED, text("anything goes")),
    (CODE, text("AB")),
    (NUMBER, number(-1)),
    (NUMBER, number(1.5)),
    (WHOLE, number(0)),
    (WHOLE, number(3.0)),
    (FLAG, BooleanValue(value=False)),
    (ONE, one("c")),
    (ONE_OR_OWN, one("c", "and more")),
    (ONE_OR_OWN, one("", "my own")),
    (ONE_OR_OWN, one("my own")),
    (MANY, many("a")),
    (MANY, many("c", "a")),
    (MANY_OR_OWN, many(own=("mine",))),
    (MANY_OR_OWN, many("a", "b", own=("mine",))),
]


@pytest.mark.proves("ahp.rules.submitted-range", "ahp.rules.submitted-integer")
@pytest.mark.parametrize(("question", "value"), GOOD)
def test_a_fitting_value_is_accepted(question: Question, value: Value) -> None:
    assert check_value(question, value) is None
    assert check_answer(question, Submitted(value=value)) is None
    assert check_answer(question, Draft(value=value)) is None


BAD: list[tuple[Question, Value, RefusalCode]] = [
    (TEXT, text("a"), RefusalCode.TOO_SHORT),
    (TEXT, text("abcde"), RefusalCode.TOO_LONG),
    (MAIL, text("ana at home"), RefusalCode.BAD_FORMAT),
    (CODE, text("ab"), RefusalCode.BAD_PATTERN),
    (NUMBER, number(-1.1), RefusalCode.TOO_SMALL),
    (NUMBER, number(2), RefusalCode.TOO_LARGE),
    (NUMBER, number(math.inf), RefusalCode.WRONG_KIND),
    (NUMBER, number(math.nan), RefusalCode.WRONG_KIND),
    (WHOLE, number(2.5), RefusalCode.NOT_AN_INTEGER),
    (WHOLE, number(11), RefusalCode.TOO_LARGE),
    (IntegerQuestion(id="q", message="Any"), number(1e300), RefusalCode.TOO_LARGE),
    (IntegerQuestion(id="q", message="Any"), number(-(2**63) - 1), RefusalCode.TOO_LARGE),
    (ONE, one("d"), RefusalCode.NOT_AN_OPTION),
    (ONE, one(""), RefusalCode.NOT_AN_OPTION),
    (ONE, one("a", "mine"), RefusalCode.NO_FREEFORM),
    (ONE_OR_OWN, one(""), RefusalCode.NOT_AN_OPTION),
    (MANY, many("a", "d"), RefusalCode.NOT_AN_OPTION),
    (MANY, many("a", "a"), RefusalCode.DUPLICATE),
    (MANY, many(), RefusalCode.TOO_FEW),
    (MANY, many("a", "b", "c"), RefusalCode.TOO_MANY),
    (MANY, many("a", own=("mine",)), RefusalCode.NO_FREEFORM),
    (MANY_OR_OWN, many("a", own=("x", "y", "z")), RefusalCode.TOO_MANY),
]


@pytest.mark.proves(
    "ahp.rules.submitted-option",
    "ahp.rules.submitted-freeform",
    "ahp.rules.submitted-range",
    "ahp.rules.submitted-count",
    "ahp.rules.submitted-length",
    "ahp.rules.submitted-format",
    "ahp.rules.submitted-integer",
    "ahp.rules.draft-lenient",
    "ahp.rules.reason",
    "mcp.form.pattern",
)
@pytest.mark.parametrize(("question", "value", "code"), BAD)
def test_a_bad_value_can_be_drafted_but_not_submitted(
    question: Question, value: Value, code: RefusalCode
) -> None:
    refusal = check_answer(question, Submitted(value=value))
    assert refusal.code is code
    assert refusal.question_id == "q"
    assert refusal.message.startswith(question.message)
    assert refusal.message.endswith(".")
    assert check_answer(question, Draft(value=value)) is None


VALUES: list[Value] = [
    text("abc"),
    number(1),
    BooleanValue(value=True),
    one("a"),
    many("a"),
]
FITTING: list[tuple[Question, Value]] = [
    (TEXT, VALUES[0]),
    (NUMBER, VALUES[1]),
    (WHOLE, VALUES[1]),
    (FLAG, VALUES[2]),
    (ONE, VALUES[3]),
    (MANY, VALUES[4]),
]


@pytest.mark.proves("ahp.rules.answer-kind")
@pytest.mark.parametrize(("question", "fitting"), FITTING)
def test_every_other_kind_is_refused_even_as_a_draft(question: Question, fitting: Value) -> None:
    for value in VALUES:
        answers: tuple[Answer, ...] = (Draft(value=value), Submitted(value=value))
        for answer in answers:
            refusal = check_answer(question, answer)
            assert (refusal is None) == (value is fitting)
            assert refusal is None or refusal.code is RefusalCode.WRONG_KIND
        if value is not fitting:
            by_value = check_value(question, value)
            assert by_value.code is RefusalCode.WRONG_KIND


@pytest.mark.proves("ahp.rules.answer-no-value")
def test_nothing_is_no_answer_but_can_be_skipped() -> None:
    for answer in (Draft(), Submitted()):
        refusal = check_answer(TEXT, answer)
        assert refusal.code is RefusalCode.NO_VALUE
    assert check_answer(TEXT, Skipped()) is None
    assert check_answer(TEXT, Skipped(freeform_values=("ask Bo",))) is None


@pytest.mark.proves("design.limits.answers")
@pytest.mark.parametrize(
    ("question", "full", "over"),
    [
        (
            TextQuestion(id="q", message="Long"),
            Draft(value=text("x" * ANSWER_CHARS)),
            Draft(value=text("x" * (ANSWER_CHARS + 1))),
        ),
        (
            ONE_OR_OWN,
            Draft(value=one("a", "x" * (ANSWER_CHARS - 1))),
            Draft(value=one("a", "x" * ANSWER_CHARS)),
        ),
        (
            MANY_OR_OWN,
            Draft(value=many(own=("x",) * FREEFORM_VALUES)),
            Draft(value=many(own=("x",) * (FREEFORM_VALUES + 1))),
        ),
        (
            MANY,
            Draft(value=many(*["a"] * OPTIONS_PER_QUESTION)),
            Draft(value=many(*["a"] * (OPTIONS_PER_QUESTION + 1))),
        ),
        (
            TEXT,
            Skipped(freeform_values=("x" * ANSWER_CHARS,)),
            Skipped(freeform_values=("x" * (ANSWER_CHARS + 1),)),
        ),
    ],
)
def test_answers_are_bounded_drafts_included(
    question: Question, full: Answer, over: Answer
) -> None:
    assert check_answer(question, full) is None
    refusal = check_answer(question, over)
    assert refusal.code is RefusalCode.LIMIT
