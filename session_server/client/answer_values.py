"""Plain Python values as answers, by the kind of their question, with errors that help."""

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, TypeAlias

from session_server.client.errors import InvalidAnswer
from session_server.reducers.forms.answer_checks import check_answer, label
from session_server.reducers.rules.input_rules import question_of
from session_server.schemas.ahp.questions import (
    Answer,
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

Plain: TypeAlias = str | int | float | bool | Iterable[str] | Value
"""What `answer` accepts: the natural Python value, or a `Value` for full control."""


def answer_of(question: Question, plain: Plain, *, draft: bool = False) -> Answer:
    """Raises `InvalidAnswer` for what the host would refuse."""
    value = value_of(question, plain)
    answer = Draft(value=value) if draft else Submitted(value=value)
    refusal = check_answer(question, answer)
    if refusal is not None:
        raise InvalidAnswer(refusal.message, question.id)
    return answer


def answers_of(request: InputRequest, plain: Mapping[str, Plain | None]) -> dict[str, Answer]:
    """By question; `None` skips it."""
    return {
        question_id: Skipped() if value is None else answer_of(asked(request, question_id), value)
        for question_id, value in plain.items()
    }


def asked(request: InputRequest, question_id: str) -> Question:
    question = question_of(request, question_id)
    if question is None:
        known = [q.id for q in request.questions or ()]
        message = f"This request has no question {question_id!r}: {_has(question_id, known)}"
        if not known:
            message = "This request has no questions: accept or decline it."
        raise InvalidAnswer(message)
    return question


def value_of(question: Question, plain: Plain) -> Value:
    """The value in the question's kind."""
    if isinstance(plain, Value):
        return plain
    return _CONVERSIONS[type(question)](question, plain)


def _text(question: TextQuestion, plain: Any) -> Value:
    if not isinstance(plain, str):
        raise _wrong(question, "text", plain)
    return TextValue(value=plain)


def _number(question: NumberQuestion | IntegerQuestion, plain: Any) -> Value:
    is_integer = isinstance(question, IntegerQuestion)
    if isinstance(plain, bool) or not isinstance(plain, int | float):
        raise _wrong(question, "a whole number" if is_integer else "a number", plain)
    is_whole = is_integer and isinstance(plain, float) and plain % 1 == 0
    return NumberValue(value=int(plain) if is_whole else plain)


def _boolean(question: BooleanQuestion, plain: Any) -> Value:
    if not isinstance(plain, bool):
        raise _wrong(question, "True or False", plain)
    return BooleanValue(value=plain)


def _selected(question: SingleSelectQuestion, plain: Any) -> Value:
    if not isinstance(plain, str):
        raise _wrong(question, "the id of an option", plain)
    chosen = _option(question.options, plain)
    if chosen is not None:
        return SelectedValue(value=chosen)
    if not question.allow_freeform_input:
        raise _no_option(question, plain)
    return SelectedValue(value="", freeform_values=(plain,))


def _selected_many(question: MultiSelectQuestion, plain: Any) -> Value:
    if isinstance(plain, str) or not isinstance(plain, Iterable):
        raise _wrong(question, "a list of ids of options", plain)
    chosen: list[str] = []
    own: list[str] = []
    for item in plain:
        if not isinstance(item, str):
            raise _wrong(question, "a list of ids of options", item)
        option = _option(question.options, item)
        if option is None and not question.allow_freeform_input:
            raise _no_option(question, item)
        (own if option is None else chosen).append(option or item)
    return SelectedManyValue(value=tuple(chosen), freeform_values=tuple(own) or None)


_CONVERSIONS: dict[type, Callable[[Any, Any], Value]] = {
    TextQuestion: _text,
    NumberQuestion: _number,
    IntegerQuestion: _number,
    BooleanQuestion: _boolean,
    SingleSelectQuestion: _selected,
    MultiSelectQuestion: _selected_many,
}


def _option(options: Iterable[Option], word: str) -> str | None:
    """By id, or by a label that only one option has."""
    if any(option.id == word for option in options):
        return word
    labelled = [option.id for option in options if option.label == word]
    return labelled[0] if len(labelled) == 1 else None


def _no_option(question: SingleSelectQuestion | MultiSelectQuestion, word: str) -> InvalidAnswer:
    known = [option.id for option in question.options]
    text = f"{label(question)}: {word!r} is not one of the options: {_has(word, known)}"
    return InvalidAnswer(text, question.id)


def _wrong(question: Question, wanted: str, plain: object) -> InvalidAnswer:
    text = f"{label(question)}: takes {wanted}, not {plain!r} ({type(plain).__name__})."
    return InvalidAnswer(text, question.id)


def _has(word: str, known: list[str]) -> str:
    close = get_close_matches(word, known, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"use {' or '.join(map(repr, known))}." if known else "it has none."
