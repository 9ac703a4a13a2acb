"""Which answers an open request keeps, and who wrote them.

A draft never removes a submitted answer: it is kept under the draft (`AnswerMeta.covers`) until the
draft is submitted, or restored when the draft is cleared. When the text of a request changes,
answers become drafts again.
"""

from collections.abc import Mapping

import msgspec

from session_server.reducers.forms.answer_checks import check_answer
from session_server.reducers.state.input_requests import open_request
from session_server.schemas.ahp.actions import InputAnswerChanged
from session_server.schemas.ahp.questions import (
    Answer,
    AnswerMeta,
    Draft,
    InputRequest,
    Question,
    Skipped,
)
from session_server.schemas.ahp.session import SessionState
from session_server.schemas.principals import Provenance, Stamp


def kept_answer(state: SessionState, action: InputAnswerChanged) -> Answer | None:
    """The answer to keep under a new draft, or to restore when the draft is cleared."""
    request = open_request(state, action.request_id)
    existing = None if request is None else (request.answers or {}).get(action.question_id)
    if isinstance(existing, Draft):
        return None if existing.meta is None else existing.meta.covers
    return None if action.answer is None else existing


def stamped_change(
    state: SessionState, action: InputAnswerChanged, stamp: Stamp
) -> InputAnswerChanged:
    """The change with its author and time, and with the submitted answer kept under a draft."""
    kept = kept_answer(state, action)
    if action.answer is None:
        return msgspec.structs.replace(action, answer=kept)
    covers = kept if isinstance(action.answer, Draft) else None
    return msgspec.structs.replace(action, answer=_stamped(action.answer, stamp, covers))


def stamped_answers(answers: Mapping[str, Answer] | None, stamp: Stamp) -> dict[str, Answer] | None:
    """Answers sent with a completion, with their author and time."""
    if answers is None:
        return None
    return {question_id: _stamped(answer, stamp) for question_id, answer in answers.items()}


def _stamped(answer: Answer, stamp: Stamp, covers: Answer | None = None) -> Answer:
    """Overwrites what the client sent as `_meta`."""
    meta = AnswerMeta(by=stamp.by, at=stamp.at, via=stamp.via, covers=covers)
    return msgspec.structs.replace(answer, meta=meta)


def proposals(answers: Mapping[str, Answer] | None, stamp: Stamp) -> dict[str, Answer]:
    """Answers that the asker filled in, as drafts with their own provenance: only people submit."""
    by_asker = msgspec.structs.replace(stamp, via=Provenance.PROPOSED)
    return {
        question_id: _stamped(Draft(value=answer.value), by_asker)
        for question_id, answer in (answers or {}).items()
        if not isinstance(answer, Skipped)
    }


def reopened(request: InputRequest, answers: Mapping[str, Answer]) -> dict[str, Answer]:
    """Answers to the earlier questions as drafts, without those that are not valid any more."""
    drafts = {
        question.id: _reopened(question, answers[question.id])
        for question in request.questions or ()
        if question.id in answers
    }
    return {question_id: draft for question_id, draft in drafts.items() if draft is not None}


def _reopened(question: Question, answer: Answer) -> Draft | None:
    if isinstance(answer, Skipped):
        return None
    meta = answer.meta or AnswerMeta()
    covers = None if meta.covers is None else _reopened(question, meta.covers)
    marked = msgspec.structs.replace(meta, covers=covers, before_change=True)
    draft = Draft(value=answer.value, meta=marked)
    return draft if check_answer(question, draft) is None else covers


def still_fitting(request: InputRequest, answers: Mapping[str, Answer]) -> dict[str, Answer]:
    """The answers that are still valid when a call asks the same request again."""
    return {
        question.id: answers[question.id]
        for question in request.questions or ()
        if question.id in answers and check_answer(question, answers[question.id]) is None
    }
