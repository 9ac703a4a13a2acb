"""What the host writes into a turn, so that people who come later can read what happened.

Everything in a note was public before: what was asked, what was answered, by whom and how.
"""

from collections.abc import Iterable, Iterator

from ..schemas.calls import Call, Outcome
from ..schemas.principals import HOST, Author, Provenance
from ..schemas.questions import (
    Answer,
    AnswerMeta,
    InputRequest,
    Question,
    ResponseKind,
    Skipped,
    Source,
)
from .answers import label
from .proposals import default_of
from .review import decided, sent_for
from .words import name_of, subject_name, value_words

SHOWN_CHARS = 200

_ENDINGS = {
    Provenance.TIMEOUT: "timed out",
    Provenance.WITHDRAWN: "was withdrawn",
    Provenance.ABANDONED: "was abandoned",
}
_VERBS = {
    ResponseKind.ACCEPT: "answered",
    ResponseKind.DECLINE: "declined",
    ResponseKind.CANCEL: "cancelled",
}


def subject(request: InputRequest) -> str:
    """What was asked, in one line."""
    questions = request.questions or ()
    return _short(request.message or (label(questions[0]) if questions else "") or request.id)


def ending(outcome: Outcome) -> str:
    """One line: who ended the request and how."""
    what = f"“{subject(outcome.request)}”"
    if outcome.response is ResponseKind.ACCEPT and outcome.via is Provenance.DEFAULT:
        return f"{what} got its defaults: nobody answered in time."
    if outcome.response is not ResponseKind.ACCEPT and outcome.via in _ENDINGS:
        return f"{what} {_ENDINGS[outcome.via]}{_by(outcome.by)}."
    how = " (a policy)" if outcome.via is Provenance.POLICY else ""
    return f"{_short(subject_name(outcome.by))}{how} {_VERBS[outcome.response]} {what}."


def outcome_note(outcome: Outcome) -> str:
    """The same with the answers, for those who come later."""
    is_accepted = outcome.response is ResponseKind.ACCEPT
    answers = "; ".join(_answers(outcome)) if is_accepted else ""
    return f"{ending(outcome)} {answers}".rstrip()


def abandoned_note(
    calls: Iterable[Call], requests: Iterable[InputRequest], by: Author | None
) -> str:
    what = [f"the call to {call.server}/{call.target}" for call in calls]
    what += [f"the question “{subject(request)}”" for request in requests]
    return f"Abandoned as the turn was ended{_by(by)}: {', '.join(what)}."


def _by(author: Author | None) -> str:
    """What the host does on its own needs no name."""
    return "" if author is None or author.id == HOST.id else f" by {_short(name_of(author))}"


def _answers(outcome: Outcome) -> Iterator[str]:
    """In the order of the questions; those that got nothing are left out."""
    given = outcome.answers or {}
    for question in outcome.request.questions or ():
        words = _answer(question, given.get(question.id), outcome)
        if words is not None:
            yield f"{_short(label(question))}: {words}"


def _answer(question: Question, answer: Answer | None, outcome: Outcome) -> str | None:
    if isinstance(answer, Skipped):
        own = answer.freeform_values
        said = f", saying “{_short(', '.join(own))}”" if own else ""
        return f"skipped{said}{_marks(answer.meta, outcome)}"
    source, value = sent_for(decided(answer), default_of(question))
    words = "" if value is None else _short(value_words(question, value))
    if answer is not None and source is Source.SUBMITTED:
        return f"{words}{_marks(answer.meta, outcome)}"
    return f"{words} (default)" if words else None


def _marks(meta: AnswerMeta | None, outcome: Outcome) -> str:
    """Whose it is, unless whoever ended the request said it as well."""
    if meta is None or (meta.by, meta.via) == (outcome.by, outcome.via):
        return " (default)" if outcome.via is Provenance.DEFAULT else ""
    return f" ({_short(name_of(meta.by))}{', a policy' if meta.via is Provenance.POLICY else ''})"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_CHARS else f"{line[: SHOWN_CHARS - 1]}…"
