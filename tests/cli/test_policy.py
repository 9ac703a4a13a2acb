"""Answering from a fixture: as a policy, by rules that match, and never by guessing."""

import signal
from pathlib import Path

import pytest

from session_server.cli.failures import ExitCode
from tests.cli.shells import Shell, requests_in
from tests.servers import ServerProcess

DEPLOY = ("ask", "Deploy?", "-q", "env:select:Where?=staging|prod*", "--no-wait", "--session")


def fixture(folder: Path, text: str) -> str:
    file = folder / "fixture.yaml"
    file.write_text(text)
    return str(file)


@pytest.mark.proves("design.provenance.policy")
def test_a_fixture_answers_as_a_policy(shell: Shell, server: ServerProcess, tmp_path: Path) -> None:
    file = fixture(tmp_path, "- message: Deploy?\n  answers: {env: staging}\n")
    shell(*DEPLOY, "policy")
    done = shell.process("answer", "policy", "--fixture", file)
    assert (done.code, done.out) == (ExitCode.OK, "policy: accept “Deploy?” (rule 1)\n")
    (request,) = requests_in(server, "policy", "ended")
    assert request["content"] == {"env": "staging"}
    assert request["outcome"]["via"] == "policy"
    assert request["outcome"]["answers"]["env"]["_meta"]["via"] == "policy"


def test_what_no_rule_is_for_is_left_open_and_described(
    shell: Shell, server: ServerProcess, tmp_path: Path
) -> None:
    """`test_fixtures` has the other reasons for which a rule answers nothing."""
    file = fixture(tmp_path, "- question: region\n  answers: {region: eu}\n")
    shell(*DEPLOY, "unknown")
    done = shell("answer", "unknown", "--fixture", file)
    assert done.code == ExitCode.UNANSWERED
    assert "“Deploy?” is left open. No rule matches it." in done.err
    assert "message: Deploy?, question: env" in done.err
    (told,) = shell("answer", "unknown", "--fixture", file, "--json").json_lines
    assert "No rule matches it" in told["unanswered"]
    required = fixture(tmp_path, '- {message: "Deploy?"}')
    (told,) = shell("answer", "unknown", "--fixture", required, "--json").json_lines
    assert "an answer is required" in told["unanswered"]
    assert requests_in(server, "unknown", "ended") == []


def test_a_fixture_may_decline(shell: Shell, server: ServerProcess, tmp_path: Path) -> None:
    file = fixture(tmp_path, '- {message: "Deploy?", response: decline}')
    shell(*DEPLOY, "no")
    done = shell("answer", "no", "--fixture", file, "--json")
    assert (done.code, done.json_lines[0]["response"]) == (ExitCode.OK, "decline")
    assert requests_in(server, "no", "ended")[0]["outcome"]["response"] == "decline"


def test_no_open_question_is_reported_and_waiting_for_one_ends(
    shell: Shell, tmp_path: Path
) -> None:
    file = fixture(tmp_path, "- message: Deploy?\n")
    shell(*DEPLOY, "quiet")
    assert shell("answer", "quiet", "--cancel").code == ExitCode.OK
    assert shell("answer", "quiet", "--fixture", file).code == ExitCode.NOT_FOUND
    waited = shell("answer", "quiet", "--fixture", file, "--wait", "0.2s")
    assert waited.code == ExitCode.TIMED_OUT


@pytest.mark.slow
def test_a_fixture_answers_in_all_sessions_as_questions_come(
    shell: Shell, server: ServerProcess, tmp_path: Path
) -> None:
    file = fixture(tmp_path, '- {message: "Deploy?", answers: {env: prod}}\n- request: other')
    with shell.running("answer", "--fixture", file, "--all", "--follow") as answering:
        for session in ("first", "second"):
            with shell.running(*DEPLOY[:-2], "--session", session) as asking:
                assert asking.end()[:2] == (ExitCode.OK, "prod\n")
            answering.hear(f"{session}: accept")
        assert answering.interrupt(signal.SIGINT).code == ExitCode.INTERRUPTED


@pytest.mark.slow
def test_a_fixture_ends_after_the_number_of_answers_that_were_wanted(
    shell: Shell, tmp_path: Path
) -> None:
    file = fixture(tmp_path, '- {message: "Deploy?", answers: {env: prod}}')
    shell(*DEPLOY, "counted")
    with shell.running(
        "answer", "counted", "--fixture", file, "--wait", "30", "--count", "2"
    ) as answering:
        answering.hear("accept")
        shell(*DEPLOY, "counted")
        assert answering.end().code == ExitCode.OK
