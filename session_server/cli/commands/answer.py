"""`answer`: in a terminal together with others, straight from options, or from a fixture."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from session_server.cli.commands.sessions import State, in_order, state_of
from session_server.cli.failures import CliError, ExitCode, UsageError
from session_server.cli.fixtures import Policy, read_fixture
from session_server.cli.http_client import Reach
from session_server.cli.output import err, out, print_json
from session_server.cli.session_names import OptionalSessionArgument, found, short_name
from session_server.cli.values import check_plain, plain_of, time_option
from session_server.client import Client, Plain, Session
from session_server.client.answer_values import answers_of, asked
from session_server.reducers.forms.review import reviewed
from session_server.reducers.texts import subject, subject_name
from session_server.schemas.ahp.actions import InputCompleted, TurnCancelled
from session_server.schemas.ahp.envelopes import ActionEnvelope
from session_server.schemas.ahp.questions import Answer, CompletionMeta, InputRequest, ResponseKind
from session_server.schemas.ahp.session import SessionSummary
from session_server.schemas.wire import Uri

EXITS = {
    ResponseKind.ACCEPT: ExitCode.OK,
    ResponseKind.DECLINE: ExitCode.DECLINED,
    ResponseKind.CANCEL: ExitCode.CANCELLED,
}
VERBS = {
    ResponseKind.ACCEPT: "accepted",
    ResponseKind.DECLINE: "declined",
    ResponseKind.CANCEL: "cancelled",
}
NAME_VARIABLE = "SESSION_SERVER_NAME"


async def answer(
    reach: Reach,
    session: OptionalSessionArgument = None,
    request: Annotated[
        str | None, typer.Option(help="The request to answer, by its id; the oldest if not given.")
    ] = None,
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="QUESTION=VALUE",
            help="Answer a question and accept, without a form. Can be given several times.",
        ),
    ] = None,
    accept: Annotated[bool, typer.Option("--accept", help="Accept, without a form.")] = False,
    decline: Annotated[bool, typer.Option("--decline", help="Decline, without a form.")] = False,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Dismiss it without an answer, without a form.")
    ] = False,
    fixture: Annotated[
        Path | None,
        typer.Option(help="Answer from a YAML or JSON file, as a policy. `-` is standard input."),
    ] = None,
    everywhere: Annotated[
        bool, typer.Option("--all", help="With --fixture: in all sessions.")
    ] = False,
    wait: Annotated[
        float | None, time_option("If nothing is open, wait this long for a question: 90s, 10m.")
    ] = None,
    count: Annotated[
        int | None, typer.Option(help="With --fixture: end after this many answers.", min=1)
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on with later questions, until Ctrl-C.")
    ] = False,
    policy: Annotated[
        bool,
        typer.Option(
            "--policy",
            help="Record the answer as a program's, not a person's; always so with --fixture.",
        ),
    ] = False,
    name: Annotated[
        str | None,
        typer.Option(
            "--name",
            envvar=NAME_VARIABLE,
            help="Your name as others see it, on a host where tokens do not give it.",
        ),
    ] = None,
) -> ExitCode:
    """Answer what is asked: in a form that others see you fill in, or from options or a file."""
    response = _response(given or [], accept, decline, cancel)
    if fixture is not None:
        if response is not None or request is not None:
            raise UsageError(
                "--fixture decides what is answered. Leave out the other answers and --request."
            )
        limit = count if wait is None else count or 1
        rules = read_fixture(fixture)
        policed = Policy(rules, limit, is_endless=follow, as_json=reach.as_json)
        async with reach.client(policy=True, name=name) as client:
            uri = None if everywhere else await _uri(client, session, wait, follow=follow)
            return await policed.run(client, uri, wait)
    if everywhere or count is not None:
        raise UsageError("--all and --count need --fixture.")
    if response is None and not (sys.stdin.isatty() and sys.stdout.isatty()):
        advice = "Use --set, --accept, --decline, --cancel or --fixture."
        raise UsageError("A form needs a terminal.", advice)
    async with reach.client(policy=policy, name=name) as client:
        try:
            uri = await _uri(client, session, wait, follow=follow)
        except SeveralNeedInputError as several:
            if response is not None:
                raise
            uri = await _picked(several.sessions)
        async with client.session(uri, present=response is None) as watched:
            if response is None:
                return await _with_forms(client, watched, request, wait, follow)
            first = await _open(watched, request, wait)
            return await _directly(reach, watched, first, response, given or [])


def _response(given: list[str], accept: bool, decline: bool, cancel: bool) -> ResponseKind | None:
    wanted = {
        ResponseKind.ACCEPT: accept or bool(given),
        ResponseKind.DECLINE: decline,
        ResponseKind.CANCEL: cancel,
    }
    chosen = [response for response, is_wanted in wanted.items() if is_wanted]
    if len(chosen) > 1:
        raise UsageError("Give only one of --accept (or --set), --decline and --cancel.")
    return chosen[0] if chosen else None


# Which session, which request


async def _uri(client: Client, name: str | None, wait: float | None, *, follow: bool) -> Uri:
    """The session to answer in; with `--wait` or `--follow`, one that does not exist yet too."""
    if wait is None and not follow:
        return _meant(await client.list_sessions(), name)
    try:
        async with asyncio.timeout(wait):
            async for sessions in client.sessions():
                try:
                    return _meant(sessions, name)
                except CliError as failure:
                    if failure.exit_code is not ExitCode.NOT_FOUND:
                        raise
    except TimeoutError:
        pass
    what = "No session needed input" if name is None else f"There was no session {name!r}"
    raise CliError(f"{what} within {wait:g} s.", ExitCode.TIMED_OUT)


def _meant(sessions: Sequence[SessionSummary], name: str | None) -> Uri:
    """The named one; without a name, the only one that needs input."""
    if name is not None:
        return found(sessions, name).resource
    needy = [s for s in sessions if state_of(s) is State.INPUT_NEEDED]
    if len(needy) == 1:
        return needy[0].resource
    if not needy:
        message = "No session needs input."
        raise CliError(message, ExitCode.NOT_FOUND, "To wait for one, add --wait 10m.")
    raise SeveralNeedInputError(in_order(needy))


class SeveralNeedInputError(UsageError):
    """Several sessions need input: in a terminal one is picked, elsewhere it has to be named."""

    code = "severalNeedInput"

    def __init__(self, sessions: Sequence[SessionSummary]) -> None:
        self.sessions = sessions
        names = ", ".join(short_name(s.resource) for s in sessions)
        super().__init__(f"{len(sessions)} sessions need input: {names}.", "Name one of them.")


async def _picked(sessions: Sequence[SessionSummary]) -> Uri:
    """The one that the person at the terminal chooses, by its number."""
    # It takes a while to load, and only terminals need it.
    from prompt_toolkit import PromptSession  # noqa: PLC0415
    from prompt_toolkit.validation import Validator  # noqa: PLC0415

    for number, summary in enumerate(sessions, 1):
        name = short_name(summary.resource)
        out.print(f"{number:>3}  {name}  {summary.title}", soft_wrap=True)
    numbers = {str(number) for number in range(1, len(sessions) + 1)}
    valid = Validator.from_callable(
        lambda text: text.strip() in numbers, f"Enter a number from 1 to {len(sessions)}."
    )
    prompt: PromptSession[str] = PromptSession()
    text = await prompt.prompt_async("Which session? ", validator=valid)
    return sessions[int(text) - 1].resource


async def _open(session: Session, request: str | None, wait: float | None) -> InputRequest:
    first = _open_now(session, request)
    if first is None and wait is not None:
        try:
            first = await session.wait_for_request(request, wait)
        except TimeoutError:
            message = f"Nothing was asked within {wait:g} s."
            raise CliError(message, ExitCode.TIMED_OUT) from None
    if first is None:
        message = "No question is open." if request is None else f"No request {request!r} is open."
        raise CliError(message, ExitCode.NOT_FOUND, "To wait for one, add --wait 10m.")
    return first


def _open_now(session: Session, request: str | None) -> InputRequest | None:
    return next((r for r in session.requests if request in (None, r.id)), None)


# With a form


async def _with_forms(
    client: Client, session: Session, request: str | None, wait: float | None, follow: bool
) -> ExitCode:
    """One question after the other, until none is open."""
    current = None if follow else await _open(session, request, wait)
    while True:
        if current is None:
            with err.status("Waiting for a question. Ctrl-C ends."):
                current = await session.wait_for_request(request)
        code = await _with_form(client, session, current)
        if code is ExitCode.UNANSWERED or request is not None:
            return code
        current = _open_now(session, None)
        if current is None and not follow:
            return code


async def _with_form(client: Client, session: Session, request: InputRequest) -> ExitCode:
    # It takes a while to load, and only forms need it.
    from session_server.cli.form.screen import Screen  # noqa: PLC0415

    screen = Screen(client, session, request)
    ending = await screen.run()
    if ending.error is not None:
        raise ending.error
    if ending.response is not None:
        out.print(f"You {VERBS[ending.response]} “{subject(request)}”.")
        return EXITS[ending.response]
    if ending.is_left:
        out.print(f"“{subject(request)}” stays open, with what you wrote as a draft.")
        return ExitCode.UNANSWERED
    out.print(closed_text(request, ending.envelope))
    for line in screen.form.unsent():
        out.print(f"  not sent: {line}")
    return ExitCode.OK


def closed_text(request: InputRequest, envelope: ActionEnvelope | None) -> str:
    what = f"“{subject(request)}”"
    match envelope:
        case ActionEnvelope(action=InputCompleted(response=response), meta=meta):
            verb = VERBS[response]
        case ActionEnvelope(action=TurnCancelled(), meta=meta):
            verb = "stopped"
        case _:
            return f"{what} was closed."
    return f"{subject_name(None if meta is None else meta.by)} {verb} {what}."


# Without a form


async def _directly(
    reach: Reach,
    session: Session,
    request: InputRequest,
    response: ResponseKind,
    given: list[str],
) -> ExitCode:
    answers = _answers(request, given)
    action = InputCompleted(
        request_id=request.id,
        response=response,
        answers=answers,
        meta=CompletionMeta(reviewed=reviewed(request, answers)),
    )
    await session.dispatch(action)
    if reach.as_json:
        print_json({"session": session.uri, "request": request.id, "response": response})
    else:
        out.print(f"You {VERBS[response]} “{subject(request)}”.", soft_wrap=True)
    return ExitCode.OK


def _answers(request: InputRequest, given: list[str]) -> dict[str, Answer] | None:
    if given and not request.questions:
        raise UsageError("This request has no questions.", "Use --accept or --decline.")
    plain: dict[str, Plain | None] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise UsageError(f"{text!r}: write QUESTION=VALUE.")
        question = asked(request, name)
        plain[name] = plain_of(question, value)
        check_plain(question, plain[name])
    return answers_of(request, plain) or None
