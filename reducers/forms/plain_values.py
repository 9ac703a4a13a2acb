"""Answers as plain JSON values and back, by the questions alone.

For programs that ask and answer without AHP's kinds of values. Of a form that came from an MCP
schema, the content is as that schema defines it.
"""

from collections.abc import Iterable
from typing import Any

from session_server.schemas.ahp.questions import (
    BooleanValue,
    IntegerQuestion,
    MultiSelectQuestion,
    NumberValue,
    Question,
    SelectedManyValue,
    SelectedValue,
    SingleSelectQuestion,
    TextValue,
    Value,
)
from session_server.schemas.mcp import ContentValue


def content_value(question: Question, value: Value) -> ContentValue:
    """An answer as plain JSON; a whole number stays whole, freeform text follows the options."""
    match value:
        case NumberValue():
            return int(value.value) if isinstance(question, IntegerQuestion) else value.value
        case SelectedValue():
            own = list(value.freeform_values or ())
            chosen = [value.value, *own] if value.value or not own else own
            return chosen[0] if len(chosen) == 1 else chosen
        case SelectedManyValue():
            return [*value.value, *(value.freeform_values or ())]
        case _:
            return value.value


def value_of(question: Question, plain: Any) -> Value | None:
    """A plain value in the kind of its question; one of another kind stays that, to be refused.

    `None` for what cannot be an answer: null, objects, lists of anything but text.
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
    """Where freeform text is allowed, everything that is not an option is freeform text."""
    if not question.allow_freeform_input:
        return SelectedManyValue(value=tuple(chosen))
    known = {option.id for option in question.options}
    own = tuple(text for text in chosen if text not in known)
    return SelectedManyValue(
        value=tuple(text for text in chosen if text in known), freeform_values=own or None
    )


def _all_text(values: Iterable[Any]) -> bool:
    return all(isinstance(value, str) for value in values)
