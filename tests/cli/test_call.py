"""`call`: a tool of an MCP server from a shell, finished by people elsewhere."""

from collections.abc import Iterator

import httpx2
import pytest

from session_server.cli.commands.call import arguments_of, result_lines
from session_server.cli.failures import ExitCode, UsageError
from tests.cli.shells import Shell, requests_in
from tests.mcp import zoo
from tests.servers import ServerProcess, serving

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    config = zoo.mcp_json(tmp_path_factory.mktemp("call"), {"zoo": zoo.stdio_entry("modern")})
    with serving("memory:", "--mcp-config", str(config)) as server:
        yield server


def test_a_call_is_finished_by_people_and_its_text_is_printed(shell: Shell) -> None:
    with shell.running("call", "zoo", "weather", "--wait", "60s") as calling:
        calling.hear("It asks a question in call-zoo.", on="err")
        assert shell("answer", "call-zoo", "--set", "city=Oslo").code == ExitCode.OK
        assert calling.end()[:2] == (ExitCode.OK, "Sunny in Oslo\n")


def test_arguments_are_text_or_json(shell: Shell) -> None:
    assert shell("call", "zoo", "echo", "--arg", "text=a=b").out == "a=b\n"
    assert shell("call", "zoo", "count", "-a", "steps:=2").out == "counted to 2\n"
    assert arguments_of(["a=1", "b:=[1, true]", "c:=null"]) == {"a": "1", "b": [1, True], "c": None}
    for wrong in ("text", "=x", ":=1", "n:=x"):
        with pytest.raises(UsageError):
            arguments_of([wrong])


def test_a_program_gets_every_character_of_a_result(shell: Shell) -> None:
    odd = "a\tb  :smile: [bold]\x07\x1b[31m  "
    assert shell("call", "zoo", "echo", "--arg", f"text={odd}").out == f"{odd}\n"
    long = "ž" * 60_000
    arguments = ("--arg", f"text={long}")
    assert shell("call", "zoo", "echo", *arguments).out == f"{long}\n"
    assert result_lines({"content": [{"type": "text", "text": long * 3}]}) == [long * 3]


def test_prompts_and_resources(shell: Shell) -> None:
    assert shell("call", "zoo", "greeting", "--prompt", "-a", "name=Ana").out == "Greet Ana.\n"
    assert shell("call", "zoo", "zoo://sign", "--resource").out == "Do not feed.\n"
    both = shell("call", "zoo", "x", "--prompt", "--resource")
    assert both.code == ExitCode.USAGE
    assert shell("call", "zoo", "zoo://sign", "--resource", "-a", "a=b").code == ExitCode.USAGE


def test_errors_of_the_tool_and_of_the_call_have_an_exit_code(shell: Shell) -> None:
    failed = shell("call", "zoo", "fail", "--arg", "words=no way")
    assert (failed.code, failed.out) == (ExitCode.FAILED, "")
    assert "no way" in failed.err
    task = shell("call", "zoo", "task")
    assert task.code == ExitCode.FAILED
    assert "io.modelcontextprotocol/tasks" in task.err
    nowhere = shell("call", "nowhere", "echo")
    assert nowhere.code == ExitCode.USAGE
    assert "Configured are: zoo" in nowhere.err
    assert shell("watch", "call-nowhere").code == ExitCode.NOT_FOUND  # nothing is left behind


def test_who_does_not_wait_comes_back_for_the_result(shell: Shell) -> None:
    there = ("call", "zoo", "weather", "--session", "back")
    call_id = shell(*there, "--no-wait").out.strip()
    late = shell(*there, "--wait", "1s", "--json")
    assert late.code == ExitCode.TIMED_OUT
    assert late.json["id"] == call_id
    how_to = f"session-server answer back --url {shell.url}, or at {shell.url}/#/s/back"
    assert f"It asks a question in back. Answer with: {how_to}" in late.err
    assert shell("answer", "back", "--set", "city=Bergen").code == ExitCode.OK
    done = shell(*there, "--json")
    assert (done.code, done.json["id"]) == (0, call_id)
    assert zoo.text_of(done.json["result"]) == "Sunny in Bergen"
    started = shell("call", "zoo", "weather", "--session", "back", "--no-wait", "--json")
    assert started.json["id"] != call_id


def test_a_call_that_is_given_up_elsewhere_is_cancelled(
    server: ServerProcess, shell: Shell
) -> None:
    call = ("call", "zoo", "weather", "--session", "given-up", "--wait", "60s")
    with shell.running(*call) as calling:
        calling.hear("It asks a question", on="err")
        (asked,) = requests_in(server, "given-up")
        call_id = asked["request"]["_meta"]["call"]
        assert httpx2.delete(f"{server.url}/v1/calls/{call_id}").is_success
        assert calling.end().code == ExitCode.CANCELLED


def test_what_is_no_text_is_named() -> None:
    image = {"type": "image", "data": "aaaa", "mimeType": "image/png"}
    link = {"type": "resource_link", "uri": "file:///x"}
    assert result_lines({"content": [image, link]}) == ["(image/png; see --json)", "file:///x"]
