"""`ask` and `answer` as scripts use them: what is printed where, and with which exit code."""

import json
import signal
from pathlib import Path

import httpx2
import pytest

from session_server.cli.failures import ExitCode
from session_server.schemas.limits import LEASE_SECONDS
from tests.cli.shells import Shell, requests_in
from tests.servers import ServerProcess
from tests.waiting import wait_until

ENV = "env:select:Which environment?=staging|prod*"
REPLICAS = "replicas:integer[1..20]:How many?=3"
NOTE = "note?:Anything else?"


def test_a_script_asks_and_somebody_answers_in_another_shell(shell: Shell) -> None:
    with shell.running("ask", "Deploy?", "-q", ENV, "-q", REPLICAS, "-q", NOTE,
                       "--session", "one") as asking:  # fmt: skip
        said = asking.hear("Asked in one", on="err")
        assert f"session-server answer one --url {shell.url}, or at {shell.url}/#/s/one" in said
        answered = shell.process(
            "answer", "one", "--set", "env=staging", "--set", "replicas=5", "--name", "Ana"
        )
        assert (answered.code, answered.out) == (ExitCode.OK, "You accepted “Deploy?”.\n")
        assert asking.end()[:2] == (ExitCode.OK, "env=staging\nreplicas=5\n")
    assert "Ana answered “Deploy?”." in shell("watch", "one", "--until", "idle").out


CHECKS = "checks:multi:Which?=lint|tests|docs"
SURE, MAYBE_SURE = "ok:yes-no:Really deploy?", "ok?:yes-no:Really deploy?"


@pytest.mark.parametrize(
    ("asked", "given", "code", "printed", "said"),
    [
        (("Ready?",), ("--accept",), ExitCode.OK, "accepted\n", ""),
        (("Ready?",), ("--decline",), ExitCode.DECLINED, "", "Someone declined “Ready?”.\n"),
        (("Ready?",), ("--cancel",), ExitCode.CANCELLED, "", "Someone cancelled “Ready?”.\n"),
        (("-q", CHECKS), ("--set", "checks=lint,docs"), ExitCode.OK, "lint,docs\n", ""),
        (("-q", SURE), ("--set", "ok=yes"), ExitCode.OK, "true\n", ""),
        (("-q", SURE), ("--set", "ok=no"), ExitCode.NO, "false\n", ""),
        (("-q", MAYBE_SURE), ("--accept",), ExitCode.NO, "", ""),
    ],
)
def test_one_answer_is_printed_as_it_is_and_only_a_yes_exits_with_0(
    shell: Shell,
    tmp_path: Path,
    asked: tuple[str, ...],
    given: tuple[str, ...],
    code: ExitCode,
    printed: str,
    said: str,
) -> None:
    ask = ("ask", *asked, "--session", tmp_path.name, "--key", "one")
    assert shell(*ask, "--no-wait").code == ExitCode.OK
    assert shell("answer", tmp_path.name, *given).code == ExitCode.OK
    done = shell(*ask)
    assert (done.code, done.out) == (code, printed)
    assert done.err.endswith(said)


@pytest.mark.parametrize(
    ("on_expiry", "code", "printed"),
    [("cancel", ExitCode.TIMED_OUT, ""), ("defaults", ExitCode.OK, "prod\n")],
)
def test_a_deadline_is_a_timeout_and_never_a_no(
    shell: Shell, on_expiry: str, code: ExitCode, printed: str
) -> None:
    done = shell("ask", "-q", ENV, "--expires-in", "0.3s", "--on-expiry", on_expiry)
    assert (done.code, done.out) == (code, printed)
    assert ("timed out" if on_expiry == "cancel" else "got its defaults") in done.err


def test_who_stops_waiting_can_go_on_later_without_asking_twice(
    shell: Shell, server: ServerProcess
) -> None:
    ask = ("ask", "Go?", "--session", "later", "--key", "build-7", "--wait")
    first = shell(*ask, "0.2")
    assert first.code == ExitCode.TIMED_OUT
    assert "The question stays open" in first.err
    assert "session-server answer later" in first.err
    assert shell("answer", "later", "--accept").code == ExitCode.OK
    again = shell(*ask, "20")
    assert (again.code, again.out) == (ExitCode.OK, "accepted\n")
    assert len(requests_in(server, "later", "ended")) == 1


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (signal.SIGINT, ExitCode.INTERRUPTED),
        (signal.SIGTERM, 128 + signal.SIGTERM),
        (signal.SIGHUP, 128 + signal.SIGHUP),
    ],
)
def test_an_interrupted_ask_withdraws_its_question(
    shell: Shell, server: ServerProcess, number: signal.Signals, code: int
) -> None:
    session = f"back-{number}"
    with shell.running("ask", "Still there?", "--session", session) as asking:
        asking.hear("Asked", on="err")
        done = asking.interrupt(number)
        assert done.code == code
        assert "withdrawn" in done.err
    (ended,) = requests_in(server, session, "ended")
    assert ended["outcome"]["via"] == "withdrawn"


def test_a_terminated_ask_with_a_key_leaves_its_question_to_be_taken_up_again(
    shell: Shell, server: ServerProcess
) -> None:
    ask = ("ask", "Still there?", "--session", "kept", "--key", "build-8")
    with shell.running(*ask) as asking:
        asking.hear("Asked", on="err")
        assert asking.interrupt(signal.SIGTERM).code == 128 + signal.SIGTERM
    assert len(requests_in(server, "kept")) == 1
    assert shell("answer", "kept", "--accept").code == ExitCode.OK
    assert shell(*ask, "--wait", "60").out == "accepted\n"


