"""`watch`: sessions, or one of them, as they change."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import nullcontext
from typing import Annotated, Any

import httpx2
import msgspec
import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from session_server.cli.commands.sessions import (
    LEFT_NAME,
    State,
    as_json,
    clock,
    in_order,
    is_hidden,
    is_left,
    state_of,
    table,
)
from session_server.cli.failures import CliError, ExitCode
from session_server.cli.http_client import Reach, session_path
from session_server.cli.output import Sanitized, err, out, print_json, print_text
from session_server.cli.session_names import OptionalSessionArgument, found, short_name
from session_server.cli.transcript import Transcript, last_note, request_panel, status_line
from session_server.cli.values import time_option
from session_server.client import Change, Client, Session
from session_server.reducers.forms.ask_forms import ask_result
from session_server.reducers.texts import outcome_note, subject
from session_server.schemas.ahp.commands import PROTOCOL_VERSION
from session_server.schemas.ahp.questions import ResponseKind
from session_server.schemas.ahp.session import SessionState, SessionSummary
from session_server.schemas.http import EndedRequest, RequestList
from session_server.schemas.wire import Uri

REFRESHES_PER_SECOND = 8

VERSIONS = (PROTOCOL_VERSION,)
"""Only in 0.3.0 does the time of a session change with each question that ends in it, which is how
endings are found. `--json` shows the actions of this version, too.
"""


async def watch(
    reach: Reach,
    session: OptionalSessionArgument = None,
    until: Annotated[
        list[State] | None,
        typer.Option(help="End as soon as the session, or any session, is in this state."),
    ] = None,
    wait: Annotated[float | None, time_option("Give up after this time: 90s, 10m.")] = None,
    turns: Annotated[int, typer.Option(help="How many earlier turns to show.", min=0)] = 3,
) -> None:
    """Watch all sessions and how their questions end, or one session, live.

    With `--until`, wait for a session to reach a state.
    """
    wanted = frozenset(until or ())
    try:
        async with asyncio.timeout(wait), reach.client(versions=VERSIONS) as client:
            if session is None:
                await _watch_all(reach, client, wanted)
            else:
                uri = found(await client.list_sessions(), session).resource
                is_person = not wanted and not reach.as_json
                async with client.session(uri, present=is_person) as watched:
                    await _watch_one(client, watched, wanted, turns, reach.as_json)
    except TimeoutError:
        awaited = " or ".join(sorted(wanted))
        message = f"The state was not {awaited} within" if awaited else "Stopped after"
        raise CliError(f"{message} {wait:g} s.", ExitCode.TIMED_OUT) from None


# All sessions


class Endings:
    """Finds how questions ended: the list of sessions only shows which sessions changed."""

    def __init__(self, http: httpx2.Client) -> None:
        self._http = http
        self._first: dict[Uri, int] | None = None
        """When each session had last changed at the start; what ended before is not reported."""
        self._last: dict[Uri, int] = {}
        self._known: set[str] = set()

    def since(self, sessions: tuple[SessionSummary, ...]) -> tuple[EndedRequest, ...]:
        last, self._last = self._last, {s.resource: s.modified_at for s in sessions}
        if self._first is None:
            self._first = self._last
            return ()
        changed = [uri for uri, at in self._last.items() if last.get(uri) != at]
        return tuple(ended for uri in changed for ended in self._of(uri, self._first.get(uri, -1)))

    def _of(self, uri: Uri, after: int) -> Iterator[EndedRequest]:
        """The oldest first."""
        try:
            found = self._http.get(f"{session_path(uri)}/requests", params={"state": "ended"})
        except CliError as failure:
            if failure.exit_code is not ExitCode.NOT_FOUND:
                raise
            return  # the session has just been removed
        for state in reversed(msgspec.json.decode(found.content, type=RequestList).items):
            assert isinstance(state, EndedRequest)
            if state.outcome.at > after and state.id not in self._known:
                self._known.add(state.id)
                yield state


async def _watch_all(reach: Reach, client: Client, wanted: frozenset[State]) -> None:
    latest: tuple[SessionSummary, ...] = ()
    states: dict[Uri, str] = {}

    def drawn() -> RenderableType:
        shown = in_order(s for s in latest if not is_hidden(s))
        waiting = sum(state_of(s) is State.INPUT_NEEDED and not is_left(s) for s in shown)
        counted = f"Sessions: {len(shown)}, waiting for input: {waiting}"
        foot = f"{counted} · {client.status} · Ctrl-C ends"
        return Group(table(shown), Text(foot, style="dim"))

    is_live = out.is_terminal and not reach.as_json
    with reach.http() as http, _live(drawn) if is_live else nullcontext():
        endings = Endings(http)
        async for sessions in client.sessions():
            ended = await asyncio.to_thread(endings.since, sessions)
            before, latest = latest, sessions
            if reach.as_json:
                _print_json_lines(before, latest, ended)
            elif is_live:
                for request in ended:
                    out.print(_ended_line(request))
            else:
                _print_lines(states, latest, ended)
            if any(state_of(summary) in wanted for summary in latest):
                return


def _print_json_lines(
    before: tuple[SessionSummary, ...],
    latest: tuple[SessionSummary, ...],
    ended: tuple[EndedRequest, ...],
) -> None:
    """One line per session that changed and per question that ended; one that is gone has nothing
    but its name.
    """
    for state in ended:
        print_json(_ended_json(state))
    known = {summary.resource: summary for summary in before}
    for summary in latest:
        if known.pop(summary.resource, None) != summary:
            print_json(as_json(summary))
    for uri in known:
        print_json({"state": "gone", "resource": uri})


def _ended_json(state: EndedRequest) -> dict[str, Any]:
    result: dict[str, Any] = msgspec.to_builtins(ask_result(state.outcome, state.session))
    message = subject(state.outcome.request)
    return {"state": "ended", "resource": result.pop("session"), "message": message, **result}


def _print_lines(
    states: dict[Uri, str],
    latest: tuple[SessionSummary, ...],
    ended: tuple[EndedRequest, ...],
) -> None:
    """Into a pipe: a line whenever a session's state changes or a question ends."""
    for request in ended:
        name = ask_result(request.outcome, request.session).outcome.name
        what = name.lower().replace("_", "-")
        _print_line(what, request.session, outcome_note(request.outcome))
    for summary in latest:
        state = LEFT_NAME if is_left(summary) else state_of(summary)
        if states.get(summary.resource) != state:
            _print_line(state, summary.resource, summary.title)
        states[summary.resource] = state


