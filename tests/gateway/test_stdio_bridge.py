"""`session-server mcp`: the gateway for clients that start their servers as processes."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from session_server.schemas.limits import MCP_BODY_BYTES
from tests.gateway.requests_2026 import HELLO_2025, People, host
from tests.mcp import zoo
from tests.servers import ServerProcess, sqlite_store

PROGRAM = [sys.executable, "-m", "session_server"]
SESSION = "ahp-session:/stdio"


def command(url: str, *arguments: str) -> list[str]:
    return [*PROGRAM, "mcp", *arguments, "--url", url]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    entries = {
        "zoo": zoo.stdio_entry("modern"),
        "old": zoo.stdio_entry("legacy", answers="client"),
    }
    with host(tmp_path_factory.mktemp("host"), entries) as running:
        yield running


@pytest.mark.parametrize("kind", ["modern", "typescript", "legacy"])
def test_clients_of_every_kind_reach_people_through_a_process(
    kind: zoo.Kind, server: ServerProcess
) -> None:
    spec = {
        "command": command(server.url, "zoo", "--session", kind),
        "calls": [["tools/list"], ["tools/call", "weather", {}]],
    }
    with People(server.url) as people, zoo.client(kind, spec) as started:
        people.answer(f"ahp-session:/{kind}", {"city": "Oslo"})
        report = started.report()
    assert report["version"] == ("2025-11-25" if kind == "legacy" else "2026-07-28")
    assert zoo.text_of(report["results"][1]) == "Sunny in Oslo"
    assert report["progress"]  # what it says depends on how fast people answer


@pytest.mark.parametrize("kind", ["modern", "legacy"])
def test_questions_come_back_through_the_process_to_a_client_that_answers(
    kind: zoo.Kind, server: ServerProcess
) -> None:
    spec = {
        "command": command(server.url, "old"),
        "match": {"city": "Oslo"},
        "calls": [["tools/call", "weather", {}]],
    }
    report = zoo.run_client(kind, spec)
    assert zoo.text_of(report["results"][0]) == "Sunny in Oslo"


@pytest.mark.parametrize("kind", ["modern", "legacy"])
def test_a_host_that_restarts_is_waited_for_and_the_call_goes_on(
    kind: zoo.Kind, tmp_path: Path
) -> None:
    effects = tmp_path / "effects"
    entry = {"zoo": zoo.stdio_entry("modern", "--effects", str(effects))}
    store = sqlite_store(tmp_path)
    call = ["tools/call", "weather", {}]
    with host(tmp_path, entry, store=store) as first:
        spec = {
            "command": command(first.url, "zoo", "--session", SESSION),
            "calls": [["tools/list"], call, call],
        }
        with zoo.client(kind, spec) as started:
            with People(first.url) as people:
                people.asked(SESSION)
            first.kill()
            with (
                host(tmp_path, entry, store=store, port=first.port) as second,
                People(second.url) as people,
            ):
                people.answer(SESSION, {"city": "Oslo"})
                _, lost, found = started.report()["results"]
    assert "Ask again" in lost["error"]["message"]
    assert zoo.text_of(found) == "Sunny in Oslo"
    assert len(zoo.effects(effects, "weather")) == 1


def test_the_ask_tools_are_offered_without_a_name(server: ServerProcess) -> None:
    spec = {"command": command(server.url), "calls": [["tools/list"]]}
    (listed,) = zoo.run_client("modern", spec)["results"]
    assert [tool["name"] for tool in listed["tools"]] == ["ask_questions", "notify_status"]


def test_a_wrong_option_is_reported_before_any_message(server: ServerProcess) -> None:
    def said(url: str, name: str) -> tuple[int, str, str]:
        done = subprocess.run(
            command(url, name), capture_output=True, text=True, timeout=60, check=False
        )
        return done.returncode, done.stdout, done.stderr

    code, out, reason = said(server.url, "nowhere")
    assert (code, out) == (8, "")
    assert "There is no MCP server 'nowhere'" in reason
    code, out, reason = said("http://127.0.0.1:9", "zoo")
    assert (code, out) == (6, "")
    assert "session-server serve" in reason


def test_it_ends_with_its_input_and_answers_first(server: ServerProcess) -> None:
    for said, told in (("", False), (json.dumps(HELLO_2025) + "\n", True)):
        done = subprocess.run(
            command(server.url), input=said, capture_output=True, text=True, timeout=60, check=False
        )
        assert (done.returncode, "serverInfo" in done.stdout) == (0, told), done.stderr


def test_an_invalid_line_gets_an_error_and_the_next_is_served(
    server: ServerProcess,
) -> None:
    hello = HELLO_2025 | {"id": 7}
    large = hello | {"id": 8, "params": {**hello["params"], "more": "x" * MCP_BODY_BYTES}}
    lines = ["{", "[]", '"text"', "{}", "", json.dumps(large), json.dumps(hello)]
    done = subprocess.run(
        command(server.url),
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    told = [json.loads(line) for line in done.stdout.splitlines()]
    errors = {(one.get("id"), one["error"]["code"]) for one in told if "error" in one}
    assert errors >= {(None, -32700), (None, -32600), (8, -32600)}, done.stdout
    (large_error,) = [one["error"]["message"] for one in told if one.get("id") == 8]
    assert large_error == f"The message is larger than {MCP_BODY_BYTES} bytes."
    assert [one["id"] for one in told if "result" in one] == [7]
    assert (done.returncode, done.stderr) == (0, "")
