"""`sessions`: what there is."""

from collections.abc import Iterable
from typing import Annotated, Any

import msgspec
import typer
from rich import box
from rich.table import Table

from session_server.cli.naming import session_list, short_name
from session_server.cli.output import err, out, print_json
from session_server.cli.reach import Reach
from session_server.cli.states import State, ago, is_hidden, is_left, shown_state, state_of
from session_server.schemas.session import SessionSummary

WIDE = 60
_ORDER = (State.INPUT_NEEDED, State.ERROR, State.IN_PROGRESS, State.IDLE)


def sessions(
    reach: Reach,
    everything: Annotated[bool, typer.Option("--all", "-a", help="Archived sessions too.")] = False,
) -> None:
    """List the sessions of a host: first those that need input, then the latest."""
    with reach.http() as http:
        found = session_list(http)
    listed = in_order(s for s in found.items if everything or not is_hidden(s))
    for damaged in found.unreadable:
        words = f"{short_name(damaged.session)} is damaged: {damaged.reason}."
        err.print(f"{words} `session-server doctor` says what to do.", markup=False)
    if reach.as_json:
        print_json([as_json(summary) for summary in listed], pretty=True)
    elif listed:
        out.print(table(listed))
    else:
        out.print("There are no sessions.")


def in_order(sessions: Iterable[SessionSummary]) -> list[SessionSummary]:
    return sorted(sessions, key=lambda s: (_ORDER.index(state_of(s)), is_left(s), -s.modified_at))


def as_json(summary: SessionSummary) -> dict[str, Any]:
    """AHP's summary, and its status in a word."""
    plain: dict[str, Any] = msgspec.to_builtins(summary)
    return {"state": state_of(summary).value, **plain}


def table(sessions: Iterable[SessionSummary]) -> Table:
    """Where it is narrow, without what can be done without: a session's name cannot."""
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
