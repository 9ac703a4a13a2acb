"""Sessions on the command line: found by a name or the beginning of it, made where needed."""

import contextlib
import os
import re
from collections.abc import Generator, Iterable
from difflib import get_close_matches
from shlex import quote
from typing import Annotated, Any

import httpx2
import msgspec
import typer

from session_server.cli.failures import LIST_THEM, CliError, ExitCode, UsageError
from session_server.cli.host_options import DEFAULT_URL, TOKEN_VARIABLE, URL_VARIABLE
from session_server.cli.http_client import JSON, Reach, session_path
from session_server.cli.output import err, out, print_json
from session_server.reducers.texts import session_name, session_uri
from session_server.schemas.ahp.commands import SESSION_PREFIX
from session_server.schemas.ahp.session import SessionState, SessionSummary
from session_server.schemas.codec import encode
from session_server.schemas.http import CallView, NewSession, RequestState, SessionList
from session_server.schemas.limits import NAME_CHARS
from session_server.schemas.wire import Uri

COMPLETION_SECONDS = 2.0
_ISSUED_ID = re.compile(r"[\w-]+", re.ASCII)


def short_name(uri: Uri) -> str:
    return uri.removeprefix(SESSION_PREFIX)


def found(sessions: Iterable[SessionSummary], written: str) -> SessionSummary:
    """The session with this name or this unique beginning of a name."""
    if not written.strip():
        raise UsageError("The name of the session is empty.", LIST_THEM)
    known = {short_name(summary.resource): summary for summary in sessions}
    exact = known.get(short_name(written))
    if exact is not None:
        return exact
    begun = sorted(name for name in known if name.startswith(short_name(written)))
    if len(begun) == 1:
        return known[begun[0]]
    if begun:
        several = ", ".join(begun[:5])
        message = f"Several sessions begin with {written!r}: {several}."
        raise CliError(message, ExitCode.NOT_FOUND, "Give more of the name.")
    close = get_close_matches(short_name(written), known, n=1)
    advice = f"Did you mean {close[0]!r}? {LIST_THEM}" if close else LIST_THEM
    raise CliError(f"There is no session {written!r}.", ExitCode.NOT_FOUND, advice)


def check_name(name: str | None) -> None:
    """Checks a name that is shown next to answers."""
    if name is not None and not (name.strip() and len(name) <= NAME_CHARS):
        message = f"A name has at least one character and at most {NAME_CHARS}."
        raise UsageError(message, "It is shown next to their answers, such as Ana.")


def checked_id(written: str) -> str:
    """An id of a token or link; other text could change the address of the request."""
    if not _ISSUED_ID.fullmatch(written):
        raise CliError(f"No token or link has the id {written!r}.", ExitCode.NOT_FOUND)
    return written


def session_list(http: httpx2.Client) -> SessionList:
    """All sessions, with the damaged ones if the host reports them."""
    response = http.get("/v1/sessions")
    return msgspec.json.decode(response.content, type=SessionList)


def found_uri(http: httpx2.Client, written: str) -> Uri:
    """The same as `found`, and a damaged session too if it is named in full."""
    listed = session_list(http)
    for damaged in listed.unreadable:
        if short_name(damaged.session) == short_name(written):
            return damaged.session
    return found(listed.items, written).resource


def complete_session(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """For the shell: names and titles, or nothing if no host answers at once."""
    given: dict[str, Any] = {**context.find_root().params, **context.params}
    # While a shell completes, options are not filled in from the environment.
    url = given.get("url") or os.environ.get(URL_VARIABLE)
    try:
        reach = Reach.to(url, given.get("token") or os.environ.get(TOKEN_VARIABLE))
        with reach.http() as http:
            http.timeout = httpx2.Timeout(COMPLETION_SECONDS)
            sessions = session_list(http).items
    except (CliError, httpx2.HTTPError, msgspec.MsgspecError):
        return []
    names = ((short_name(summary.resource), summary.title) for summary in sessions)
    return [(name, title) for name, title in names if name.startswith(incomplete)]


_ARGUMENT = typer.Argument(
    help="The session: its URI, its id, or the beginning of it.",
    autocompletion=complete_session,
    show_default=False,
)
SessionArgument = Annotated[str, _ARGUMENT]
OptionalSessionArgument = Annotated[str | None, _ARGUMENT]


def session_option(verb: str, default: str) -> Any:
    help_text = f"Session to {verb} in; created if it does not exist. By default {default}."
    return typer.Option(help=help_text, autocompletion=complete_session)


@contextlib.contextmanager
def session_to_ask_in(http: httpx2.Client, name: str | None, title: str) -> Generator[Uri]:
    """The named session, made if there is none; without a name, a new one.

    If the block fails, a new session is deleted again, as long as nothing has happened in it.
    """
    if name is not None and not name.strip():
        raise UsageError("The name of the session is empty.")
    uri, is_new = _found_or_made(http, None if name is None else session_uri(name), title)
    try:
        yield uri
    except BaseException:
        if is_new:
            with contextlib.suppress(httpx2.HTTPError, CliError):
                _delete_if_unused(http, uri)
        raise


def _found_or_made(http: httpx2.Client, uri: Uri | None, title: str) -> tuple[Uri, bool]:
    if uri is not None and is_there(http, uri):
        return uri, False
    wanted = encode(NewSession(resource=uri, title=title))
    try:
        made = http.post("/v1/sessions", content=wanted, headers=JSON)
    except CliError:
        if uri is not None and is_there(http, uri):
            return uri, False  # someone else made it first
        raise
    return msgspec.json.decode(made.content, type=SessionSummary).resource, True


def is_there(http: httpx2.Client, uri: Uri) -> bool:
    try:
        http.get(session_path(uri))
    except CliError as failure:
        if failure.exit_code is not ExitCode.NOT_FOUND:
            raise
        return False
    return True


def _delete_if_unused(http: httpx2.Client, uri: Uri) -> None:
    state = msgspec.json.decode(http.get(session_path(uri)).content, type=SessionState)
    if not (state.turns or state.active_turn or state.input_requests):
        http.delete(session_path(uri))


def how_to_answer(reach: Reach, uri: Uri) -> str:
    """A command and a link to answer with, without a token."""
    host = "" if reach.shown == DEFAULT_URL else f" --url {quote(reach.shown)}"
    command = f"session-server answer {quote(short_name(uri))}{host}"
    return f"Answer with: {command}, or at {page_of(reach, uri)}"


def print_where(reach: Reach, what: str, uri: Uri) -> None:
    text = f"{what} in {short_name(uri)}. {how_to_answer(reach, uri)}"
    err.print(text, soft_wrap=True)


def print_started(reach: Reach, what: str, started: RequestState | CallView) -> ExitCode:
    """For `--no-wait`: prints the id, and where to answer."""
    if reach.as_json:
        print_json(started, pretty=True)
    else:
        out.print(started.id, soft_wrap=True)
        print_where(reach, what, started.session)
    return ExitCode.OK


def page_of(reach: Reach, uri: Uri) -> str:
    return f"{reach.shown}/#/s/{session_name(uri)}"
