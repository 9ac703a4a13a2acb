"""`ask`: asks from a script or a CI job, waits, and prints the answers."""

import contextlib
import time
from collections.abc import Generator
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import httpx
import msgspec
import typer

from session_server.cli.durations import duration
from session_server.cli.exits import ExitCode
from session_server.cli.files import read_document
from session_server.cli.naming import complete_session, short_name
from session_server.cli.output import err, out, print_json
from session_server.cli.questions import parsed_questions
from session_server.cli.reach import JSON, Reach, session_path
from session_server.cli.trouble import Trouble, UsageTrouble
from session_server.client.client import SESSION_PREFIX
from session_server.reducers.notes import ending
from session_server.schemas.calls import Outcome
from session_server.schemas.codec import Decoder, encode
from session_server.schemas.http import EndedRequest, NewRequest, NewSession, RequestState
from session_server.schemas.limits import TITLE_CHARS, WAIT_SECONDS
from session_server.schemas.principals import Provenance
from session_server.schemas.questions import OnExpiry, ResponseKind
from session_server.schemas.session import SessionSummary
from session_server.schemas.wire import Uri

decode_state: Decoder[RequestState] = Decoder(RequestState)

PAUSE_SECONDS = 1.0
QUESTION_HELP = (
    "One question: ID[?]:KIND[MIN..MAX]:PROMPT=REST. Can be given several times."
    " KIND is text, email, uri, date, date-time, number, integer, yes-no, select or multi."
    " REST is a default, or options: staging|prod*"
)


