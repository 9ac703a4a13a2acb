"""MCP clients that go away while people are asked: what people see, and what is kept for them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.requests_2026 import People, Room, host, leaving, path_of, text, wait_for
from tests.http.sessions import polling
from tests.mcp import zoo
from tests.servers import ServerProcess

LEASE = ("--mcp-lease-seconds", "0.3")
QUESTIONS = {"questions": [{"question": "Which city?", "id": "city"}]}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder: Path = tmp_path_factory.mktemp("host")
    with host(folder, {"zoo": zoo.stdio_entry("modern")}, *LEASE) as running:
        yield running


def is_marked(room: Room) -> bool:
    return any(
        "askerGoneSince" in q["request"]["_meta"] for q in room.people.questions(room.session)
    )


ASKERS: list[Any] = [("/mcp/zoo", "weather", {}), ("/mcp", "ask_questions", QUESTIONS)]


@pytest.mark.proves("design.requests.asker-left")
@pytest.mark.parametrize(("path", "tool", "arguments"), ASKERS)
def test_the_questions_of_a_client_that_left_are_marked_until_it_is_back(
    server: ServerProcess, people: People, path: str, tool: str, arguments: dict[str, Any]
) -> None:
    room = Room(f"{server.url}{path}", people, f"left-{tool}")
    leave = leaving(room, tool, arguments)
    room.people.asked(room.session)
    leave()
    wait_for(lambda: is_marked(room))
    leave = leaving(room, tool, arguments)
    wait_for(lambda: not is_marked(room))
    assert len(room.people.questions(room.session)) == 1
    leave()
    wait_for(lambda: is_marked(room))
    room.answer({"city": "Oslo"})
    assert "Oslo" in text(room.call(tool, arguments))


@pytest.mark.proves("design.requests.asker-left")
@pytest.mark.parametrize(("path", "tool", "arguments"), ASKERS)
def test_the_questions_of_a_2025_client_that_was_killed_are_marked_until_it_is_back(
    server: ServerProcess, people: People, path: str, tool: str, arguments: dict[str, Any]
) -> None:
    room = Room(f"{server.url}{path}", people, f"killed-{tool}")
    spec = room.spec(["tools/call", tool, arguments])
    killed = zoo.ZooClient("legacy", spec)
    try:
        room.people.asked(room.session)
    finally:
        killed.kill()
    wait_for(lambda: is_marked(room))
    with zoo.client("legacy", spec) as back:
        wait_for(lambda: not is_marked(room))
        room.answer({"city": "Oslo"})
        assert "Oslo" in zoo.text_of(back.report()["results"][0])


def test_the_questions_of_a_call_over_http_are_marked_unless_its_maker_polls(
    server: ServerProcess, people: People
) -> None:
    room = Room(server.url, people, "polled")
    people.http.post("/v1/sessions", json={"resource": room.session}).raise_for_status()
    wanted = {"server": "zoo", "tool": "weather", "arguments": {}, "lease": 0.3}
    path = f"{path_of(room.session)}/calls"
    made = people.http.post(path, json=wanted).raise_for_status().json()
    wait_for(lambda: is_marked(room))
    with polling(server, f"/v1/calls/{made['id']}"):
        wait_for(lambda: not is_marked(room))
    wait_for(lambda: is_marked(room))
    room.answer({"city": "Oslo"})
    result = people.http.get(f"/v1/calls/{made['id']}", params={"wait": 30}).json()
    assert text(result) == "Sunny in Oslo"
