"""What the host writes into a turn, so that people who come later can read what happened."""

from collections.abc import Iterable

from ..schemas.calls import Call, Outcome
from ..schemas.principals import Provenance
from ..schemas.questions import InputRequest, ResponseKind, Skipped, Submitted
from .answers import label
from .forms import content_value

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
    if outcome.response is not ResponseKind.ACCEPT and outcome.via in _ENDINGS:
        return f"{what} {_ENDINGS[outcome.via]}."
    return f"{_who(outcome)} {_VERBS[outcome.response]} {what}."


def outcome_note(outcome: Outcome) -> str:
    """The same with the answers, for those who come later."""
    answers = _answer_list(outcome) if outcome.response is ResponseKind.ACCEPT else ""
    return f"{ending(outcome)} {answers}".rstrip()


def abandoned_note(calls: Iterable[Call], requests: Iterable[InputRequest]) -> str:
    what = [f"the call to {call.server}/{call.target}" for call in calls]
    what += [f"the question “{subject(request)}”" for request in requests]
    return f"Abandoned as the turn ended: {', '.join(what)}."


def _who(outcome: Outcome) -> str:
    who = str(outcome.by) if outcome.by is not None else "Someone"
    how = {
        Provenance.POLICY: f"{who} (a policy)",
        Provenance.DEFAULT: "The defaults",
        Provenance.TIMEOUT: "The defaults, after a timeout,",
    }
    return how.get(outcome.via, who)


def _answer_list(outcome: Outcome) -> str:
    said = []
    for question in outcome.request.questions or ():
        match (outcome.answers or {}).get(question.id):
            case Submitted(value=value, meta=meta) if value is not None:
                author = None if meta is None else meta.by
                by = f" ({author})" if author is not None and author != outcome.by else ""
                plain = content_value(question, value)
                words = ", ".join(map(str, plain)) if isinstance(plain, list) else str(plain)
                said.append(f"{_short(label(question))}: {_short(words)}{by}")
            case Skipped():
                said.append(f"{_short(label(question))}: skipped")
            case _:
                pass
    return "; ".join(said)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_CHARS else f"{line[: SHOWN_CHARS - 1]}…"
