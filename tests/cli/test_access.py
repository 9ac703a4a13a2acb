"""Reaching a host: addresses, tokens, links, and what a new user is told when it fails."""

import json
import re
import socket
import ssl
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from session_server.cli.failures import MEANINGS, ExitCode
from session_server.cli.http_client import Reach
from session_server.cli.output import sanitized
from session_server.reducers.version_negotiation import SUPPORTED_VERSIONS
from tests.cli.shells import Shell, environment
from tests.mcp import zoo
from tests.servers import ServerProcess, serving, sqlite_store

TOKEN = "canary-0123456789abcdef"


def test_an_unreachable_host_is_reported_with_advice() -> None:
    nobody = Shell("http://127.0.0.1:9")
    for arguments in (("sessions",), ("ask", "Hi"), ("doctor",)):
        done = nobody(*arguments)
        code = ExitCode.FAILED if arguments == ("doctor",) else ExitCode.UNREACHABLE
        assert done.code == code
        assert "session-server serve" in done.err + done.out


def test_an_invalid_address_is_reported_with_advice() -> None:
    done = Shell("nonsense")("sessions")
    assert (done.code, "http://127.0.0.1:8737" in done.err) == (ExitCode.USAGE, True)


@pytest.mark.parametrize(
    "url", [f"http://127.0.0.1:9/?tkn={TOKEN}", f"http://me:{TOKEN}@127.0.0.1:9"]
)
def test_an_error_shows_no_token_and_no_password(url: str) -> None:
    done = Shell(url)("sessions")
    assert done.code == ExitCode.UNREACHABLE
    assert TOKEN not in done.err + done.out


def test_errors_are_json_too_if_asked_for() -> None:
    done = Shell("http://127.0.0.1:9")("--json", "sessions")
    told = json.loads(done.err)
    assert told["exitCode"] == done.code == ExitCode.UNREACHABLE
    assert "serve" in told["advice"]


def test_options_of_a_command_override_options_of_the_program(server: ServerProcess) -> None:
    nobody = Shell("http://127.0.0.1:9")
    assert nobody("sessions", "--url", server.url).code == ExitCode.OK
    assert nobody("--url", server.url, "sessions").code == ExitCode.OK
    assert Shell(None)("--url", "http://127.0.0.1:9", "sessions", "--url", server.url).code == 0


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("sessions", "--url", "http://[::1"), "is not the address of a host"),
        (("sessions", "--url", "http://x:99999"), "is not the address of a host"),
        (("sessions", "--token", "fjörd"), "This is not a valid token"),
        (("ask", "caf\udce9", "--no-wait"), "is not text in UTF-8"),
        (("ask", "Hi", "-q", "x:\udce9"), "is not text in UTF-8"),
        (("ask", "-q", "env:selct:Where?=a"), "Did you mean select?"),
        (("ask", "Hi", "-f", "x.json", "-q", "Well?"), "not both"),
        (("ask", "-f", "/nowhere.json"), "cannot be read"),
        (("ask", "Hi", "--key", "k"), "--key needs --session"),
        (("ask",), "There is nothing to ask"),
        (("ask", " "), "There is nothing to ask"),
        (("ask", "Hi", "--session", ""), "is empty"),
        (("ask", "Hi", "--expires-in", "0"), "too short or too long"),
        (("ask", "Hi", "--expires-in", "400d"), "at most 366 days"),
        (("ask", "Hi", "--expires-in", "soon"), "is not a valid duration"),
        (("ask", "Hi", "--on-expiry", "cancel"), "needs a deadline"),
        (("ask", "Hi", "--title", "x" * 501), "at most 500 characters"),
        (("share", "demo", "--expires-in", "31d"), "at most 30 days"),
        (("share", "demo", "--name", ""), "at least one character"),
        (("answer",), "A form needs a terminal"),
        (("answer", "demo", "--accept", "--decline"), "Give only one of"),
        (("answer", "demo", "--set", "name"), "QUESTION=VALUE"),
        (("answer", "demo", "--set", "nam=x"), "did you mean 'name'?"),
        (("answer", "demo", "--set", "people=many"), "'many' is not a number"),
        (("answer", "demo", "--set", "people=1,000"), "can be read in two ways"),
        (("answer", "demo", "--set", f"people={'9' * 20}"), "too large"),
        (("answer", "demo", "--set", "budget=nan"), "'nan' is not a number"),
        (("answer", "demo", "--set", "budget=1e999"), "too large"),
        (("answer", "demo", "--set", "name=  "), "Name: an answer is required"),
        (("answer", "demo", "--all"), "need --fixture"),
        (("answer", "demo", "--nonsense"), "No such option"),
        (("dispose", "", "--yes"), "is empty"),
        (("watch", "--until", "done"), "is not one of"),
    ],
)
def test_usage_errors_are_explained_as_text_and_as_json(
    shell: Shell, arguments: tuple[str, ...], reason: str
) -> None:
    done = shell(*arguments)
    assert (done.code, done.out) == (ExitCode.USAGE, "")
    assert reason in " ".join(re.sub("[│╭╰─╮╯]", " ", done.err).split())
    said = json.loads(shell("--json", *arguments).err)
    assert said["exitCode"] == ExitCode.USAGE
    assert reason in f"{said['error']} {said.get('advice', '')}"