def _print_line(what: str, uri: Uri, text: str) -> None:
    print_text(f"{what}\t{short_name(uri)}\t{text}")


def _ended_line(state: EndedRequest) -> Text:
    """Printed above the table, where it scrolls away."""
    outcome = state.outcome
    mark, style = ("✓", "green") if outcome.response is ResponseKind.ACCEPT else ("✗", "red")
    where = f"{clock(outcome.at)} {short_name(state.session)}"
    return Text.assemble((f"{mark} ", style), (f"{where}  ", "dim"), outcome_note(outcome))


# One session


async def _watch_one(
    client: Client, session: Session, wanted: frozenset[State], turns: int, as_lines: bool
) -> None:
    changes = session.changes()
    if as_lines:
        await _session_as_lines(session, changes, wanted)
        return
    transcript = Transcript(turns)

    def drawn() -> RenderableType:
        state = session.confirmed
        return Group(
            *transcript.unsettled(state),
            *(request_panel(request) for request in state.input_requests or ()),
            Text(),
            status_line(state, str(client.status)),
        )

    if out.is_terminal:
        with _live(drawn) as live:
            await _print_changes(session, changes, wanted, transcript, live.console.print)
    else:
        await _print_changes(session, changes, wanted, transcript, _print_plainly)
        err.print(_verdict(session), soft_wrap=True)


def _verdict(session: Session) -> str:
    """The state, and how the latest question ended: `idle` alone would hide a decline."""
    state = session.confirmed
    ended = last_note(state) if state.input_requests is None else None
    reason = "" if ended is None else f" {ended}"
    return f"{short_name(session.uri)} is {state_of(state.summary)}.{reason}"


def _print_plainly(news: RenderableType) -> None:
    """Into a pipe: without the trailing spaces of a screen line."""
    with out.capture() as captured:
        out.print(news)
    sys.stdout.writelines(f"{line.rstrip()}\n" for line in captured.get().splitlines())
    sys.stdout.flush()


async def _print_changes(
    session: Session,
    changes: AsyncIterator[Change[SessionState]],
    wanted: frozenset[State],
    transcript: Transcript,
    show: Callable[[RenderableType], None],
) -> None:
    while True:
        for news in transcript.news(session.confirmed):
            show(news)
        if state_of(session.confirmed.summary) in wanted:
            return
        await anext(changes)


async def _session_as_lines(
    session: Session, changes: AsyncIterator[Change[SessionState]], wanted: frozenset[State]
) -> None:
    """The state as it is, then every action as AHP delivers it."""
    state = session.confirmed
    print_json({"snapshot": state})
    while state_of(state.summary) not in wanted:
        change = await anext(changes)
        state = change.after
        print_json(change.envelope or {"snapshot": state})


# Drawing


def _live(drawn: Callable[[], RenderableType]) -> Live:
    return Live(
        get_renderable=lambda: Sanitized(drawn()),
        console=out,
        refresh_per_second=REFRESHES_PER_SECOND,
        vertical_overflow="ellipsis",
    )
