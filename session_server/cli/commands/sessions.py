"""`sessions` and `dispose`: list sessions with their status, and remove one."""

import sys
import time
from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Any

import msgspec
import typer
from rich import box
from rich.table import Table
from rich.text import Text

from session_server.cli.failures import UsageError
from session_server.cli.http_client import Reach, session_path
from session_server.cli.output import err, out, print_json
from session_server.cli.session_names import (
    SessionArgument,
    found_uri,
    session_list,
    short_name,
)
from session_server.schemas.ahp.questions import InputRequest
from session_server.schemas.ahp.session import ACTIVITY_BITS, SessionSummary, Status


class State(StrEnum):
    """The values of `--until`."""

    INPUT_NEEDED = "input-needed"
    IN_PROGRESS = "in-progress"
    IDLE = "idle"
    ERROR = "error"


_STYLES = {
    State.INPUT_NEEDED: ("●", "bold yellow", "needs input"),
    State.IN_PROGRESS: ("◐", "cyan", "working"),
    State.IDLE: ("○", "dim", "idle"),
    State.ERROR: ("✗", "bold red", "failed"),
}
LEFT = ("◌", "yellow", "not waiting")
LEFT_NAME = "asker-gone"


def state_of(summary: SessionSummary) -> State:
    match summary.status & ACTIVITY_BITS:
        case Status.INPUT_NEEDED:
            return State.INPUT_NEEDED
        case Status.IN_PROGRESS:
            return State.IN_PROGRESS
        case Status.ERROR:
            return State.ERROR
        case _:
            return State.IDLE


def is_left(summary: SessionSummary) -> bool:
    """Whether no asker waits for its open questions; they can still be answered."""
    return summary.meta is not None and summary.meta.askers_gone is True


def is_hidden(summary: SessionSummary) -> bool:
    """An archived session with open questions is listed: an asker may wait for the answers."""
    is_archived = bool(summary.status & Status.IS_ARCHIVED)
    return is_archived and state_of(summary) is not State.INPUT_NEEDED


def shown_state(summary: SessionSummary) -> Text:
    mark, style, text = LEFT if is_left(summary) else _STYLES[state_of(summary)]
    return Text(f"{mark} {text}", style=style)


def ago(at: int) -> str:
    seconds = max(0, int(time.time() - at / 1000))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return "now" if seconds < 10 else f"{seconds} s ago"


def clock(at: int) -> str:
    return time.strftime("%H:%M", time.localtime(at / 1000))


def when(at: int) -> str:
    """A date and time."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(at / 1000))


def asker_gone(request: InputRequest) -> str | None:
    """A note if no asker waits for the answer."""
    since = None if request.meta is None else request.meta.asker_gone_since
    if since is None:
        return None
    what = f"The program that asked is no longer waiting (since {when(since)})."
    return f"{what} Your answer will be kept for it."


WIDE = 60
_ORDER = (State.INPUT_NEEDED, State.ERROR, State.IN_PROGRESS, State.IDLE)


def sessions(
    reach: Reach,
    everything: Annotated[bool, typer.Option("--all", "-a", help="Archived sessions too.")] = False,
) -> None:
    """List the sessions of a host: those that need input first, then failed, running and idle."""
    with reach.http() as http:
        found = session_list(http)
    listed = in_order(s for s in found.items if everything or not is_hidden(s))
    for damaged in found.unreadable:
        text = f"{short_name(damaged.session)} is damaged: {damaged.reason}."
        err.print(f"{text} Run `session-server doctor` for advice.")
    if reach.as_json:
        print_json([as_json(summary) for summary in listed], pretty=True)
    elif listed:
        out.print(table(listed))
    else:
        out.print("There are no sessions.")


def in_order(sessions: Iterable[SessionSummary]) -> list[SessionSummary]:
    return sorted(sessions, key=lambda s: (_ORDER.index(state_of(s)), is_left(s), -s.modified_at))


def as_json(summary: SessionSummary) -> dict[str, Any]:
    """AHP's summary, and its status as one word."""
    plain: dict[str, Any] = msgspec.to_builtins(summary)
    return {"state": state_of(summary).value, **plain}


def table(sessions: Iterable[SessionSummary]) -> Table:
    """Without the less important columns where the terminal is narrow."""
    is_wide = out.width >= WIDE
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    grid.add_column("State", no_wrap=True)
    grid.add_column("Session", overflow="fold")
    grid.add_column("Title", overflow="ellipsis", no_wrap=is_wide, max_width=60)
    if is_wide:
        grid.add_column("Agent", no_wrap=True)
        grid.add_column("Changed", no_wrap=True, justify="right")
    for summary in sessions:
        title = summary.title if summary.activity is None else summary.activity
        more = (summary.provider, ago(summary.modified_at)) if is_wide else ()
        grid.add_row(shown_state(summary), short_name(summary.resource), title, *more)
    return grid


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
            titles = {summary.resource: summary.title for summary in session_list(http).items}
            title = f"“{titles[uri]}”" if uri in titles else "damaged"
            _confirm(f"Delete {name} ({title}) and its history for good?")
        http.delete(session_path(uri))
    if reach.as_json:
        print_json({"session": uri, "state": "gone"})
    else:
        err.print(f"{name} is deleted.")


def _confirm(message: str) -> None:
    if not sys.stdin.isatty():
        raise UsageError(
            "Not a terminal, so this can't ask for confirmation.", "Pass --yes to confirm."
        )
    typer.confirm(message, abort=True, err=True)