def test_control_characters_from_others_do_not_reach_the_terminal() -> None:
    assert sanitized("a\x1b]0;owned\x07\x9b31m\tb\n") == "a␛]0;owned␇�31m\tb\n"
    assert sanitized("yes\u202eon\u2066x\u2069") == "yes�on�x�"


@pytest.mark.slow
def test_markup_from_others_is_shown_literally(shell: Shell, server: ServerProcess) -> None:
    message = "a\x1b[31mred[/x]\x1b]0;owned\x07"
    httpx2.post(f"{server.url}/v1/sessions", json={"resource": "ahp-session:/x", "title": message})
    httpx2.post(f"{server.url}/v1/sessions/x/requests", json={"message": message})
    with shell.terminal("sessions") as terminal:
        assert terminal.end() == ExitCode.OK
        assert "a[31mred[/x]]0;owned" in terminal.screen  # a title never has them
    with shell.terminal("watch", "x") as terminal:
        terminal.see(r"a␛\[31mred\[/x\]␛\]0;owned")


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
        assert (nobody.code, "at least one character" in nobody.err) == (ExitCode.USAGE, True)
        shown = owner("token", "create", "Bea")
        link = shown.out.strip()
        assert link.startswith(f"{server.url}/?tkn=")
        assert Shell(link)("sessions").code == ExitCode.OK
        assert f"Token for programs: {link.partition('=')[2]}" in shown.err
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
        revoked = owner("token", "revoke", made["issued"]["id"], "--json")
        assert revoked.json == {"id": made["issued"]["id"], "state": "revoked"}
        assert robot("sessions", **as_robot).code == ExitCode.NOT_ALLOWED
        assert owner("token", "revoke", "nope").code == ExitCode.NOT_FOUND

        link = owner("share", "demo", "--role", "observer", "--name", "Bo").out.strip()
        assert Shell(link)("sessions", "--json").json[0]["resource"] == "ahp-session:/demo"
        assert Shell(link)("answer", "demo", "--accept").code != ExitCode.OK
        listed = owner("share", "demo", "--list", "--json").json
        assert [share["name"] for share in listed] == ["Bo"]
        assert owner("share", "demo", "--revoke", "..").code == ExitCode.NOT_FOUND
        assert owner("share", "demo", "--revoke", listed[0]["id"]).code == ExitCode.OK
        assert Shell(link)("sessions").code == ExitCode.NOT_ALLOWED
        assert TOKEN not in "".join(server.output)


def test_the_doctor_finds_a_healthy_host(shell: Shell, tmp_path: Path) -> None:
    done = shell("doctor", "--json", SESSION_SERVER_DATA_DIR=str(tmp_path))
    found = {check["name"]: check for check in done.json}
    assert set(found) == {
        "python", "settings", "disk", "store", "port", "host", "clock", "access", "protocol",
    }  # fmt: skip
    problems = [check for check in done.json if check["finding"] == "problem"]
    assert (done.code, problems) == (ExitCode.OK, [])
    assert found["access"]["message"] == "You are an owner: no token is needed from this machine."
    assert found["protocol"]["message"].startswith(f"AHP {SUPPORTED_VERSIONS[0]}")
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
    assert found["store"]["finding"] == "problem"
    assert found["port"]["finding"] == "warning"
    assert "--port" in found["port"]["advice"]
    settings = shell("doctor", "--json", SESSION_SERVER_PORT="many").json[1]
    assert (settings["name"], settings["finding"]) == ("settings", "problem")


