"""`watch`: sessions, or one of them, as they change."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any, NamedTuple

import httpx2
import msgspec
import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from session_server.cli.failures import CliError, ExitCode
from session_server.cli.http_client import Reach, session_path
from session_server.cli.output import Sanitized, err, out, print_json, print_text
from session_server.cli.session_names import OptionalSessionArgument, found, short_name
from session_server.cli.sessions import (
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
) -> ExitCode | None:
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
        message = (
            f"The state was not {awaited} within {wait:g} s."
            if awaited
            else f"Stopped after {wait:g} s."
        )
        raise CliError(message, ExitCode.TIMED_OUT) from None
    return None


# All sessions


class Update(NamedTuple):
    """All sessions as they are now, and the questions that have ended since the last time."""

    sessions: tuple[SessionSummary, ...]
    ended: tuple[EndedRequest, ...] = ()


class Endings:
    """Finds how questions ended: the list of sessions only shows which sessions changed."""

    def __init__(self, http: httpx2.Client) -> None:
        self._http = http
        self._first: dict[Uri, int] | None = None
        """When each session had last changed at the start; what ended before is not reported."""
        self._last: dict[Uri, int] = {}
        self._known: set[str] = set()

    async def follow(
        self, listing: AsyncIterator[tuple[SessionSummary, ...]]
    ) -> AsyncIterator[Update]:
        async for sessions in listing:
            yield Update(sessions, await asyncio.to_thread(self._since, sessions))

    def _since(self, sessions: tuple[SessionSummary, ...]) -> tuple[EndedRequest, ...]:
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
    with reach.http() as http:
        updates = Endings(http).follow(client.sessions())
        if reach.as_json:
            await _list_as_lines(updates, wanted)
        elif out.is_terminal:
            await _list_live(client, updates, wanted)
        else:
            await _list_plainly(updates, wanted)


async def _list_as_lines(updates: AsyncIterator[Update], wanted: frozenset[State]) -> None:
    """One line per session that changed and per question that ended; one that is gone has nothing
    but its name.
    """
    known: dict[str, SessionSummary] = {}
    async for sessions, ended in updates:
        for state in ended:
            print_json(_ended_json(state))
        now = {summary.resource: summary for summary in sessions}
        for uri, summary in now.items():
            if known.get(uri) != summary:
                print_json(as_json(summary))
        for uri in known.keys() - now.keys():
            print_json({"state": "gone", "resource": uri})
        known = now
        if _reached(sessions, wanted):
            return


def _ended_json(state: EndedRequest) -> dict[str, Any]:
    result: dict[str, Any] = msgspec.to_builtins(ask_result(state.outcome, state.session))
    message = subject(state.outcome.request)
    return {"state": "ended", "resource": result.pop("session"), "message": message, **result}


async def _list_plainly(updates: AsyncIterator[Update], wanted: frozenset[State]) -> None:
    """Into a pipe: a line whenever a session's state changes or a question ends."""
    known: dict[str, str] = {}
    async for sessions, ended in updates:
        for request in ended:
            _print_line(_outcome_name(request), request.session, outcome_note(request.outcome))
        for summary in sessions:
            state = LEFT_NAME if is_left(summary) else state_of(summary)
            if known.get(summary.resource) != state:
                _print_line(state, summary.resource, summary.title)
            known[summary.resource] = state
        if _reached(sessions, wanted):
            return


def _print_line(what: str, uri: Uri, text: str) -> None:
    print_text(f"{what}\t{short_name(uri)}\t{text}")


def _outcome_name(state: EndedRequest) -> str:
    return ask_result(state.outcome, state.session).outcome.name.lower().replace("_", "-")


async def _list_live(
    client: Client, updates: AsyncIterator[Update], wanted: frozenset[State]
) -> None:
    latest: tuple[SessionSummary, ...] = ()

    def drawn() -> RenderableType:
        shown = in_order(s for s in latest if not is_hidden(s))
        waiting = sum(state_of(s) is State.INPUT_NEEDED and not is_left(s) for s in shown)
        counted = f"Sessions: {len(shown)}, waiting for input: {waiting}"
        foot = f"{counted} · {client.status} · Ctrl-C ends"
        return Group(table(shown), Text(foot, style="dim"))

    with _live(drawn) as live:
        async for sessions, ended in updates:
            latest = sessions
            for request in ended:
                live.console.print(_ended_line(request))
            if _reached(sessions, wanted):
                return


def _ended_line(state: EndedRequest) -> Text:
    """Printed above the table, where it scrolls away."""
    outcome = state.outcome
    mark, style = ("✓", "green") if outcome.response is ResponseKind.ACCEPT else ("✗", "red")
    where = f"{clock(outcome.at)} {short_name(state.session)}"
    return Text.assemble((f"{mark} ", style), (f"{where}  ", "dim"), outcome_note(outcome))


def _reached(sessions: tuple[SessionSummary, ...], wanted: frozenset[State]) -> bool:
    return any(state_of(summary) in wanted for summary in sessions)


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
        return session_view(transcript, session.confirmed, str(client.status))

    if out.is_terminal:
        with _live(drawn) as live:
            await _print_changes(session, changes, wanted, transcript, live.console.print)
    else:
        await _print_changes(session, changes, wanted, transcript, _print_plainly)
        err.print(_verdict(session), markup=False, soft_wrap=True)


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
    for news in transcript.news(session.confirmed):
        show(news)
    while state_of(session.confirmed.summary) not in wanted:
        await anext(changes)
        for news in transcript.news(session.confirmed):
            show(news)


def session_view(transcript: Transcript, state: SessionState, connection: str) -> RenderableType:
    return Group(
        *transcript.unsettled(state),
        *(request_panel(request) for request in state.input_requests or ()),
        Text(),
        status_line(state, connection),
    )


async def _session_as_lines(
    session: Session, changes: AsyncIterator[Change[SessionState]], wanted: frozenset[State]
) -> None:
    """The state as it is, then every action as AHP delivers it."""
    state = session.confirmed
    print_json({"snapshot": state})
    while state_of(state.summary) not in wanted:
        change = await anext(changes)
        state = change.after
        if change.envelope is not None:
            print_json(change.envelope)
        else:
            print_json({"snapshot": change.after})


# Drawing


def _live(drawn: Callable[[], RenderableType]) -> Live:
    return Live(
        get_renderable=lambda: Sanitized(drawn()),
        console=out,
        refresh_per_second=REFRESHES_PER_SECOND,
        vertical_overflow="ellipsis",
    )