def ask(
    reach: Reach,
    message: Annotated[
        str | None, typer.Argument(help="What it is about; alone, it asks for a yes or no.")
    ] = None,
    question: Annotated[
        list[str] | None, typer.Option("--question", "-q", help=QUESTION_HELP)
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
    session: Annotated[
        str | None,
        typer.Option(
            help="Session to ask in; it is made if there is none. A new one if not given.",
            autocompletion=complete_session,
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of a new session.")] = None,
    expires_in: Annotated[
        float | None,
        typer.Option(
            help="Deadline of the question: 90s, 10m, 1h30m, 2d.", parser=duration, metavar="TIME"
        ),
    ] = None,
    on_expiry: Annotated[
        OnExpiry | None,
        typer.Option(help="What the deadline brings: cancel, use the defaults, or keep waiting."),
    ] = None,
    wait: Annotated[
        float | None,
        typer.Option(
            help="How long to wait for an answer; for ever if not given.",
            parser=duration,
            metavar="TIME",
        ),
    ] = None,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Ask, and do not wait.")] = False,
    key: Annotated[
        str | None,
        typer.Option(
            help="A text of your own. Asking again with it does not ask twice, but goes on waiting;"
            " needs --session."
        ),
    ] = None,
) -> ExitCode:
    """Ask people something and print what they answer.

    Prints the answer to a single question as it is, several as ID=VALUE lines. Exits with 0 if
    accepted, 3 if declined, 4 if cancelled, 5 if the time was over. Ctrl-C takes the question back.

    For example: `session-server ask "Deploy?" -q "env:select:Where to?=staging|prod*"`
    """
    wanted = _wanted(message, question or [], file, link)
    wanted = msgspec.structs.replace(wanted, expires_in=expires_in, on_expiry=on_expiry)
    if key is not None and session is None:
        raise UsageTrouble("--key needs --session: a new session has nothing to find.")
    with reach.http() as http:
        uri = session_for(http, session, title or _title(wanted))
        state = _asked(http, uri, wanted, key)
        if no_wait:
            return _asked_only(reach, state)
        path = f"{session_path(uri)}/requests/{quote(state.id, safe='')}"
        with _taken_back_by_ctrl_c(http, path):
            err.print(f"Asked in {short_name(uri)}. {_how_to(uri)}", soft_wrap=True, markup=False)
            state = _awaited(http, path, state, wait)
    return _told(reach, state, wait)


# Asking


def _wanted(
    message: str | None, lines: list[str], file: Path | None, link: str | None
) -> NewRequest:
    if lines and file is not None:
        raise UsageTrouble("Give --question or --file, not both.")
    fields: dict[str, Any] = {} if file is None else _from_file(file)
    if message is not None:
        fields["message"] = message
    if link is not None:
        fields["url"] = link
    try:
        wanted = msgspec.convert(fields, NewRequest)
    except msgspec.ValidationError as error:
        raise UsageTrouble(f"{file} cannot be asked: {error}") from None
    if lines:
        wanted = msgspec.structs.replace(wanted, questions=parsed_questions(lines))
    if not (wanted.message or wanted.questions or wanted.requested_schema or wanted.url):
        advice = 'As in: session-server ask "Deploy?" -q "env:select:Where?=staging|prod*"'
        raise UsageTrouble("There is nothing to ask.", advice)
    return wanted


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
            words = f"{path} holds neither a list of questions nor an object."
            raise UsageTrouble(words)


def _title(wanted: NewRequest) -> str:
    first = wanted.questions[0].message if wanted.questions else None
    return (wanted.message or first or "A question")[:TITLE_CHARS]


def session_for(http: httpx.Client, name: str | None, title: str) -> Uri:
    """The one that is named, made if there is none; or a new one."""
    uri = None
    if name is not None:
        uri = name if ":" in name else f"{SESSION_PREFIX}{name}"
        try:
            http.get(session_path(uri))
        except Trouble as trouble:
            if trouble.code is not ExitCode.NOT_FOUND:
                raise
        else:
            return uri
    made = http.post(
        "/v1/sessions", content=encode(NewSession(resource=uri, title=title)), headers=JSON
    )
    return msgspec.json.decode(made.content, type=SessionSummary).resource


def _asked(http: httpx.Client, uri: Uri, wanted: NewRequest, key: str | None) -> RequestState:
    headers = JSON if key is None else {**JSON, "Idempotency-Key": key}
    response = http.post(f"{session_path(uri)}/requests", content=encode(wanted), headers=headers)
    return decode_state(response.content)


def _asked_only(reach: Reach, state: RequestState) -> ExitCode:
    if reach.as_json:
        print_json(state, pretty=True)
    else:
        out.print(state.id, markup=False, soft_wrap=True)
        err.print(f"Asked in {short_name(state.session)}. {_how_to(state.session)}", markup=False)
    return ExitCode.OK


def _how_to(uri: Uri) -> str:
    return f"Answer with: session-server answer {short_name(uri)}"


# Waiting


def _awaited(
    http: httpx.Client, path: str, state: RequestState, wait: float | None
) -> RequestState:
    """Until it has ended or the time is over."""
    deadline = None if wait is None else time.monotonic() + wait
    with _waiting():
        while not isinstance(state, EndedRequest):
            left = WAIT_SECONDS if deadline is None else deadline - time.monotonic()
            if left <= 0:
                break
            state = _polled(http, path, state, min(left, WAIT_SECONDS))
    return state


def _polled(http: httpx.Client, path: str, state: RequestState, wait: float) -> RequestState:
    """A host that is being restarted still has the question when it is back."""
    try:
        response = http.get(path, params={"wait": wait}, timeout=wait + 10)
    except httpx.TransportError:
        time.sleep(min(PAUSE_SECONDS, wait))
        return state
    return decode_state(response.content)


@contextlib.contextmanager
def _taken_back_by_ctrl_c(http: httpx.Client, path: str) -> Generator[None]:
    try:
        yield
    except KeyboardInterrupt:
        with contextlib.suppress(httpx.HTTPError, Trouble):
            http.delete(path)
            err.print("The question is taken back.")
        raise


@contextlib.contextmanager
def _waiting() -> Generator[None]:
    if not err.is_terminal:
        yield
        return
    with err.status("Waiting for an answer. Ctrl-C takes the question back."):
        yield


# Telling


def _told(reach: Reach, state: RequestState, wait: float | None) -> ExitCode:
    if not isinstance(state, EndedRequest):
        if reach.as_json:
            print_json(state, pretty=True)
        words = f"Nobody answered within {wait:g} s. The question stays open."
        raise Trouble(words, ExitCode.TIMED_OUT, _how_to(state.session))
    code = exit_code(state.outcome)
    if reach.as_json:
        print_json(state, pretty=True)
    elif code is ExitCode.OK:
        for line in answer_lines(state):
            out.print(line, markup=False, soft_wrap=True)
    if not reach.as_json and (
        code is not ExitCode.OK or state.outcome.via is not Provenance.PERSON
    ):
        err.print(ending(state.outcome), markup=False, soft_wrap=True)
    return code


def exit_code(outcome: Outcome) -> ExitCode:
    """A timeout is never a no."""
    if outcome.response is ResponseKind.ACCEPT:
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
