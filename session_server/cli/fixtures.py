"""Answers from a JSON or YAML file: its rules, and answering by them as a policy."""

import asyncio
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import yaml

from session_server.cli.commands.sessions import State, state_of
from session_server.cli.failures import CliError, ExitCode, UsageError
from session_server.cli.output import err, out, print_json
from session_server.cli.session_names import short_name
from session_server.cli.values import check_plain
from session_server.client import (
    Client,
    InvalidAnswer,
    Rejected,
    RequestClosed,
    Session,
    SessionNotFound,
)
from session_server.client.answer_values import answers_of, asked
from session_server.reducers.texts import subject
from session_server.schemas.ahp.actions import InputCompleted
from session_server.schemas.ahp.questions import Answer, InputRequest, Question, ResponseKind
from session_server.schemas.errors import SessionServerError
from session_server.schemas.wire import Uri

STDIN = Path("-")
FILE_BYTES = 8 * 1024 * 1024


class Loader(yaml.SafeLoader):
    """Dates stay text, as answers are."""

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
        raise UsageError(f"{path} contains half of a surrogate pair, which is not a character.")
    return document


def _yaml(path: Path, text: str) -> Any:
    try:
        return yaml.load(text, Loader)  # noqa: S506 - a safe one
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise UsageError(f"{path} is neither JSON nor YAML: {error}") from None


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


def read_bytes(path: Path) -> bytes:
    """`-` is standard input."""
    try:
        return sys.stdin.buffer.read() if path == STDIN else path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from None


def _text(path: Path) -> str:
    raw = read_bytes(path)
    if len(raw) > FILE_BYTES:
        raise UsageError(f"{path} has more than {FILE_BYTES:,} bytes.")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not text in UTF-8.") from None


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


class UnanswerableError(SessionServerError):
    """A fixture has no rule for a request, several, or one whose answers do not fit."""

    code = "unanswerable"


def read_fixture(path: Path) -> tuple[Rule, ...]:
    document = read_document(path)
    if isinstance(document, dict) and set(document) == {"rules"}:
        document = document["rules"]
    if not isinstance(document, list):
        raise UsageError(f"{path} must be a list of rules.", 'Start with: - message: "…"')
    try:
        rules = msgspec.convert(document, tuple[Rule, ...])
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {error}", f"A rule can have {', '.join(FIELDS)}.") from None
    for number, rule in enumerate(rules, 1):
        if all(getattr(rule, name) is None for name in MATCHERS):
            message = f"{path}: rule {number} does not name the requests that it matches."
            raise UsageError(message, f"Give it at least one of {', '.join(MATCHERS)}.")
        if rule.answers and rule.response is not ResponseKind.ACCEPT:
            message = f"{path}: rule {number} has answers, but its response is {rule.response}."
            raise UsageError(message, "Answers need `response: accept`.")
    return rules


def rule_for(rules: Sequence[Rule], session: Uri, request: InputRequest) -> int:
    """The number of the one rule for this request."""
    numbers = [n for n, rule in enumerate(rules, 1) if rule.is_for(session, request)]
    if not numbers:
        marks = ", ".join(_marks(request))
        raise UnanswerableError(f"No rule matches it. It has {marks}.")
    if len(numbers) > 1:
        several = " and ".join(map(str, numbers))
        raise UnanswerableError(f"Rules {several} both match it; make one of them more specific.")
    return numbers[0]


def answers_from(rule: Rule, request: InputRequest) -> dict[str, Answer] | None:
    """The rule's answers, in the kinds of the questions; `null` skips a question."""
    if rule.response is not ResponseKind.ACCEPT:
        return None
    plain = {_question_id(request, name): value for name, value in rule.answers.items()}
    try:
        answers = answers_of(request, plain) or None
        for name, value in plain.items():
            check_plain(asked(request, name), value)
    except InvalidAnswer as error:
        raise UnanswerableError(str(error)) from None
    return answers


