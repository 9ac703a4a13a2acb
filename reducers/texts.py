"""Texts that people read: names, values, notes in a transcript, session names."""

import re
from collections.abc import Iterable, Iterator
from unicodedata import category
from urllib.parse import quote

from session_server.reducers.forms.answer_checks import label
from session_server.reducers.forms.defaults import default_of
from session_server.reducers.forms.plain_values import content_value
from session_server.reducers.forms.review import decided, sent_for
from session_server.schemas.ahp.commands import SESSION_PREFIX
from session_server.schemas.ahp.questions import (
    Answer,
    AnswerMeta,
    BooleanValue,
    InputRequest,
    MultiSelectQuestion,
    Question,
    ResponseKind,
    SelectedManyValue,
    SelectedValue,
    SingleSelectQuestion,
    Skipped,
    Source,
    Value,
)
from session_server.schemas.principals import (
    AGENT_PREFIX,
    HOST,
    LOCAL_ID,
    OWNER_ID,
    SHARE_PREFIX,
    Author,
    Provenance,
)
from session_server.schemas.record import Call, Outcome
from session_server.schemas.wire import Uri

_NAMELESS = {LOCAL_ID: "someone", OWNER_ID: "the owner", HOST.id: "the host"}


_UNSEEN = frozenset({"Cc", "Cf", "Co", "Cs"})
_BLANKS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks without a shape."""

_JOINERS = "\u200c\u200d"
_JOINED = frozenset({"Lo", "Mc", "Mn", "Sk", "So"})
"""Characters after which a joiner is visible: Arabic and Indic letters, and emoji."""


def visible_name(text: str) -> str:
    """A name or title as it is shown to others: without what is not seen or changes what is.

    Control and format characters (those that turn the direction of writing among them) are dropped,
    and all white space becomes single spaces; so two names that look the same are more often the
    same. What has nothing to see in it is empty.
    """
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    kept: list[str] = []
    for letter in " ".join(text.split()):
        if letter in _JOINERS:
            if kept and category(kept[-1]) in _JOINED:
                kept.append(letter)
        elif letter not in _BLANKS and category(letter) not in _UNSEEN:
            kept.append(letter)
    return " ".join("".join(kept).split()).rstrip(_JOINERS)


def name_of(author: Author | None) -> str:
    """The name of an author, or a description; ids of the host's own making are not shown."""
    if author is None:
        return "someone"
    return author.name or _description(author) or author.id.removeprefix(AGENT_PREFIX)


def subject_name(author: Author | None) -> str:
    """The same at the start of a sentence: descriptions get a capital, names stay as they are."""
    name = name_of(author)
    is_name = author is not None and (author.name or _description(author) is None)
    return name if is_name else name.capitalize()


def _description(author: Author) -> str | None:
    return "a guest" if author.id.startswith(SHARE_PREFIX) else _NAMELESS.get(author.id)


def value_text(question: Question, value: Value) -> str:
    """With the labels of options, which are what was chosen from."""
    match value:
        case BooleanValue(value=truth):
            return "Yes" if truth else "No"
        case SelectedValue(value=chosen, freeform_values=own):
            return _chosen(question, (chosen,) if chosen else (), own)
        case SelectedManyValue(value=chosen, freeform_values=own):
            return _chosen(question, chosen, own)
        case _:
            return str(content_value(question, value))


def _chosen(question: Question, ids: tuple[str, ...], own: tuple[str, ...] | None) -> str:
    labels: dict[str, str] = {}
    if isinstance(question, SingleSelectQuestion | MultiSelectQuestion):
        labels = {option.id: option.label for option in question.options}
    return ", ".join((*(labels.get(name, name) for name in ids), *(own or ())))


_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def session_uri(name: str) -> Uri:
    """The URI of a session from its name in an address."""
    return name if _SCHEME.match(name) else f"{SESSION_PREFIX}{name}"


def session_name(uri: Uri) -> str:
    """The shortest name of a session that is valid in an address."""
    path = uri.removeprefix(SESSION_PREFIX)
    is_plain = path != uri and path and not _SCHEME.match(path)
    return quote(path if is_plain else uri, safe="")


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
    """Actions of the host itself are shown without a name."""
    return "" if author is None or author.id == HOST.id else f" by {_short(name_of(author))}"


def _answers(outcome: Outcome) -> Iterator[str]:
    """In the order of the questions; those that got nothing are left out."""
    given = outcome.answers or {}
    for question in outcome.request.questions or ():
        text = _answer(question, given.get(question.id), outcome)
        if text is not None:
            yield f"{_short(label(question))}: {text}"


def _answer(question: Question, answer: Answer | None, outcome: Outcome) -> str | None:
    if isinstance(answer, Skipped):
        own = answer.freeform_values
        comment = f", saying “{_short(', '.join(own))}”" if own else ""
        return f"skipped{comment}{_marks(answer.meta, outcome)}"
    source, value = sent_for(decided(answer), default_of(question))
    text = "" if value is None else _short(value_text(question, value))
    if answer is not None and source is Source.SUBMITTED:
        return f"{text}{_marks(answer.meta, outcome)}"
    return f"{text} (default)" if text else None


def _marks(meta: AnswerMeta | None, outcome: Outcome) -> str:
    """The author of the answer, unless the same author ended the request."""
    if meta is None or (meta.by, meta.via) == (outcome.by, outcome.via):
        return " (default)" if outcome.via is Provenance.DEFAULT else ""
    return f" ({_short(name_of(meta.by))}{', a policy' if meta.via is Provenance.POLICY else ''})"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_CHARS else f"{line[: SHOWN_CHARS - 1]}…"
