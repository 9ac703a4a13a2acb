"""Where people are asked: a session that is there or is made for it, and how others get to it."""

import contextlib
from collections.abc import Generator
from shlex import quote

import httpx
import msgspec

from session_server.cli.exit_codes import ExitCode
from session_server.cli.failures import Trouble, UsageTrouble
from session_server.cli.http_client import DEFAULT_URL, JSON, Reach, session_path
from session_server.cli.session_names import short_name
from session_server.reducers.texts import session_name, session_uri
from session_server.schemas.ahp.session import SessionState, SessionSummary
from session_server.schemas.codec import encode
from session_server.schemas.http import NewSession
from session_server.schemas.wire import Uri


@contextlib.contextmanager
def venue(http: httpx.Client, name: str | None, title: str) -> Generator[Uri]:
    """The session that is named, made if there is none; without a name, a new one.

    If what it was made for fails, it goes again, as long as nothing has happened in it.
    """
    if name is not None and not name.strip():
        raise UsageTrouble("The name of the session is empty.")
    uri, is_new = _found_or_made(http, None if name is None else session_uri(name), title)
    try:
        yield uri
    except BaseException:
        if is_new:
            with contextlib.suppress(httpx.HTTPError, Trouble):
                _take_away(http, uri)
        raise


def _found_or_made(http: httpx.Client, uri: Uri | None, title: str) -> tuple[Uri, bool]:
    if uri is not None and _is_there(http, uri):
        return uri, False
    wanted = encode(NewSession(resource=uri, title=title))
    try:
        made = http.post("/v1/sessions", content=wanted, headers=JSON)
    except Trouble:
        if uri is not None and _is_there(http, uri):
            return uri, False  # somebody was faster
        raise
    return msgspec.json.decode(made.content, type=SessionSummary).resource, True


def _is_there(http: httpx.Client, uri: Uri) -> bool:
    try:
        http.get(session_path(uri))
    except Trouble as trouble:
        if trouble.code is not ExitCode.NOT_FOUND:
            raise
        return False
    return True


def _take_away(http: httpx.Client, uri: Uri) -> None:
    state = msgspec.json.decode(http.get(session_path(uri)).content, type=SessionState)
    if not (state.turns or state.active_turn or state.input_requests):
        http.delete(session_path(uri))


def how_to_answer(reach: Reach, uri: Uri) -> str:
    """For whoever reads it, maybe in another shell. A token is never part of it."""
    host = "" if reach.shown == DEFAULT_URL else f" --url {quote(reach.shown)}"
    command = f"session-server answer {quote(short_name(uri))}{host}"
    return f"Answer with: {command}, or at {page_of(reach, uri)}"


def page_of(reach: Reach, uri: Uri) -> str:
    return f"{reach.shown}/#/s/{session_name(uri)}"