def _question_id(request: InputRequest, name: str) -> str:
    questions = request.questions or ()
    if any(question.id == name for question in questions):
        return name
    called = [question.id for question in questions if _is_called(question, name)]
    if len(called) != 1:
        if not questions:
            raise UnanswerableError("It has no questions, so the rule must not have answers.")
        known = ", ".join(question.id for question in questions)
        raise UnanswerableError(f"It has no question {name!r}. Its questions are: {known}.")
    return called[0]


def _is_called(question: Question, name: str | None) -> bool:
    return name in (question.id, question.title, question.message)


def _marks(request: InputRequest) -> Iterator[str]:
    """Everything that a rule could match."""
    meta = request.meta
    yield f"request: {request.id}"
    if request.message is not None:
        yield f"message: {request.message}"
    for name in ("server", "tool", "key") if meta is not None else ():
        if getattr(meta, name) is not None:
            yield f"{name}: {getattr(meta, name)}"
    for question in request.questions or ():
        yield f"question: {question.id}"


class Policy:
    """Answers by rules, and counts what was answered and what was not.

    It stops after what is open now, after `limit` answers, or, if it is endless, never.
    """

    def __init__(
        self, rules: Sequence[Rule], limit: int | None, *, is_endless: bool, as_json: bool
    ) -> None:
        self._rules = rules
        self._limit = limit
        self._is_endless = is_endless
        self._as_json = as_json
        self._tried: dict[tuple[Uri, str], InputRequest] = {}
        self._answered = 0
        self._refused = 0

    @property
    def _is_done(self) -> bool:
        return not self._is_endless if self._limit is None else self._answered >= self._limit

    async def run(self, client: Client, uri: Uri | None, seconds: float | None) -> ExitCode:
        """In one session, or in all."""
        try:
            async with asyncio.timeout(seconds):
                if uri is None:
                    await self._all(client)
                else:
                    async with client.session(uri) as session:
                        await self._one(session)
        except TimeoutError:
            if not self._is_endless:
                message = f"{self._answered} of {self._limit} questions came in time."
                raise CliError(message, ExitCode.TIMED_OUT) from None
        if self._refused:
            return ExitCode.UNANSWERED
        if not self._answered and not self._is_endless:
            message = "No question is open."
            raise CliError(message, ExitCode.NOT_FOUND, "To wait for one, add --wait 10m.")
        return ExitCode.OK

    async def _one(self, session: Session) -> None:
        changes = session.changes()
        await self._look(session)
        while not self._is_done:
            await anext(changes)
            await self._look(session)

    async def _all(self, client: Client) -> None:
        async for sessions in client.sessions():
            for summary in sessions:
                if state_of(summary) is State.INPUT_NEEDED:
                    with suppress(SessionNotFound):
                        async with client.session(summary.resource) as session:
                            await self._look(session)
            if self._is_done:
                return

    async def _look(self, session: Session) -> None:
        for request in session.confirmed.input_requests or ():
            key, asked = (session.uri, request.id), msgspec.structs.replace(request, answers=None)
            if self._tried.get(key) != asked:
                self._tried[key] = asked
                await self._try(session, request)

    async def _try(self, session: Session, request: InputRequest) -> None:
        try:
            number = rule_for(self._rules, session.uri, request)
            rule = self._rules[number - 1]
            action = InputCompleted(
                request_id=request.id,
                response=rule.response,
                answers=answers_from(rule, request),
            )
            await session.dispatch(action)
        except RequestClosed:
            return  # someone else closed it first
        except (UnanswerableError, Rejected) as error:
            self._refused += 1
            if self._as_json:
                refusal = {"session": session.uri, "request": request.id}
                print_json({**refusal, "unanswered": str(error)})
                return
            text = f"{short_name(session.uri)}: “{subject(request)}” is left open. {error}"
            err.print(text, style="yellow", soft_wrap=True)
            return
        self._answered += 1
        if self._as_json:
            answered = {"session": session.uri, "request": request.id, "response": rule.response}
            print_json({**answered, "rule": number})
            return
        text = f"{short_name(session.uri)}: {rule.response} “{subject(request)}” (rule {number})"
        out.print(text, soft_wrap=True)
