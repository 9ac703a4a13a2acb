"""Answers from a file: which rule is for which request, and never a guess.

A fixture is a list of rules (or an object with `rules`). A rule says which requests it is for, by
`request`, `message`, `server`, `tool`, `key` or `question`, in one session or any; all that it says
must hold. It gives a `response` and, with `accept`, `answers` by a question's id, title or text.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from session_server.cli.files import read_document
from session_server.cli.naming import short_name
from session_server.cli.trouble import UsageTrouble
from session_server.cli.written import check_given
from session_server.client import InvalidAnswer, Plain
from session_server.client.values import answers_of, asked
from session_server.schemas.questions import Answer, InputRequest, Question, ResponseKind
from session_server.schemas.wire import Uri

MATCHERS = ("request", "message", "server", "tool", "key", "question")


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    session: str | None = None
    request: str | None = None
    message: str | None = None
    server: str | None = None
    tool: str | None = None
    key: str | None = None
    question: str | None = None
    response: ResponseKind = ResponseKind.ACCEPT
    answers: dict[str, Any] = {}

    def is_for(self, session: Uri, request: InputRequest) -> bool:
        if self.session is not None and short_name(self.session) != short_name(session):
            return False
        meta = request.meta
        is_so = {
            "request": self.request == request.id,
            "message": self.message == request.message,
            "server": meta is not None and self.server == meta.server,
            "tool": meta is not None and self.tool == meta.tool,
            "key": meta is not None and self.key == meta.key,
            "question": any(_is_called(q, self.question) for q in request.questions or ()),
        }
        return all(is_so[name] for name in MATCHERS if getattr(self, name) is not None)


FIELDS = Rule.__struct_fields__


class Unanswerable(Exception):  # noqa: N818 - a finding for the author of the fixture
    """No rule, several rules, or one whose answers do not fit."""


def read_fixture(path: Path) -> tuple[Rule, ...]:
    document = read_document(path)
    if isinstance(document, dict) and set(document) == {"rules"}:
        document = document["rules"]
    if not isinstance(document, list):
        raise UsageTrouble(f"{path} must be a list of rules.", 'Start with: - message: "…"')
    try:
        rules = msgspec.convert(document, tuple[Rule, ...])
    except msgspec.ValidationError as error:
        raise UsageTrouble(f"{path}: {error}", f"A rule can have {', '.join(FIELDS)}.") from None
    for number, rule in enumerate(rules, 1):
        _check(path, number, rule)
    return rules


def _check(path: Path, number: int, rule: Rule) -> None:
    if all(getattr(rule, name) is None for name in MATCHERS):
        words = f"{path}: rule {number} does not say which requests it matches."
        raise UsageTrouble(words, f"Give it at least one of {', '.join(MATCHERS)}.")
    if rule.answers and rule.response is not ResponseKind.ACCEPT:
        words = f"{path}: rule {number} has answers, but says {rule.response}."
        raise UsageTrouble(words, "Answers need `response: accept`.")


def rule_for(rules: Sequence[Rule], session: Uri, request: InputRequest) -> int:
    """The number of the one rule for this request."""
    numbers = [n for n, rule in enumerate(rules, 1) if rule.is_for(session, request)]
    if not numbers:
        raise Unanswerable(f"No rule matches it. {_described(request)}")
    if len(numbers) > 1:
        several = " and ".join(map(str, numbers))
        raise Unanswerable(f"Rules {several} both match it; make one of them more specific.")
    return numbers[0]


def answers_from(rule: Rule, request: InputRequest) -> dict[str, Answer] | None:
    """What the rule says, in the kinds of the questions; `null` skips a question."""
    if rule.response is not ResponseKind.ACCEPT:
        return None
    plain: dict[str, Plain | None] = {}
    for name, value in rule.answers.items():
        plain[_question_id(request, name)] = value
    try:
        answers = answers_of(request, plain) or None
        for name, value in plain.items():
            check_given(asked(request, name), value)
    except InvalidAnswer as error:
        raise Unanswerable(str(error)) from None
    return answers


def _question_id(request: InputRequest, name: str) -> str:
    questions = request.questions or ()
    if any(question.id == name for question in questions):
        return name
    called = [question.id for question in questions if _is_called(question, name)]
    if len(called) != 1:
        if not questions:
            raise Unanswerable("It has no questions, so the rule must not have answers.")
        known = ", ".join(question.id for question in questions)
        raise Unanswerable(f"It has no question {name!r}. Its questions are: {known}.")
    return called[0]


def _is_called(question: Question, name: str | None) -> bool:
    return name in (question.id, question.title, question.message)


def _described(request: InputRequest) -> str:
    """Everything that a rule could say of it."""
    return f"It has {', '.join(_marks(request))}."


def _marks(request: InputRequest) -> Iterator[str]:
    meta = request.meta
    yield f"request: {request.id}"
    if request.message is not None:
        yield f"message: {request.message}"
    for name in ("server", "tool", "key") if meta is not None else ():
        if getattr(meta, name) is not None:
            yield f"{name}: {getattr(meta, name)}"
    for question in request.questions or ():
        yield f"question: {question.id}"