def test_a_question_of_a_killed_ask_is_marked_and_taken_up_by_the_same_ask(
    shell: Shell, server: ServerProcess
) -> None:
    ask = ("ask", "Still there?", "--session", "killed")

    def is_marked() -> bool:
        (request,) = requests_in(server, "killed")
        return "askerGoneSince" in request["request"]["_meta"]

    with shell.running(*ask, "--lease", "0.5s") as asking:
        asking.hear("Asked", on="err")
        assert asking.interrupt(signal.SIGKILL).code == -signal.SIGKILL
    wait_until(is_marked)
    with shell.running(*ask) as again:
        again.hear("Asked", on="err")
        wait_until(lambda: not is_marked())
        assert shell("answer", "killed", "--accept").code == ExitCode.OK
        assert again.end().out == "accepted\n"


@pytest.mark.parametrize(
    ("more", "lease"),
    [
        ((), LEASE_SECONDS),
        (("--lease", "2m"), 120),
        (("--key", "one"), None),
        (("--no-wait",), None),
    ],
)
def test_only_an_ask_that_stays_has_a_lease(
    shell: Shell, server: ServerProcess, more: tuple[str, ...], lease: float | None
) -> None:
    session = f"lease-{'-'.join(more)}"
    with shell.running("ask", "Still there?", "--session", session, *more) as asking:
        asking.hear("Asked", on="err")
        (request,) = requests_in(server, session)
    assert request["request"]["_meta"].get("lease") == lease


def test_a_question_without_a_key_is_withdrawn_when_its_asker_stops_waiting(
    shell: Shell, server: ServerProcess
) -> None:
    done = shell("ask", "Anyone?", "--session", "nobody", "--wait", "0.2")
    assert done.code == ExitCode.TIMED_OUT
    assert "withdrawn" in done.err
    assert "--key" in done.err
    assert requests_in(server, "nobody") == []


def test_asking_without_waiting_prints_the_request(shell: Shell, server: ServerProcess) -> None:
    done = shell("ask", "Whenever?", "--session", "async", "--no-wait")
    (request,) = requests_in(server, "async")
    assert (done.code, done.out) == (ExitCode.OK, f"{request['id']}\n")
    closed = shell("answer", "async", "--request", done.out.strip(), "--decline")
    assert closed.code == ExitCode.OK


def test_json_says_everything(shell: Shell) -> None:
    ask = ("ask", "-q", ENV, "--session", "json", "--key", "one", "--json")
    shell(*ask, "--no-wait")
    answered = shell("--json", "answer", "json", "--set", "env=prod")
    assert answered.json["response"] == "accept"
    said = shell(*ask).json
    assert said["content"] == {"env": "prod"}
    assert (said["outcome"]["response"], said["outcome"]["via"]) == ("accept", "person")
    assert said["session"] == "ahp-session:/json"


AHP = {"message": "Trip", "questions": [{"kind": "text", "id": "to", "message": "Where to?"}]}
MCP = {
    "type": "object",
    "properties": {"to": {"type": "string", "title": "Where to?"}},
    "required": ["to"],
}


@pytest.mark.parametrize(
    "document",
    [AHP, AHP["questions"], MCP, {"message": "Trip", "requestedSchema": MCP}],
    ids=["ahp", "questions", "schema", "mcp"],
)
def test_questions_come_from_a_file_too(
    shell: Shell, server: ServerProcess, tmp_path: Path, document: object
) -> None:
    file = tmp_path / "questions.json"
    file.write_text(json.dumps(document))
    shell("ask", "-f", str(file), "--session", tmp_path.name, "--no-wait")
    assert shell("answer", tmp_path.name, "--set", "to=Oslo").code == ExitCode.OK
    (ended,) = requests_in(server, tmp_path.name, "ended")
    assert ended["content"] == {"to": "Oslo"}


def test_questions_come_from_standard_input(shell: Shell) -> None:
    done = shell("ask", "-f", "-", "--session", "stdin", "--no-wait", stdin=json.dumps(MCP))
    assert done.code == ExitCode.OK
    refused = shell("answer", "stdin", "--accept")
    assert refused.code == ExitCode.FAILED
    assert "Where to?: an answer is required." in refused.err


@pytest.mark.parametrize(
    "named", [(), ("--session", "never-asked"), ("--session", "empty")], ids=["new", "named", "old"]
)
def test_a_question_that_cannot_be_asked_leaves_the_sessions_as_they_were(
    shell: Shell, server: ServerProcess, named: tuple[str, ...]
) -> None:
    def names() -> list[str]:
        items = httpx2.get(f"{server.url}/v1/sessions").json()["items"]
        return sorted(item["resource"] for item in items)

    httpx2.post(f"{server.url}/v1/sessions", json={"resource": "ahp-session:/empty"})
    before = names()
    refused = shell("ask", "Hi", "--link", "ftp://example.com", *named)
    assert (refused.code, refused.out) == (ExitCode.USAGE, "")
    assert names() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("answer", "nope", "--accept"), "There is no session 'nope'"),
        (("answer", "demmo", "--accept"), "Did you mean 'demo'?"),
        (("answer", "demo", "--request", "nope", "--accept"), "No request 'nope' is open"),
        (("watch", "nope"), "There is no session 'nope'"),
        (("export", "nope"), "There is no session 'nope'"),
        (("share", "nope"), "There is no session 'nope'"),
    ],
)
def test_what_is_not_there_exits_with_8(
    shell: Shell, arguments: tuple[str, ...], message: str
) -> None:
    done = shell(*arguments)
    assert done.code == ExitCode.NOT_FOUND
    assert message in done.err
