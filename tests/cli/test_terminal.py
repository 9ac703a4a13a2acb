"""Commands on a real terminal: what a person sees, presses, and sees then."""

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from session_server.cli.failures import ExitCode
from session_server.client import Session, connect
from session_server.schemas.ahp.questions import Draft, Submitted, TextValue
from tests.cli.shells import Shell
from tests.effort import PATIENCE
from tests.servers import ServerProcess, serving

pytestmark = pytest.mark.slow

DEMO = "ahp-session:/demo"
TRIP = "first:trip"


@pytest.fixture
def server() -> Iterator[ServerProcess]:
    """A demo of its own for each test."""
    with serving("memory:", "--demo") as server:
        yield server


@pytest.fixture
def shell(server: ServerProcess) -> Shell:
    return Shell(server.url)


class Ana:
    """Somebody else, at another device."""

    def __init__(self, session: Session, loop: asyncio.AbstractEventLoop) -> None:
        self._session = session
        self._loop = loop

    def does(self, act: Callable[[Session], Awaitable[object]]) -> None:
        async def acting() -> None:
            await act(self._session)

        asyncio.run_coroutine_threadsafe(acting(), self._loop).result(PATIENCE)

    def sees(self, question_id: str, answer: type, text: str) -> None:
        async def look() -> None:
            await self._session.wait_until(
                lambda state: any(
                    isinstance(given := (request.answers or {}).get(question_id), answer)
                    and isinstance(given.value, TextValue)
                    and given.value.value == text
                    for request in state.input_requests or ()
                ),
                PATIENCE,
            )

        asyncio.run_coroutine_threadsafe(look(), self._loop).result(PATIENCE + 5)

    def meets(self, name: str | None, editing: str | None = None) -> None:
        """Waits until this person is the only other one here, at this question."""
        changed = threading.Event()
        self._session.on_presence(changed.set)
        expected = [] if name is None else [(name, editing)]
        while self._others() != expected:
            assert changed.wait(PATIENCE), f"{expected} was not seen: {self._session.present}"
            changed.clear()

    def _others(self) -> list[tuple[str | None, str | None]]:
        return [
            (each.by.name, None if each.editing is None else each.editing.question_id)
            for each in self._session.present
            if each.by.name != "Ana"
        ]


async def edits(session: Session, question_id: str) -> None:
    session.editing(TRIP, question_id)


@contextmanager
def elsewhere(server: ServerProcess, uri: str = DEMO) -> Iterator[Ana]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    leaving: asyncio.Event = asyncio.Event()
    found: list[Session] = []
    ready = threading.Event()

    async def stay() -> None:
        async with (
            connect(server.url, name="Ana") as client,
            client.session(uri, present=True) as session,
        ):
            await session.wait_for_request(timeout=PATIENCE)
            found.append(session)
            ready.set()
            await leaving.wait()

    staying = asyncio.run_coroutine_threadsafe(stay(), loop)
    try:
        assert ready.wait(PATIENCE)
        yield Ana(found[0], loop)
    finally:
        loop.call_soon_threadsafe(leaving.set)
        staying.result(PATIENCE)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE)
        loop.close()


def test_a_form_is_filled_in_together(shell: Shell, server: ServerProcess) -> None:
    with elsewhere(server) as ana, shell.terminal("answer", "demo") as terminal:
        terminal.see("Planning your trip", "○ Name", "Name  required, at most 60 characters")
        terminal.press("enter")
        terminal.see("Name: an answer is required.")
        terminal.press("Fjo")
        ana.sees("name", Draft, "Fjo")
        terminal.press("rds", "enter")
        ana.sees("name", Submitted, "Fjords")
        terminal.see("Where to?", r"1\. \( \) Oslo  recommended  Fjords and museums")
        ana.does(lambda session: session.answer(TRIP, "people", 7, draft=True))
        terminal.press("2", "enter")
        terminal.see("How many are coming?", "› 7", r"draft by .*\d\d:\d\d: 7")
        terminal.press("backspace", "99", "enter")
        terminal.see("People: must be at most 12")
        terminal.press("backspace", "backspace", "4", "enter")
        terminal.see("Budget per day")
        terminal.press("ctrl-s")
        terminal.see("What do you like", r"\[ \] Food")
        terminal.press("1", "down", "down", " ", "enter")
        terminal.see("Only refundable bookings", r"\(•\) Yes")
        terminal.press("down", "enter")
        terminal.see(
            r"● 1\. Name +\* Fjords",
            r"● 2\. City +\* Lisbon",
            r"● 3\. People +4",
            r"– 4\. Budget +skipped",
            r"● 5\. Interests +Food, Hiking",
            r"● 6\. Refundable +No",
            r"Accept \(a\)",
        )
        terminal.press("a")
        assert terminal.end() == ExitCode.OK
        assert "You accepted “Planning your trip”." in terminal.screen
    assert "City: Lisbon" in shell("watch", "demo", "--until", "idle").out


def test_people_at_a_terminal_are_seen_and_see_the_others(
    shell: Shell, server: ServerProcess
) -> None:
    with elsewhere(server) as ana:
        with shell.terminal("answer", "demo", "--name", "Ben") as terminal:
            terminal.see("Planning your trip .* · with Ana")
            ana.meets("Ben", editing=None)
            terminal.press("Fjo")
            ana.meets("Ben", editing="name")
            ana.does(lambda session: edits(session, "name"))
            terminal.see("Ana is answering")
            terminal.press("escape", "escape")
            assert terminal.end() == ExitCode.UNANSWERED
        ana.meets(None)


