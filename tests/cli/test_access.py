"""Reaching a host: addresses, tokens, links, and what a new user is told when it fails."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from session_server.cli.exits import MEANINGS, ExitCode
from tests.cli.shells import Shell, environment
from tests.servers import ServerProcess, serving, sqlite_store

TOKEN = "canary-0123456789abcdef"


def test_a_host_that_is_not_there_is_told_with_what_to_do() -> None:
    nobody = Shell("http://127.0.0.1:9")
    for arguments in (("sessions",), ("watch", "--wait", "0.5"), ("ask", "Hi"), ("doctor",)):
        done = nobody(*arguments)
        code = ExitCode.FAILED if arguments == ("doctor",) else ExitCode.UNREACHABLE
        if arguments[0] != "watch":
            assert done.code == code
            assert "session-server serve" in done.err + done.out


def test_an_address_that_is_none_is_explained_without_its_secrets() -> None:
    done = Shell("nonsense")("sessions")
    assert (done.code, "http://127.0.0.1:8737" in done.err) == (ExitCode.USAGE, True)
    secret = Shell(f"http://127.0.0.1:9/?tkn={TOKEN}")("sessions")
    assert secret.code == ExitCode.UNREACHABLE
    assert TOKEN not in secret.err + secret.out


def test_errors_are_json_too_if_asked_for() -> None:
    done = Shell("http://127.0.0.1:9")("--json", "sessions")
    told = json.loads(done.err)
    assert told["exitCode"] == done.code == ExitCode.UNREACHABLE
    assert "serve" in told["advice"]


def test_what_is_said_to_a_command_goes_before_what_is_said_to_all(server: ServerProcess) -> None:
    nobody = Shell("http://127.0.0.1:9")
    assert nobody("sessions", "--url", server.url).code == ExitCode.OK
    assert nobody("--url", server.url, "sessions").code == ExitCode.OK
    assert Shell(None)("--url", "http://127.0.0.1:9", "sessions", "--url", server.url).code == 0


@pytest.mark.slow
def test_tokens_and_links_open_what_they_should(tmp_path: Path) -> None:
    with serving(
        sqlite_store(tmp_path), "--demo", "--data-dir", str(tmp_path), "--connection-token", TOKEN
    ) as server:
        stranger, owner = Shell(server.url), Shell(f"{server.url}/?tkn={TOKEN}")
        refused = stranger("sessions")
        assert refused.code == ExitCode.NOT_ALLOWED
        assert "SESSION_SERVER_TOKEN" in refused.err
        assert stranger("watch", "demo", "--wait", "5").code == ExitCode.NOT_ALLOWED
        assert stranger("sessions", "--token", TOKEN).code == ExitCode.OK
        assert "You are an owner, by the connection token." in owner("doctor").out

        nobody = owner("token", "create", " ")
        assert (nobody.code, "token create Ana" in nobody.err) == (ExitCode.USAGE, True)
        made = owner("token", "create", "CI", "--policy", "--session", "demo", "--json").json
        assert made["issued"]["policy"] is True
        robot = Shell(server.url)
        as_robot = {"SESSION_SERVER_TOKEN": made["token"]}
        answered = robot("answer", "demo", "--set", "name=Fjords", "--set", "city=oslo", **as_robot)
        assert answered.code == ExitCode.OK
        shown = owner("watch", "demo", "--until", "idle").out
        assert "CI (a policy) answered" in shown
        denied = robot("token", "list", **as_robot)
        assert (denied.code, "owner" in denied.err) == (ExitCode.NOT_ALLOWED, True)
        assert made["issued"]["id"] in owner("token", "list").out
        assert owner("token", "revoke", made["issued"]["id"]).code == ExitCode.OK
        assert robot("sessions", **as_robot).code == ExitCode.NOT_ALLOWED
        assert owner("token", "revoke", "nope").code == ExitCode.NOT_FOUND

        link = owner("share", "demo", "--role", "observer", "--name", "Bo").out.strip()
        assert Shell(link)("sessions", "--json").json[0]["resource"] == "ahp-session:/demo"
        assert Shell(link)("answer", "demo", "--accept").code != ExitCode.OK
        listed = owner("share", "demo", "--list", "--json").json
        assert [share["name"] for share in listed] == ["Bo"]
        assert owner("share", "demo", "--revoke", listed[0]["id"]).code == ExitCode.OK
        assert Shell(link)("sessions").code == ExitCode.NOT_ALLOWED
        assert TOKEN not in "".join(server.output)


def test_the_doctor_finds_a_healthy_host(shell: Shell, tmp_path: Path) -> None:
    done = shell("doctor", "--json", SESSION_SERVER_DATA_DIR=str(tmp_path))
    found = {check["name"]: check for check in done.json}
    assert set(found) == {
        "python", "settings", "disk", "store", "port", "host", "clock", "access", "protocol",
    }  # fmt: skip
    bad = [check for check in done.json if check["finding"] == "bad"]
    assert (done.code, bad) == (ExitCode.OK, [])
    assert found["access"]["words"] == "You are an owner: no token is needed from this machine."
    assert found["protocol"]["words"].startswith("AHP 0.3.0")
    assert not any(tmp_path.iterdir())


def test_the_doctor_says_what_is_wrong_and_what_to_do(shell: Shell, tmp_path: Path) -> None:
    damaged = tmp_path / "sessions.db"
    damaged.write_bytes(b"this is no database" * 100)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = shell(
            "doctor",
            "--json",
            SESSION_SERVER_PORT=str(port),
            SESSION_SERVER_DATA_DIR=str(tmp_path),
        )
    found = {check["name"]: check for check in done.json}
    assert done.code == ExitCode.FAILED
    assert found["store"]["finding"] == "bad"
    assert found["port"]["finding"] == "odd"
    assert "--port" in found["port"]["advice"]
    settings = shell("doctor", "--json", SESSION_SERVER_PORT="many").json[1]
    assert (settings["name"], settings["finding"]) == ("settings", "bad")


@pytest.mark.slow
def test_the_doctor_knows_a_store_in_use(tmp_path: Path) -> None:
    with serving(sqlite_store(tmp_path)) as server:
        done = Shell(server.url)(
            "doctor", "--json", SESSION_SERVER_DATA_DIR=str(tmp_path),
            SESSION_SERVER_PORT=str(server.port),
        )  # fmt: skip
    found = {check["name"]: check["words"] for check in done.json}
    assert "in use by a running host" in found["store"]
    assert "taken by a running session-server" in found["port"]
    assert done.code == ExitCode.OK


def test_a_command_loads_nothing_of_the_server() -> None:
    heavy = ("fastapi", "mcp", "prompt_toolkit", "uvicorn", "session_server.app")
    done = subprocess.run(
        [sys.executable, "-c", "import sys, session_server.cli; print(*sys.modules)"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    loaded = done.stdout.split()
    assert "session_server.cli.answer" in loaded
    assert [name for name in heavy if name in loaded] == []


def test_every_exit_code_has_its_meaning() -> None:
    assert set(MEANINGS) == set(ExitCode)
    assert all(text[0].isupper() and text.endswith(".") for text in MEANINGS.values())


@pytest.mark.slow
def test_the_shell_completes_sessions(server: ServerProcess) -> None:
    words = {"_SESSION_SERVER_COMPLETE": "complete_bash", "COMP_WORDS": "session-server watch dem",
             "COMP_CWORD": "2"}  # fmt: skip
    done = subprocess.run(
        [Path(sys.executable).parent / "session-server"],
        env=environment(server.url, **words),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.split() == ["demo"]
