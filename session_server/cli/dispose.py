"""`dispose`: deletes a session and its history."""

import sys
from typing import Annotated

import httpx
import typer

from session_server.cli.naming import SessionArgument, all_sessions, found_uri, short_name
from session_server.cli.output import err, print_json
from session_server.cli.reach import Reach, session_path
from session_server.cli.trouble import UsageTrouble
from session_server.schemas.wire import Uri


def dispose(
    reach: Reach,
    session: SessionArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
) -> None:
    """Delete a session and its history, for everyone."""
    with reach.http() as http:
        uri = found_uri(http, session)
        name = short_name(uri)
        if not yes:
            _confirm(f"Delete {_titled(http, uri)} and its history for good?")
        http.delete(session_path(uri))
    if reach.as_json:
        print_json({"session": uri, "state": "gone"})
    else:
        err.print(f"{name} is deleted.", markup=False)


def _titled(http: httpx.Client, uri: Uri) -> str:
    titles = {summary.resource: summary.title for summary in all_sessions(http)}
    return f"{short_name(uri)} ({f'“{titles[uri]}”' if uri in titles else 'damaged'})"


def _confirm(words: str) -> None:
    if not sys.stdin.isatty():
        raise UsageTrouble(
            "Not a terminal, so this can't ask for confirmation.", "Pass --yes to confirm."
        )
    typer.confirm(words, abort=True, err=True)
