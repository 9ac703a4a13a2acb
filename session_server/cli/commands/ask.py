"""`ask`: asks from a script or a CI job, waits, and prints the answers."""

import contextlib
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import httpx2
import msgspec
import typer

from session_server.cli.failures import CliError, ExitCode, UsageError
from session_server.cli.fixtures import read_document
from session_server.cli.http_client import JSON, Reach, session_path
from session_server.cli.output import err, print_json, print_text
from session_server.cli.polling import (
    Deadline,
    WaitOption,
    lease_option,
    polled,
    withdrawn_when_interrupted,
)
from session_server.cli.questions import parsed_questions
from session_server.cli.session_names import (
    how_to_answer,
    print_started,
    print_where,
    session_option,
    session_to_ask_in,
)
from session_server.cli.values import time_option
from session_server.reducers.texts import ending
from session_server.schemas.ahp.questions import BooleanQuestion, OnExpiry, ResponseKind
from session_server.schemas.codec import Decoder, encode
from session_server.schemas.http import EndedRequest, NewRequest, RequestState
from session_server.schemas.limits import (
    DEADLINE_SECONDS,
    LEASE_SECONDS,
    TITLE_CHARS,
    WAIT_SECONDS,
)
from session_server.schemas.principals import Provenance
from session_server.schemas.wire import Uri


def wanted_request(
    message: str | None, lines: list[str], file: Path | None, link: str | None
) -> NewRequest:
    if lines and file is not None:
        raise UsageError("Give --question or --file, not both.")
    fields: dict[str, Any] = {} if file is None else _from_file(file)
    if message is not None:
        fields["message"] = message
    if link is not None:
        fields["url"] = link
    try:
        wanted = msgspec.convert(fields, NewRequest)
    except msgspec.ValidationError as error:
        raise UsageError(f"{file} cannot be asked: {error}") from None
    if lines:
        wanted = msgspec.structs.replace(wanted, questions=parsed_questions(lines))
    if not (
        (wanted.message or "").strip() or wanted.questions or wanted.requested_schema or wanted.url
    ):
        advice = 'As in: session-server ask "Deploy?" -q "env:select:Where?=staging|prod*"'
        raise UsageError("There is nothing to ask.", advice)
    return wanted


def title_of(wanted: NewRequest) -> str:
    first = wanted.questions[0].message if wanted.questions else None
    return (wanted.message or first or "A question")[:TITLE_CHARS]


def _from_file(path: Path) -> dict[str, Any]:
    """A list of questions, a schema, or an object with one of them and a message."""
    match read_document(path):
        case list() as questions:
            return {"questions": questions}
        case {"properties": dict()} as schema:
            return {"requestedSchema": schema}
        case dict() as fields:
            return fields
        case _:
            message = f"{path} holds neither a list of questions nor an object."
            raise UsageError(message)


decode_state: Decoder[RequestState] = Decoder(RequestState)

PRINTABLE = "".join(chr(code) for code in range(0x21, 0x7F))
"""Characters that a header can have without encoding."""


def ask(
    reach: Reach,
    message: Annotated[
        str | None,
        typer.Argument(
            help="What the questions are about. Without questions, it asks for a yes or no."
        ),
    ] = None,
    question: Annotated[
        list[str] | None,
        typer.Option(
            "--question",
            "-q",
            help="One question: ID[?]:KIND[MIN..MAX]:PROMPT=REST. Can be given several times."
            " KIND is text, email, uri, date, date-time, number, integer, yes-no, select or multi."
            " REST is a default, or options: staging|prod*",
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            "-f",
            help="Questions in a JSON or YAML file: AHP questions, or an MCP requestedSchema."
            " `-` reads standard input.",
        ),
    ] = None,
    link: Annotated[
        str | None, typer.Option(help="A web address to open, in place of questions.")
    ] = None,
    session: Annotated[str | None, session_option("ask", "a new one")] = None,
    title: Annotated[str | None, typer.Option(help="Title of a new session.")] = None,
    expires_in: Annotated[
        float | None,
        time_option("Deadline of the question: 90s, 10m, 1h30m, 2d.", DEADLINE_SECONDS),
    ] = None,
    on_expiry: Annotated[
        OnExpiry | None,
        typer.Option(
            help="What happens at the deadline: cancel, use the defaults, or keep waiting."
        ),
    ] = None,
    wait: WaitOption = None,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Ask, and do not wait.")] = False,
    key: Annotated[
        str | None,
        typer.Option(
            help="A text of your own. Asking again with it does not ask twice, but goes on waiting;"
            " needs --session."
        ),
    ] = None,
    lease: Annotated[float, lease_option("answer", "--key or --no-wait")] = LEASE_SECONDS,
) -> ExitCode:
    """Ask people something and print what they answer.

    Prints the answer to a single question as it is, several as ID=VALUE lines. Exits with 0 if
    accepted, 3 if declined, 4 if cancelled, 5 on timeout, and 10 if the only question is a yes/no
    question and the answer is not yes, so that `ask … && ./deploy` deploys on a yes alone. Ctrl-C
    withdraws the question.

    For example: `session-server ask "Deploy?" -q "env:select:Where to?=staging|prod*"`
    """
    if key is not None and session is None:
        raise UsageError("--key needs --session, so that the question can be found again.")
    if title is not None and len(title) > TITLE_CHARS:
        raise UsageError(f"--title: at most {TITLE_CHARS} characters.")
    wanted = msgspec.structs.replace(
        wanted_request(message, question or [], file, link),
        expires_in=expires_in,
        on_expiry=on_expiry,
        lease=lease if key is None and not no_wait else None,
    )
    with reach.http() as http:
        with session_to_ask_in(http, session, title or title_of(wanted)) as uri:
            state = _asked(http, uri, wanted, key)
        if no_wait:
            return print_started(reach, "Asked", state)
        state = _awaited(reach, http, state, wait, keeps_open=key is not None)
        is_late = not isinstance(state, EndedRequest)
        if is_late and key is None:
            state = _withdrawn(http, state)
    return _report(reach, state, wait if is_late else None)


