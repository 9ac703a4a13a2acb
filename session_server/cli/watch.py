"""`watch`: sessions, or one of them, as they change."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from session_server.cli.durations import duration
from session_server.cli.exits import ExitCode
from session_server.cli.naming import OptionalSessionArgument, found, short_name
from session_server.cli.output import Harmless, err, out, print_json
from session_server.cli.reach import Reach
from session_server.cli.sessions import as_json, in_order, table
from session_server.cli.states import State, is_archived, state_of
from session_server.cli.transcript import Transcript, last_note, request_panel, status_line
from session_server.cli.trouble import Trouble
from session_server.client import Change, Client, Session
from session_server.schemas.session import SessionState, SessionSummary

REFRESHES_PER_SECOND = 8


async def watch(
    reach: Reach,
    session: OptionalSessionArgument = None,
    until: Annotated[
        list[State] | None,
        typer.Option(help="End as soon as the session, or any session, is in this state."),
    ] = None,
    wait: Annotated[
        float | None,
        typer.Option(help="Give up after this time: 90s, 10m.", parser=duration, metavar="TIME"),
    ] = None,
    turns: Annotated[int, typer.Option(help="How many earlier turns to show.", min=0)] = 3,
) -> ExitCode | None:
    """Watch all sessions, or one, live; with `--until`, wait for something to happen."""
    wanted = frozenset(until or ())
    try:
        async with asyncio.timeout(wait), reach.client() as client:
            if session is None:
                await _watch_all(client, wanted, reach.as_json)
            else:
                uri = found(await client.list_sessions(), session).resource
                async with client.session(uri) as watched:
                    await _watch_one(client, watched, wanted, turns, reach.as_json)
    except TimeoutError:
        awaited = " or ".join(sorted(wanted))
        words = f"After {wait:g} s it was not {awaited}." if awaited else f"{wait:g} s are over."
        raise Trouble(words, ExitCode.TIMED_OUT) from None
    return None


# All sessions


async def _watch_all(client: Client, wanted: frozenset[State], as_lines: bool) -> None:
    listing = client.sessions()
    if as_lines:
        await _list_as_lines(listing, wanted)
    elif out.is_terminal:
        await _list_live(client, listing, wanted)
    else:
        await _list_plainly(listing, wanted)


async def _list_as_lines(
    listing: AsyncIterator[tuple[SessionSummary, ...]], wanted: frozenset[State]
) -> None:
    """One line per session that changed; one that is gone has nothing but its name."""
    known: dict[str, SessionSummary] = {}
    async for sessions in listing:
        now = {summary.resource: summary for summary in sessions}
        for uri, summary in now.items():
            if known.get(uri) != summary:
                print_json(as_json(summary))
        for uri in known.keys() - now.keys():
            print_json({"state": "gone", "resource": uri})
        known = now
        if _reached(sessions, wanted):
            return


async def _list_plainly(
    listing: AsyncIterator[tuple[SessionSummary, ...]], wanted: frozenset[State]
) -> None:
    """Into a pipe: a line whenever a session's state changes."""
    known: dict[str, State] = {}
    async for sessions in listing:
        for summary in sessions:
            state = state_of(summary)
            if known.get(summary.resource) is not state:
                out.print(
                    f"{state}\t{short_name(summary.resource)}\t{summary.title}",
                    markup=False,
                    soft_wrap=True,
                )
            known[summary.resource] = state
        sys.stdout.flush()
        if _reached(sessions, wanted):
            return


async def _list_live(
    client: Client,
    listing: AsyncIterator[tuple[SessionSummary, ...]],
    wanted: frozenset[State],
) -> None:
    latest: tuple[SessionSummary, ...] = ()

    def drawn() -> RenderableType:
        shown = in_order(s for s in latest if not is_archived(s))
        waiting = sum(state_of(s) is State.INPUT_NEEDED for s in shown)
        counted = f"Sessions: {len(shown)}, waiting for input: {waiting}"
        foot = f"{counted} · {client.status} · Ctrl-C ends"
        return Group(table(shown), Text(foot, style="dim"))

    with _live(drawn):
        async for sessions in listing:
            latest = sessions
            if _reached(sessions, wanted):
                return


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
            await _tell(session, changes, wanted, transcript, live.console.print)
    else:
        await _tell(session, changes, wanted, transcript, _print_plainly)
        err.print(_verdict(session), markup=False, soft_wrap=True)


def _verdict(session: Session) -> str:
    """The state, and how the latest question ended: idle alone would hide a no."""
    state = session.confirmed
    ended = last_note(state) if state.input_requests is None else None
    reason = "" if ended is None else f" {ended}"
    return f"{short_name(session.uri)} is {state_of(state.summary)}.{reason}"


def _print_plainly(news: RenderableType) -> None:
    """Into a pipe: without the spaces that fill up a line on a screen."""
    with out.capture() as captured:
        out.print(news)
    sys.stdout.writelines(f"{line.rstrip()}\n" for line in captured.get().splitlines())
    sys.stdout.flush()


async def _tell(
    session: Session,
    changes: AsyncIterator[Change[SessionState]],
    wanted: frozenset[State],
    transcript: Transcript,
    tell: Callable[[RenderableType], None],
) -> None:
    for news in transcript.news(session.confirmed):
        tell(news)
    while state_of(session.confirmed.summary) not in wanted:
        await anext(changes)
        for news in transcript.news(session.confirmed):
            tell(news)


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
        get_renderable=lambda: Harmless(drawn()),
        console=out,
        refresh_per_second=REFRESHES_PER_SECOND,
        vertical_overflow="ellipsis",
    )