def test_the_doctor_tries_the_mcp_servers(shell: Shell, tmp_path: Path) -> None:
    server = [str(zoo.HERE / "servers" / "odd.py")]
    broken = {"args": [*server, "--broken"], "env": {"API_TOKEN": "canary-4711"}}
    config = zoo.mcp_json(
        tmp_path,
        {
            "good": {"command": sys.executable, "args": server, "answer_within": 5},
            "broken": {"command": sys.executable, **broken},
            "old": {"type": "sse", "url": "https://example.com/sse"},
            "off": {"command": "nothing", "enabled": False},
        },
    )
    data = {"SESSION_SERVER_DATA_DIR": str(tmp_path / "data")}
    done = shell("doctor", "--json", "--mcp-config", str(config), **data)
    found = {check["name"]: check for check in done.json if check["name"].startswith("mcp")}
    assert done.code == ExitCode.FAILED
    assert {name: check["finding"] for name, check in found.items()} == {
        "mcp": "warning",
        "mcp good": "ok",
        "mcp broken": "problem",
        "mcp old": "problem",
        "mcp off": "ok",
    }
    assert "did you mean `answerWithin`?" in found["mcp"]["message"]
    assert "revision 2026-07-28" in found["mcp good"]["message"]
    assert found["mcp broken"]["advice"] == "It wrote: The database is locked: •••"
    assert "SSE" in found["mcp old"]["message"]


@pytest.mark.slow
def test_the_doctor_knows_a_store_in_use(tmp_path: Path) -> None:
    with serving(sqlite_store(tmp_path)) as server:
        done = Shell(server.url)(
            "doctor", "--json", SESSION_SERVER_DATA_DIR=str(tmp_path),
            SESSION_SERVER_PORT=str(server.port),
        )  # fmt: skip
    found = {check["name"]: check["message"] for check in done.json}
    assert "in use by a running host" in found["store"]
    assert "used by a running session-server" in found["port"]
    assert done.code == ExitCode.OK


def test_a_command_loads_nothing_of_the_server() -> None:
    heavy = ("fastapi", "mcp", "mcp_types", "prompt_toolkit", "uvicorn", "session_server.app")
    load = "import sys; from session_server.cli.program import MODULES, loaded"
    done = subprocess.run(
        [sys.executable, "-c", f"{load}; [loaded(name) for name in MODULES]; print(*sys.modules)"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    loaded = done.stdout.split()
    assert "session_server.cli.commands.answer" in loaded
    assert [name for name in heavy if name in loaded] == []


def test_every_exit_code_has_its_meaning() -> None:
    assert set(MEANINGS) == set(ExitCode)
    assert all(text[0].isupper() and text.endswith(".") for text in MEANINGS.values())


@pytest.mark.slow
def test_the_shell_completes_sessions(server: ServerProcess) -> None:
    shell = {"_SESSION_SERVER_COMPLETE": "complete_bash", "COMP_WORDS": "session-server watch dem",
             "COMP_CWORD": "2"}  # fmt: skip
    done = subprocess.run(
        [Path(sys.executable).parent / "session-server"],
        env=environment(server.url, **shell),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.split() == ["demo"]


@pytest.mark.parametrize(
    ("url", "mode"),
    [("http://127.0.0.1:9", ssl.CERT_NONE), ("https://ask.example", ssl.CERT_REQUIRED)],
)
def test_only_tls_is_held_to_its_certificates(url: str, mode: ssl.VerifyMode) -> None:
    with Reach(url, None, as_json=False).http() as http:
        context = http._transport._pool._ssl_context  # type: ignore[attr-defined]
        assert context.verify_mode == mode
        assert context.check_hostname is (mode is ssl.CERT_REQUIRED)
        assert not http.follow_redirects
