"""What would be sent if a request were accepted now: the one definition of what counts.

Reviews, contents of forms, notes and the rules all ask here. A draft is never sent; the answer that
it covers is. A default is sent only where nobody has submitted or skipped an answer.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from session_server.reducers.forms.defaults import default_of
from session_server.reducers.forms.plain_values import content_value
from session_server.schemas.ahp.questions import (
    Answer,
    Draft,
    InputRequest,
    Question,
    ResponseKind,
    Reviewed,
    Skipped,
    Source,
    Submitted,
    Value,
)
from session_server.schemas.http import ReviewItem
from session_server.schemas.mcp import Content
from session_server.schemas.record import Outcome

Decided = Submitted | Skipped


class Sent(NamedTuple):
    source: Source
    value: Value | None = None


def decided(answer: Answer | None) -> Decided | None:
    """The answer that counts: this one, or the one that this draft covers."""
    if isinstance(answer, Draft):
        answer = None if answer.meta is None else answer.meta.covers
    return None if isinstance(answer, Draft) else answer


def effective_answers(
    request: InputRequest, own: Mapping[str, Answer] | None
) -> dict[str, Decided]:
    """The answers of a request as it is completed: what the completion brings goes over the others.

    A draft in the completion does not count, nor the answer that it claims to cover.
    """
    counted = {name: decided(answer) for name, answer in (request.answers or {}).items()}
    counted |= {name: a for name, a in (own or {}).items() if not isinstance(a, Draft)}
    asked = {question.id for question in request.questions or ()}
    return {name: a for name, a in counted.items() if a is not None and name in asked}


def sent_for(answer: Decided | None, default: Value | None) -> Sent:
    """What is sent for one question: the answer that counts, or else the default."""
    if isinstance(answer, Skipped):
        return Sent(Source.SKIPPED)
    if answer is not None and answer.value is not None:
        return Sent(Source.SUBMITTED, answer.value)
    return Sent(Source.UNANSWERED) if default is None else Sent(Source.DEFAULT, default)


def plain_content(questions: Iterable[Question], answers: Mapping[str, Answer]) -> Content:
    """What is sent, as plain values by question; questions for which nothing is sent are absent."""
    content: Content = {}
    for question in questions:
        value = sent_for(decided(answers.get(question.id)), default_of(question)).value
        if value is not None:
            content[question.id] = content_value(question, value)
    return content


def plain_answers(outcome: Outcome) -> Content:
    """What was sent, as plain values by question; empty unless the request was accepted."""
    if outcome.response is not ResponseKind.ACCEPT:
        return {}
    return plain_content(outcome.request.questions or (), outcome.answers or {})


def review_of(
    request: InputRequest, own: Mapping[str, Answer] | None = None
) -> tuple[ReviewItem, ...]:
    """What accepting sends for each question; `own` is what the completion would bring."""
    answers = effective_answers(request, own)
    return tuple(
        _item(question, answers.get(question.id), (request.answers or {}).get(question.id))
        for question in request.questions or ()
    )


def reviewed(request: InputRequest, own: Mapping[str, Answer] | None = None) -> Reviewed:
    """The same as a completion carries it, to be refused if anything else would be sent."""
    content = plain_content(request.questions or (), effective_answers(request, own))
    return Reviewed(content={**content}, revision=revision_of(request))


def revision_of(request: InputRequest) -> int | None:
    return None if request.meta is None else request.meta.revision


def changed_since(
    seen: Reviewed, request: InputRequest, own: Mapping[str, Answer] | None
) -> tuple[Question, ...]:
    """The questions for which something else would be sent than was reviewed."""
    now = reviewed(request, own).content
    return tuple(
        question
        for question in request.questions or ()
        if not _is_same(now.get(question.id), seen.content.get(question.id))
    )


def _item(question: Question, answer: Decided | None, shown: Answer | None) -> ReviewItem:
    source, value = sent_for(answer, default_of(question))
    is_left_out = isinstance(shown, Draft) and shown.value != value
    return ReviewItem(
        question_id=question.id,
        source=source,
        value=value,
        meta=None if answer is None else answer.meta,
        draft=_without_cover(shown) if is_left_out and isinstance(shown, Draft) else None,
    )


def _without_cover(draft: Draft) -> Draft:
    if draft.meta is None or draft.meta.covers is None:
        return draft
    meta = msgspec.structs.replace(draft.meta, covers=None)
    return msgspec.structs.replace(draft, meta=meta)


def _is_same(now: Any, seen: Any) -> bool:
    """Numbers as JavaScript knows them: a whole number beyond 53 bits is not exact there."""
    if isinstance(now, int | float) and isinstance(seen, int | float):
        return float(now) == float(seen)
    return bool(now == seen)
