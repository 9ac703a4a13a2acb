"""Questions in one line: what each sign means, and what is said about a mistake."""

import re

import msgspec
import pytest

from session_server.cli import questions
from session_server.cli.failures import UsageError
from session_server.cli.questions import KINDS, parsed_question, parsed_questions
from session_server.cli.values import seconds
from session_server.reducers.rules.input_rules import check_form
from session_server.schemas.ahp.questions import (
    BooleanQuestion,
    InputRequest,
    IntegerQuestion,
    MultiSelectQuestion,
    NumberQuestion,
    Option,
    Question,
    SingleSelectQuestion,
    TextQuestion,
)

STAGING = Option(id="staging", label="staging")
PROD = Option(id="prod", label="prod", recommended=True)


@pytest.mark.parametrize(
    ("line", "question"),
    [
        ("What is it?", TextQuestion(id="q1", message="What is it?", required=True)),
        ("name:What is it?", TextQuestion(id="name", message="What is it?", required=True)),
        ("name:text:What?=Bo", TextQuestion(id="name", message="What?", required=True,
                                             default_value="Bo")),
        ("note?:text[..200]:More?", TextQuestion(id="note", message="More?", max=200)),
        ("at:When: now or later?", TextQuestion(id="at", message="When: now or later?",
                                                required=True)),
        ("mail:email:Where to?", TextQuestion(id="mail", message="Where to?", required=True,
                                              format="email")),
        ("day:date:When?=2026-01-01", TextQuestion(id="day", message="When?", required=True,
                                                   format="date", default_value="2026-01-01")),
        ("n:integer[1..20]:How many?=3", IntegerQuestion(id="n", message="How many?", required=True,
                                                          min=1, max=20, default_value=3)),
        ("n:int:How many?", IntegerQuestion(id="n", message="How many?", required=True)),
        ("x?:number[-1.5..]:How much?", NumberQuestion(id="x", message="How much?", min=-1.5)),
        ("ok:yes-no:Sure?=no", BooleanQuestion(id="ok", message="Sure?", required=True,
                                                default_value=False)),
        ("env:select:Where?=staging|prod*", SingleSelectQuestion(
            id="env", message="Where?", required=True, options=(STAGING, PROD))),
        ("env:select:Where?=eu=Europe|us=United States*|...", SingleSelectQuestion(
            id="env", message="Where?", required=True, allow_freeform_input=True,
            options=(Option(id="eu", label="Europe"),
                     Option(id="us", label="United States", recommended=True)))),
        ("c:multi[1..2]:Which?=staging|prod*", MultiSelectQuestion(
            id="c", message="Which?", required=True, min=1, max=2, options=(STAGING, PROD))),
        ("w:text:Which?=a|b", TextQuestion(id="w", message="Which?", required=True,
                                           default_value="a|b")),
        (r"w:text:a\=b\:c=d\=e", TextQuestion(id="w", message="a=b:c", required=True,
                                              default_value="d=e")),
        (r"p:select:Pick=a\|b|c\*", SingleSelectQuestion(
            id="p", message="Pick", required=True,
            options=(Option(id="a|b", label="a|b"), Option(id="c*", label="c*")))),
    ],
)  # fmt: skip
def test_a_line_says_what_it_looks_like(line: str, question: Question) -> None:
    assert parsed_question(line) == question


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("env:selct:Where?=a|b", "Did you mean select?"),
        ("env:select:Where?", "no options to choose from"),
        ("env:select:Where?=a*|b*", "one option at most"),
        ("env:select[1..2]:Where?=a", "[1..2] is not understood"),
        ("n:integer[x]:How many?", "[x] is not understood"),
        ("n:integer:How many?=many", "'many' is not a whole number"),
        ("n:number:How many?=many", "'many' is not a number"),
        ("ok:yes-no:Sure?=maybe", "neither yes nor no"),
        ("env=staging|prod", "ID:select:PROMPT=OPTION|OPTION"),
        ("env:Which one?=staging|prod", "ID:select:PROMPT=OPTION|OPTION"),
        ("name:text:", "the question has no text"),
        ("my name:text:What?", "cannot be a question's id"),
    ],
)
def test_a_mistake_is_explained(line: str, reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        parsed_question(line)
    assert reason in f"{caught.value} {caught.value.advice}"


def test_two_questions_need_two_ids() -> None:
    with pytest.raises(UsageError, match="Two questions are called 'a'"):
        parsed_questions(["a:One?", "a:Two?"])
    assert [q.id for q in parsed_questions(["One?", "Two?"])] == ["q1", "q2"]


def test_the_examples_of_the_module_can_be_asked() -> None:
    examples = re.findall(r"^    ([a-z]\S*:.+)$", questions.__doc__ or "", re.MULTILINE)
    assert len(examples) == 7
    parsed = parsed_questions(examples)
    assert check_form(InputRequest(id="r", questions=parsed)) is None


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_asked_as_one_of_ahps(kind: str) -> None:
    options = "=a|b" if kind in ("select", "multi") else ""
    question = parsed_question(f"q:{kind}:Well?{options}")
    encoded = msgspec.json.encode(question)
    assert msgspec.json.decode(encoded, type=type(question)) == question


# Lengths of time


@pytest.mark.parametrize(
    ("text", "length"),
    [("90", 90), ("0.5", 0.5), ("90s", 90), ("10m", 600), ("1h30m", 5400), ("2d", 172_800)],
)
def test_a_length_of_time(text: str, length: float) -> None:
    assert seconds(text) == length


@pytest.mark.parametrize("text", ["", "soon", "10 minutes", "-5", "5x", "h"])
def test_anything_else_is_explained(text: str) -> None:
    with pytest.raises(ValueError, match="10m"):
        seconds(text)