def test_with_several_open_sessions_the_terminal_lets_one_be_picked(shell: Shell) -> None:
    for name in ("pick-1", "pick-2"):
        shell("ask", f"About {name}?", "--session", name, "--no-wait")
    elsewhere = shell("answer", "--accept")
    assert elsewhere.code == ExitCode.USAGE
    assert "pick-1" in elsewhere.err
    assert "pick-2" in elsewhere.err
    with shell.terminal("answer") as terminal:
        terminal.see("Which session\\?", r"\d+  pick-1  About pick-1\?")
        number = re.search(r"(\d+)  pick-1", terminal.screen)
        assert number is not None
        terminal.press("0", "enter")
        terminal.see("Enter a number from 1 to")
        terminal.press("\x15", number[1], "enter")
        terminal.see("About pick-1\\?", "Accept")


def test_leaving_a_form_answers_nothing_and_keeps_the_draft(
    shell: Shell, server: ServerProcess
) -> None:
    with elsewhere(server) as ana:
        with shell.terminal("answer", "demo") as terminal:
            terminal.see("Name  required")
            terminal.press("Fjo", "escape")
            terminal.see("Review", r"Accept \(a\)")
            terminal.press("escape")
            assert terminal.end() == ExitCode.UNANSWERED
            assert "stays open, with what you wrote as a draft" in terminal.screen
        ana.sees("name", Draft, "Fjo")


def test_a_form_that_is_closed_elsewhere_gives_back_what_was_typed(
    shell: Shell, server: ServerProcess
) -> None:
    with elsewhere(server) as ana, shell.terminal("answer", "demo") as terminal:
        terminal.see("Name  required")
        terminal.press("Fjords")
        terminal.see("shared as you type")
        ana.does(lambda session: session.complete(TRIP, "decline"))
        assert terminal.end() == ExitCode.OK
        assert "Ana declined “Planning your trip”." in terminal.screen
        assert "not sent: Name: Fjords" in terminal.screen


def test_one_question_needs_no_review_and_can_be_declined(
    shell: Shell, server: ServerProcess
) -> None:
    for keys, code, message in (
        (("2", "enter"), ExitCode.OK, "You accepted “Where to?”."),
        (("escape", "d"), ExitCode.DECLINED, "You declined “Where to?”."),
    ):
        shell("ask", "-q", "env:select:Where to?=staging|prod*", "--session", "one", "--no-wait")
        with shell.terminal("answer", "one") as terminal:
            screen = terminal.see("Enter accept", r"2\. \( \) prod  recommended")
            assert "Review" not in screen
            first, then = keys
            terminal.press(first)
            if first == "escape":
                terminal.see(r"Decline \(d\)")
            terminal.press(then)
            assert terminal.end() == code
            assert message in terminal.screen


def test_an_address_is_shown_whole_and_only_the_key_opens_it_unchanged(
    shell: Shell, tmp_path: Path
) -> None:
    url, opened = "https://login.example.com/authorize?client=42", tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {opened}\n')
    browser.chmod(0o755)
    shell("ask", "Please log in", "--link", url, "--session", "opens", "--no-wait")
    with shell.terminal("answer", "opens", BROWSER=str(browser)) as terminal:
        terminal.see("Please log in", re.escape(url), "o open the address")
        assert not opened.exists()
        terminal.press("o")
        terminal.press("a")
        assert terminal.end() == ExitCode.OK
    assert opened.read_text() == f"{url}\n"


def test_a_session_is_watched_live(shell: Shell, server: ServerProcess) -> None:
    with elsewhere(server) as ana, shell.terminal("watch", "demo") as terminal:
        terminal.see("❯ Plan a trip for us", "Planning your trip", r"Name \* +–", "needs input")
        ana.does(lambda session: session.answer(TRIP, "name", "Fj", draft=True))
        terminal.see(r"Name \* +Fj  draft by Ana")
        ana.does(lambda session: session.answer(TRIP, "name", "Fjords"))
        terminal.see(r"Name \* +Fjords  submitted by Ana")
        ana.does(lambda session: session.complete(TRIP, "cancel"))
        terminal.see("No trip, then", "○ idle")
        terminal.press("ctrl-c")
        assert terminal.end() == ExitCode.INTERRUPTED


def test_the_list_of_sessions_is_watched_live_with_how_questions_ended_above_it(
    shell: Shell,
) -> None:
    with shell.terminal("watch") as terminal:
        terminal.see("● needs input +demo +A trip", r"Sessions: \d, waiting for input: \d")
        shell("ask", "Ready?", "--session", "other", "--no-wait")
        terminal.see("● needs input +other +Ready")
        shell("answer", "other", "--decline", "--name", "Ana")
        terminal.see("✗ .* other  Ana declined “Ready\\?”", "○ idle +other")
        shell("dispose", "other", "--yes")
        terminal.see_no("idle +other")
        terminal.press("ctrl-c")
        assert terminal.end() == ExitCode.INTERRUPTED


def test_a_link_is_shown_as_a_picture_where_it_fits() -> None:
    public = ("--public-url", "https://ask.example.com", "--without-connection-token")
    with serving("memory:", "--demo", *public) as server:
        shell = Shell(server.url)
        with shell.terminal("share", "demo", size=(60, 90)) as terminal:
            terminal.see("▀|▄|█", "https://ask.example.com/", "For answerers, until")
            assert terminal.end() == ExitCode.OK
        with shell.terminal("share", "demo", size=(30, 40)) as terminal:
            terminal.see(r"too narrow for a QR\s+code")
            assert terminal.end() == ExitCode.OK


def test_asking_on_a_terminal_shows_that_it_waits(shell: Shell) -> None:
    with shell.terminal("ask", "Ready?", "--session", "wait") as terminal:
        terminal.see("Asked in wait", "Waiting for an answer. Ctrl-C withdraws the question.")
        shell("answer", "wait", "--accept")
        assert terminal.end() == ExitCode.OK
        assert "accepted" in terminal.screen
