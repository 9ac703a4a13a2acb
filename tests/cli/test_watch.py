"""`sessions` and `watch`: what there is, and what happens to it."""

import asyncio
import json
import signal

import pytest

from session_server.cli.failures import ExitCode
from session_server.client import connect
from session_server.schemas.ahp.actions import IsArchivedChanged
from tests.cli.shells import Shell


def test_sessions_are_listed_with_what_needs_input_first(shell: Shell) -> None:
    shell("ask", "Quiet?", "--session", "quiet", "--title", "Nothing to do", "--no-wait")
    shell("answer", "quiet", "--decline")
    done = shell.process("sessions")
    assert done.code == ExitCode.OK
    lines = [line for line in done.out.splitlines() if "demo" in line or "quiet" in line]
    assert "● needs input" in lines[0]
    assert "A trip" in lines[0]
    assert "○ idle" in lines[1]
    assert "Nothing to do" in lines[1]
    listed = shell("sessions", "--json").json
    states = [(s["state"], s["resource"]) for s in listed]
    asking, quiet = ("input-needed", "ahp-session:/demo"), ("idle", "ahp-session:/quiet")
    assert states.index(asking) < states.index(quiet)


@pytest.mark.slow
def test_a_question_that_was_left_is_marked_wherever_it_is_listed(shell: Shell) -> None:
    with shell.running("watch") as watching:
        with shell.running("ask", "Ship it?", "--session", "left", "--lease", "0.3s") as asking:
            asking.hear("Asked", on="err")
            watching.hear("input-needed\tleft\t")
            asking.interrupt(signal.SIGKILL)
        watching.hear("asker-gone\tleft\tShip it?")
        (line,) = [line for line in shell("sessions").out.splitlines() if " left " in line]
        assert line.strip().startswith("◌ not waiting")
        listed = {s["resource"]: s for s in shell("sessions", "--json").json}
        assert listed["ahp-session:/left"]["_meta"] == {"askersGone": True}
        with shell.terminal("watch", "left") as terminal:
            terminal.see("no longer waiting", "kept for it", "◌ not waiting")
        with shell.terminal("answer", "left") as terminal:
            terminal.see("The program that asked is no longer waiting", "kept for it")
        assert shell("answer", "left", "--cancel").code == ExitCode.OK
        watching.hear("idle\tleft\t")


def test_an_archived_session_is_listed_while_it_asks(shell: Shell) -> None:
    shell("ask", "Ship it?", "--session", "put-away", "--no-wait")

    async def archive() -> None:
        async with (
            connect(shell.url or "") as client,
            client.session("ahp-session:/put-away") as session,
        ):
            await session.dispatch(IsArchivedChanged(is_archived=True))

    asyncio.run(archive())
    assert "put-away" in shell("sessions").out
    shell("answer", "put-away", "--decline")
    assert "put-away" not in shell("sessions").out
    assert "put-away" in shell("sessions", "--all").out


@pytest.mark.slow
def test_a_narrow_terminal_still_shows_what_a_session_is_called(shell: Shell) -> None:
    with shell.terminal("sessions", size=(40, 40)) as terminal:
        assert terminal.end() == ExitCode.OK
        assert "● needs input   demo" in terminal.screen


def test_watching_can_wait_for_a_state(shell: Shell) -> None:
    assert shell("watch", "demo", "--until", "input-needed").code == ExitCode.OK
    assert shell("watch", "--until", "error", "--until", "input-needed").code == ExitCode.OK
    late = shell("watch", "demo", "--until", "error", "--wait", "0.3s")
    assert late.code == ExitCode.TIMED_OUT
    assert "The state was not error within 0.3 s." in late.err


@pytest.mark.slow
def test_a_script_waits_until_the_session_is_idle(shell: Shell) -> None:
    with shell.running("watch", "demo", "--until", "idle") as watching:
        watching.hear("Let me ask a few things first.")
        shell("answer", "demo", "--set", "name=Fjords", "--set", "city=oslo")
        done = watching.end()
    assert done.code == ExitCode.OK
    assert "Someone answered “Planning your trip”" in done.out
    assert "City: Oslo" in done.out
    assert "demo is idle." in done.err


