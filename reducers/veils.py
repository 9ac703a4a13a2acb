"""A form that repeats private arguments: as people see it, and what their answers to it mean.

What a question says is hidden word by word. Names that hold a secret get a stand-in, and since
questions and options keep their places, an answer finds its way back without the secret.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from ..schemas.calls import Call
from ..schemas.questions import (
    Answer,
    InputRequest,
    MultiSelectQuestion,
    Option,
    Question,
    SelectedManyValue,
    SelectedValue,
    SingleSelectQuestion,
    Submitted,
    TextQuestion,
)
from .privacy import masked

T = TypeVar("T")
Selecting = SingleSelectQuestion | MultiSelectQuestion

replace = msgspec.structs.replace


def veiled(call: Call, request: InputRequest) -> InputRequest:
    """The request without the private arguments of its call."""
    questions = request.questions or ()
    if not questions or not call.private_arguments:
        return request
    names = stand_ins(call, [question.id for question in questions])
    shown = tuple(_veiled(call, q, name) for q, name in zip(questions, names, strict=True))
    return replace(request, questions=shown)


def stand_ins(call: Call, names: Sequence[str]) -> list[str]:
    """The names as they may be shown, in their order and still told apart."""
    taken = {name for name in names if masked(call, name) == name}
    shown: list[str] = []
    for name in names:
        hidden = masked(call, name)
        if hidden != name:
            hidden = _free(hidden, taken)
            taken.add(hidden)
        shown.append(hidden)
    return shown


def gives_away(call: Call, url: str) -> bool:
    """Whether an address holds a private argument, also one that was escaped."""
    return masked(call, url) != url


def meant(
    questions: Sequence[Question], shown: Sequence[Question], answers: Mapping[str, Answer]
) -> dict[str, Answer]:
    """Answers to what was shown as answers to what the server asked."""
    return {
        question.id: _meant(question, seen, answers[seen.id])
        for question, seen in zip(questions, shown, strict=False)
        if seen.id in answers
    }


def _free(name: str, taken: set[str]) -> str:
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name} {number}"
    return free


def _veiled(call: Call, question: Question, name: str) -> Question:
    """What people read gets dots; what a form checks by is left out, since dots would change it."""
    told: dict[str, Any] = {
        field.name: _if_open(call, value)
        for field in msgspec.structs.fields(question)
        if isinstance(value := getattr(question, field.name), str | int | float)
    }
    told |= {
        "id": name,
        "message": masked(call, question.message),
        "title": masked(call, question.title),
    }
    if isinstance(question, TextQuestion) and question.meta is not None:
        told["meta"] = question.meta if _if_open(call, question.meta.pattern) is not None else None
    if isinstance(question, Selecting):
        told["options"] = _options(call, question)
    return replace(question, **told)


def _if_open(call: Call, value: T) -> T | None:
    """Nothing in place of what would be wrong with dots in it."""
    return value if masked(call, value) == value else None


def _options(call: Call, question: Selecting) -> tuple[Option, ...]:
    names = stand_ins(call, [option.id for option in question.options])
    return tuple(
        replace(
            option,
            id=name,
            label=name if option.label == option.id else masked(call, option.label),
            description=masked(call, option.description),
        )
        for option, name in zip(question.options, names, strict=True)
    )


def _meant(question: Question, seen: Question, answer: Answer) -> Answer:
    if not isinstance(question, Selecting) or not isinstance(seen, Selecting):
        return answer
    pairs = zip(question.options, seen.options, strict=False)
    real = {shown.id: option.id for option, shown in pairs}
    match answer:
        case Submitted(value=SelectedValue() as value):
            chosen = real.get(value.value, value.value)
            return replace(answer, value=replace(value, value=chosen))
        case Submitted(value=SelectedManyValue() as value):
            many = tuple(real.get(one, one) for one in value.value)
            return replace(answer, value=replace(value, value=many))
        case _:
            return answer
