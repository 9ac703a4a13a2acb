"""Answers as plain JSON values and back, by the questions alone.

For programs that ask and answer without AHP's kinds of values. Of a form that came from an MCP
schema, the content is what that schema itself would give.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from ..schemas.mcp import Content
from ..schemas.questions import (
    Answer,
    BooleanValue,
    MultiSelectQuestion,
    NumberValue,
    Question,
    SelectedManyValue,
    SelectedValue,
    SingleSelectQuestion,
    Skipped,
    Submitted,
    TextValue,
    Value,
)
from .forms import content_value
from .proposals import default_of


def plain_content(questions: Iterable[Question], answers: Mapping[str, Answer]) -> Content:
    """What was submitted, by question; an optional question that nobody answered has its default.

    One that was skipped is left out, and so is one that proposes nothing.
    """
    content: Content = {}
    for question in questions:
        value = _counted(question, answers.get(question.id))
        if value is not None:
            content[question.id] = content_value(question, value)
    return content


def _counted(question: Question, answer: Answer | None) -> Value | None:
    if isinstance(answer, Submitted):
        return answer.value
    return None if isinstance(answer, Skipped) else default_of(question)


def value_of(question: Question, plain: Any) -> Value | None:
    """A plain value in the kind of its question; if it does not fit, in a kind that says so.

    `None` for what no answer can be: null, objects, lists of other things than text.
    """
    match question, plain:
        case SingleSelectQuestion(), str():
            return SelectedValue(value=plain)
        case SingleSelectQuestion(), [str(first), *rest] if _all_text(rest):
            return SelectedValue(value=first, freeform_values=tuple(rest) or None)
        case MultiSelectQuestion(), [*chosen] if _all_text(chosen):
            return _selected_many(question, chosen)
        case _, [*chosen] if _all_text(chosen):
            return SelectedManyValue(value=tuple(chosen))
        case _, bool():
            return BooleanValue(value=plain)
        case _, int() | float():
            return NumberValue(value=plain)
        case _, str():
            return TextValue(value=plain)
        case _:
            return None


def _selected_many(question: MultiSelectQuestion, chosen: list[str]) -> SelectedManyValue:
    """Where own words are allowed, whatever is no option is taken for them."""
    if not question.allow_freeform_input:
        return SelectedManyValue(value=tuple(chosen))
    known = {option.id for option in question.options}
    own = tuple(text for text in chosen if text not in known)
    return SelectedManyValue(
        value=tuple(text for text in chosen if text in known), freeform_values=own or None
    )


def _all_text(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str) for value in values)
