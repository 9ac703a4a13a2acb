"""What people call a session: its URI, its id, or the beginning of either."""

import os
import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Annotated, Any

import httpx
import msgspec
import typer

from session_server.cli.exit_codes import ExitCode
from session_server.cli.failures import LIST_THEM, Trouble, UsageTrouble
from session_server.cli.http_client import TOKEN_VARIABLE, URL_VARIABLE, Reach
from session_server.reducers.texts import PREFIX
from session_server.schemas.ahp.session import SessionSummary
from session_server.schemas.http import SessionList
from session_server.schemas.limits import NAME_CHARS
from session_server.schemas.wire import Uri

COMPLETION_SECONDS = 2.0
_ISSUED_ID = re.compile(r"[\w-]+", re.ASCII)


def short_name(uri: Uri) -> str:
    return uri.removeprefix(PREFIX)


def found(sessions: Iterable[SessionSummary], word: str) -> SessionSummary:
    """The session that a word means; never one of several, and never what an empty word begins."""
    if not word.strip():
        raise UsageTrouble("The name of the session is empty.", LIST_THEM)
    known = {short_name(summary.resource): summary for summary in sessions}
    exact = known.get(short_name(word))
    if exact is not None:
        return exact
    begun = [name for name in known if name.startswith(short_name(word))]
    if len(begun) == 1:
        return known[begun[0]]
    if begun:
        several = ", ".join(begun[:5])
        words = f"Several sessions begin with {word!r}: {several}."
        raise Trouble(words, ExitCode.NOT_FOUND, "Give more of the name.")
    close = get_close_matches(short_name(word), known, n=1)
    advice = f"Did you mean {close[0]!r}? {LIST_THEM}" if close else LIST_THEM
    raise Trouble(f"There is no session {word!r}.", ExitCode.NOT_FOUND, advice)


def check_name(name: str | None) -> None:
    """What is shown beside somebody's answers."""
    if name is not None and not (name.strip() and len(name) <= NAME_CHARS):
        words = f"A name has at least one character and at most {NAME_CHARS}."
        raise UsageTrouble(words, "It is shown next to their answers, such as Ana.")


def checked_id(written: str) -> str:
    """Of a token or a link; what cannot be one might lead to another address."""
    if not _ISSUED_ID.fullmatch(written):
        raise Trouble(f"No token or link has the id {written!r}.", ExitCode.NOT_FOUND)
    return written


def all_sessions(http: httpx.Client) -> tuple[SessionSummary, ...]:
    return session_list(http).items


def session_list(http: httpx.Client) -> SessionList:
    """Damaged sessions too; a host that is older does not name them."""
    response = http.get("/v1/sessions")
    return msgspec.json.decode(response.content, type=SessionList)


def found_uri(http: httpx.Client, word: str) -> Uri:
    """The same as `found`, and a damaged session too if it is named in full."""
    listed = session_list(http)
    for damaged in listed.unreadable:
        if short_name(damaged.session) == short_name(word):
            return damaged.session
    return found(listed.items, word).resource


def complete_session(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """For the shell: names and titles, or nothing if no host answers at once."""
    given: dict[str, Any] = {**context.find_root().params, **context.params}
    # While a shell completes, options are not filled in from the environment.
    url = given.get("url") or os.environ.get(URL_VARIABLE)
    try:
        reach = Reach.to(url, given.get("token") or os.environ.get(TOKEN_VARIABLE))
        with reach.http() as http:
            http.timeout = httpx.Timeout(COMPLETION_SECONDS)
            sessions = all_sessions(http)
    except (Trouble, httpx.HTTPError, msgspec.MsgspecError):
        return []
    names = ((short_name(summary.resource), summary.title) for summary in sessions)
    return [(name, title) for name, title in names if name.startswith(incomplete)]


SessionArgument = Annotated[
    str,
    typer.Argument(
        help="The session: its URI, its id, or the beginning of it.",
        autocompletion=complete_session,
        show_default=False,
    ),
]
OptionalSessionArgument = Annotated[
    str | None,
    typer.Argument(
        help="The session: its URI, its id, or the beginning of it.",
        autocompletion=complete_session,
        show_default=False,
    ),
]
