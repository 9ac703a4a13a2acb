"""Answers as plain JSON values and back, by the questions alone.

For programs that ask and answer without AHP's kinds of values. Of a form that came from an MCP
schema, the content is as that schema defines it.
"""

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
    match plain:
        case bool():
            return BooleanValue(value=plain)
        case int() | float():
            return NumberValue(value=plain)
        case str():
            is_choice = isinstance(question, SingleSelectQuestion)
            return SelectedValue(value=plain) if is_choice else TextValue(value=plain)
        case [*chosen] if all(isinstance(text, str) for text in chosen):
            return _selected(question, chosen)
        case _:
            return None


def _selected(question: Question, chosen: list[str]) -> SelectedValue | SelectedManyValue:
    """Where freeform text is allowed, everything that is not an option is freeform text."""
    if isinstance(question, SingleSelectQuestion) and chosen:
        first, *rest = chosen
        return SelectedValue(value=first, freeform_values=tuple(rest) or None)
    if not isinstance(question, MultiSelectQuestion) or not question.allow_freeform_input:
        return SelectedManyValue(value=tuple(chosen))
    known = {option.id for option in question.options}
    own = tuple(text for text in chosen if text not in known)
    return SelectedManyValue(
        value=tuple(text for text in chosen if text in known), freeform_values=own or None
    )