def _asked(http: httpx2.Client, uri: Uri, wanted: NewRequest, key: str | None) -> RequestState:
    headers = JSON if key is None else {**JSON, "Idempotency-Key": quote(key, safe=PRINTABLE)}
    response = http.post(f"{session_path(uri)}/requests", content=encode(wanted), headers=headers)
    return decode_state(response.content)


# Waiting


def _awaited(
    reach: Reach, http: httpx2.Client, state: RequestState, wait: float | None, *, keeps_open: bool
) -> RequestState:
    """Waits until it has ended or the time is up."""
    deadline = Deadline(wait)
    text = "Waiting for an answer. Ctrl-C withdraws the question."
    with withdrawn_when_interrupted(
        http, _path(state), "The question was withdrawn.", on_sigterm=not keeps_open
    ):
        print_where(reach, "Asked", state.session)
        with err.status(text) if err.is_terminal else contextlib.nullcontext():
            while not isinstance(state, EndedRequest) and (left := deadline.left(WAIT_SECONDS)):
                state = polled(http, _path(state), left, decode_state) or state
    return state


def _withdrawn(http: httpx2.Client, state: RequestState) -> RequestState:
    """Withdraws it, since a later answer would not be read. One that has just come counts."""
    with contextlib.suppress(httpx2.HTTPError, CliError):
        http.delete(_path(state))
    with contextlib.suppress(httpx2.HTTPError, CliError):
        return decode_state(http.get(_path(state)).content)
    return state


def _path(state: RequestState) -> str:
    return f"{session_path(state.session)}/requests/{quote(state.id, safe='')}"


def _report(reach: Reach, state: RequestState, waited: float | None) -> ExitCode:
    """Prints the answers on stdout; how it ended on stderr, unless a person just accepted.

    `waited` is the time that was too short, if it was.
    """
    if reach.as_json:
        print_json(state, pretty=True)
    if not isinstance(state, EndedRequest):
        message = f"Nobody answered within {waited:g} s. The question stays open."
        raise CliError(message, ExitCode.TIMED_OUT, how_to_answer(reach, state.session))
    if waited is not None and state.outcome.via is Provenance.WITHDRAWN:
        message = f"Nobody answered within {waited:g} s, so the question was withdrawn."
        advice = "With --session and --key it stays open, and asking again goes on waiting."
        raise CliError(message, ExitCode.TIMED_OUT, advice)
    if not reach.as_json:
        is_accepted = state.outcome.response is ResponseKind.ACCEPT
        for line in answer_lines(state) if is_accepted else ():
            print_text(line)
        if not is_accepted or state.outcome.via is not Provenance.PERSON:
            err.print(ending(state.outcome), soft_wrap=True)
    return exit_code(state)


def exit_code(state: EndedRequest) -> ExitCode:
    """A timeout is never reported as a decline, and only a yes is a success for `&&`."""
    outcome = state.outcome
    if outcome.response is ResponseKind.ACCEPT:
        match outcome.request.questions:
            case (BooleanQuestion(id=name),) if (state.content or {}).get(name) is not True:
                return ExitCode.NO
            case _:
                return ExitCode.OK
    if outcome.via is Provenance.TIMEOUT:
        return ExitCode.TIMED_OUT
    is_no = outcome.response is ResponseKind.DECLINE
    return ExitCode.DECLINED if is_no else ExitCode.CANCELLED


def answer_lines(state: EndedRequest) -> list[str]:
    """For shells: the value alone, or a line for each question that was answered."""
    content = state.content or {}
    questions = state.outcome.request.questions or ()
    if not questions:
        return ["accepted"]
    if len(questions) == 1:
        return [_shell_value(value) for value in content.values()]
    return [f"{name}={_shell_value(value)}" for name, value in content.items()]


def _shell_value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case list() | tuple():
            return ",".join(map(str, value))
        case _:
            return str(value)
