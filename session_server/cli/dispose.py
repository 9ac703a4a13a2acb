"""`dispose`: removes a session and all that is known of it."""

import sys
from typing import Annotated

import typer

from session_server.cli.naming import SessionArgument, all_sessions, found, short_name
from session_server.cli.output import err, print_json
from session_server.cli.reach import Reach, session_path
from session_server.cli.trouble import UsageTrouble


def dispose(
    reach: Reach,
    session: SessionArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Remove a session for everybody, with all that is known of it."""
    with reach.http() as http:
        summary = found(all_sessions(http), session)
        name = short_name(summary.resource)
        if not yes:
            _confirm(f"Remove {name} (“{summary.title}”) and its history for good?")
        http.delete(session_path(summary.resource))
    if reach.as_json:
        print_json({"session": summary.resource, "state": "gone"})
    else:
        err.print(f"{name} is gone.", markup=False)


def _confirm(words: str) -> None:
    if not sys.stdin.isatty():
        raise UsageTrouble("Nobody is there to be asked.", "Say --yes if you mean it.")
    typer.confirm(words, abort=True, err=True)
