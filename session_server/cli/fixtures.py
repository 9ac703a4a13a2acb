"""Files written by hand, in JSON or YAML, and answers from such a file."""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from session_server.cli.failures import UsageTrouble
from session_server.cli.session_names import short_name
from session_server.cli.values import check_given
from session_server.client import InvalidAnswer, Plain
from session_server.client.answer_values import answers_of, asked
from session_server.schemas.ahp.questions import Answer, InputRequest, Question, ResponseKind
from session_server.schemas.wire import Uri

STDIN = Path("-")
FILE_BYTES = 8 * 1024 * 1024


class Loader(yaml.SafeLoader):
    """Dates stay the text that they are written as: that is what answers are."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - as PyYAML has it
        sign: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for sign, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def read_document(path: Path) -> Any:
    """`-` is standard input.

    JSON is tried first: YAML reads most of it, but not the surrogate pairs that JSON writers use
    for characters such as emoji. A lone half of a pair is not text and is refused.
    """
    text = _text(path)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = _yaml(path, text)
    if _has_lone_surrogate(document):
        raise UsageTrouble(f"{path} contains half of a surrogate pair, which is not a character.")
    return document


def _yaml(path: Path, text: str) -> Any:
    try:
        return yaml.load(text, Loader)  # noqa: S506 - a safe one
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise UsageTrouble(f"{path} is neither JSON nor YAML: {error}") from None


def _has_lone_surrogate(document: Any) -> bool:
    match document:
        case str():
            return any("\ud800" <= character <= "\udfff" for character in document)
        case list():
            return any(map(_has_lone_surrogate, document))
        case dict():
            return any(map(_has_lone_surrogate, (*document.keys(), *document.values())))
        case _:
            return False


def _text(path: Path) -> str:
    try:
        raw = sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
        if len(raw) > FILE_BYTES:
            raise UsageTrouble(f"{path} has more than {FILE_BYTES:,} bytes.")
        return raw.decode()
    except OSError as error:
        raise UsageTrouble(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise UsageTrouble(f"{path} is not text in UTF-8.") from None


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
