"""Defaults of questions: the default value, or the recommended options."""

import msgspec

from session_server.reducers.forms.answer_checks import check_value
from session_server.reducers.forms.plain_values import value_of
from session_server.schemas.ahp.questions import (
    Answer,
    Draft,
    InputRequest,
    MultiSelectQuestion,
    Question,
    SelectedManyValue,
    SelectedValue,
    SingleSelectQuestion,
    Submitted,
    Value,
)
from session_server.schemas.principals import Provenance


def proposed_answers(request: InputRequest) -> dict[str, Answer] | None:
    """The answers that a request proposes; `None` if they do not satisfy it."""
    answers: dict[str, Answer] = {}
    for question in request.questions or ():
        value = proposed_value(question)
        if value is not None:
            answers[question.id] = Submitted(value=value)
        elif question.required:
            return None
    return answers


def is_proposal(answer: Answer) -> bool:
    """Whether the asker filled it in, and no person has changed it since."""
    is_proposed = answer.meta is not None and answer.meta.via is Provenance.PROPOSED
    return is_proposed and isinstance(answer, Draft)


def default_of(question: Question) -> Value | None:
    """The value sent for an unanswered optional question when its form is accepted."""
    return None if question.required else proposed_value(question)


def proposed_value(question: Question) -> Value | None:
    """The default, if it is a valid answer."""
    value = _proposal(question)
    return value if value is not None and check_value(question, value) is None else None


def with_valid_default(question: Question) -> Question:
    """The question without its default if that is not a valid answer."""
    if getattr(question, "default_value", None) is None or proposed_value(question) is not None:
        return question
    return msgspec.structs.replace(question, default_value=None)


def _proposal(question: Question) -> Value | None:
    match question:
        case SingleSelectQuestion():
            chosen = _recommended(question)
            return SelectedValue(value=chosen[0]) if chosen else None
        case MultiSelectQuestion():
            chosen = _recommended(question)
            return SelectedManyValue(value=chosen) if chosen else None
        case _:
            return value_of(question, question.default_value)


def _recommended(question: SingleSelectQuestion | MultiSelectQuestion) -> tuple[str, ...]:
    return tuple(option.id for option in question.options if option.recommended)