def test_watch_says_how_the_question_ended(shell: Shell) -> None:
    shell("ask", "Deploy?", "--session", "ended", "--no-wait")
    shell("answer", "ended", "--decline", "--name", "Ana")
    done = shell("watch", "ended", "--until", "idle")
    assert "ended is idle. Ana declined “Deploy?”." in done.err


@pytest.mark.slow
def test_changes_are_lines_of_json(shell: Shell) -> None:
    shell("ask", "Ready?", "--session", "lines", "--no-wait")
    with shell.running("watch", "lines", "--json", "--until", "idle") as watching:
        watching.hear("snapshot")
        shell("answer", "lines", "--accept")
        first, *rest = watching.end().json_lines
    assert first["snapshot"]["summary"]["resource"] == "ahp-session:/lines"
    kinds = [line["action"]["type"] for line in rest]
    assert "session/inputCompleted" in kinds
    assert all(line["_meta"]["by"] for line in rest)


@pytest.mark.slow
def test_the_list_says_who_answered_what_and_how_each_question_ended(shell: Shell) -> None:
    shell("ask", "Earlier?", "--session", "outcomes", "--no-wait")
    shell("answer", "outcomes", "--accept")
    question = ("-q", "env:select:Where?=staging|prod")
    with shell.running("watch") as watching, shell.running("watch", "--json") as lines:
        watching.hear("outcomes")
        lines.hear("outcomes")
        shell("ask", "Release", *question, "--session", "outcomes", "--no-wait")
        shell("answer", "outcomes", "--set", "env=prod", "--name", "Ana")
        shell("ask", "Again?", "--session", "outcomes-2", "--no-wait")
        shell("ask", "And again?", "--session", "outcomes-2", "--no-wait")
        shell("answer", "outcomes-2", "--decline", "--name", "Ben")
        shell("ask", "Late?", "--session", "outcomes-2", "--expires-in", "0.1s")
        accepted_line = "accepted\toutcomes\tAna answered “Release”. Where?: prod\n"
        assert watching.hear("accepted") == accepted_line
        assert watching.hear("declined") == "declined\toutcomes-2\tBen declined “Again?”.\n"
        assert watching.hear("timed-out") == "timed-out\toutcomes-2\t“Late?” timed out.\n"
        accepted = json.loads(lines.hear('"accepted"'))
        lines.hear('"declined"')
        shell("dispose", "outcomes-2", "--yes")
        lines.hear('"gone"')
        done, followed = watching.interrupt(signal.SIGINT), lines.interrupt(signal.SIGINT)
    assert done.code == followed.code == ExitCode.INTERRUPTED
    of_second = [line for line in followed.json_lines if "outcomes-2" in line["resource"]]
    states = [line["state"] for line in of_second]
    assert "input-needed" in states
    assert states[-1] == "gone"
    assert "answered “Earlier?”" not in done.out, "what ended before is no news"
    assert done.out.count("accepted") == 1
    assert (accepted["state"], accepted["resource"]) == ("ended", "ahp-session:/outcomes")
    assert (accepted["message"], accepted["answers"]) == ("Release", {"env": "prod"})
    assert (accepted["by"], accepted["via"]) == ("Ana", "person")


def test_the_beginning_of_a_name_is_enough_if_it_is_the_only_one(shell: Shell) -> None:
    for name in ("build-1", "build-2"):
        shell("ask", "Go?", "--session", name, "--no-wait")
    assert shell("watch", "dem", "--until", "input-needed", "--until", "idle").code == ExitCode.OK
    several = shell("watch", "build", "--until", "idle")
    assert several.code == ExitCode.NOT_FOUND
    assert "Several sessions begin with 'build': build-1, build-2." in several.err


def test_a_session_is_removed_only_when_that_is_meant(shell: Shell) -> None:
    shell("ask", "Go?", "--session", "gone", "--no-wait")
    unsure = shell("dispose", "gone")
    assert unsure.code == ExitCode.USAGE
    assert "--yes" in unsure.err
    done = shell("dispose", "gone", "--yes", "--json")
    assert (done.code, json.loads(done.out)["state"]) == (ExitCode.OK, "gone")
    assert shell("dispose", "gone", "--yes").code == ExitCode.NOT_FOUND
