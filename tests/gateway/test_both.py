"""`answers: both`: the session and the client are asked, and the first answer wins."""

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.gateway.requests_2026 import (
    CAN_ASK,
    HELLO_2025,
    SECONDS,
    People,
    Room,
    finished,
    host,
    path_of,
    text,
    wait_for,
)
from tests.mcp import zoo
from tests.servers import ServerProcess

HOLD = 0.5
UNHURRIED = 1.1
"""Longer than it takes to count as a person's answer."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, effects: Path) -> Iterator[ServerProcess]:
    entries = {
        f"{kind}-{mode}": zoo.stdio_entry(
            kind, "--effects", str(effects / f"{kind}-{mode}"), answers=mode
        )
        for kind in ("modern", "legacy")
        for mode in ("both", "client")
    }
    folder = tmp_path_factory.mktemp("host")
    with host(folder, entries, "--mcp-hold-seconds", str(HOLD)) as running:
        yield running


@pytest.fixture(params=["modern", "legacy"])
def room(request: pytest.FixtureRequest, server: ServerProcess, people: People) -> Room:
    """At a server of either era."""
    name = request.node.name.replace("[", "-").replace("]", "")
    return Room(f"{server.url}/mcp/{request.param}-both", people, name)


def leg(room: Room, tool: str, capabilities: Mapping[str, Any] = CAN_ASK, **retry: Any) -> Any:
    """As clients do: told to try again, it tries again."""
    how = {"capabilities": capabilities, "headers": room.headers, "retry": retry}
    return finished(room.url, tool, **how)


def only(answer: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    (key,) = answer["result"]["inputRequests"]
    return key, {"requestState": answer["result"]["requestState"]}


def told(room: Room) -> str:
    """All that the session's people can read."""
    return room.people.http.get(path_of(room.session)).raise_for_status().text


def test_the_client_answers_first_and_the_session_shows_who(room: Room) -> None:
    key, state = only(leg(room, "weather"))
    assert len(room.people.questions(room.session)) == 1
    answers = {key: {"action": "accept", "content": {"city": "Oslo"}}}
    assert text(leg(room, "weather", inputResponses=answers, **state)) == "Sunny in Oslo"
    assert room.people.questions(room.session) == []
    assert "test-client answered" in told(room)


def test_people_answer_first_and_what_the_client_brings_later_changes_nothing(room: Room) -> None:
    key, state = only(leg(room, "weather"))
    room.answer({"city": "Rome"})
    answers = {key: {"action": "accept", "content": {"city": "Oslo"}}}
    assert text(leg(room, "weather", inputResponses=answers, **state)) == "Sunny in Rome"


def test_the_question_to_a_2025_client_is_cancelled_when_people_have_answered(room: Room) -> None:
    spec = room.spec(["tools/call", "weather", {}], answers=[{"action": "hang"}], era="legacy")
    with zoo.client("modern", spec) as hanging:
        room.answer({"city": "Rome"})
        report = hanging.report()
    assert zoo.text_of(report["results"][0]) == "Sunny in Rome"
    assert [one["message"] for one in report["asked"]] == ["Which city?"]


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_what_no_person_can_have_read_does_not_end_the_question(room: Room, action: str) -> None:
    key, state = only(leg(room, "weather"))
    answers = {key: {"action": action}}
    with ThreadPoolExecutor(1) as pool:
        back = pool.submit(leg, room, "weather", inputResponses=answers, **state)
        is_noted = wait_for(lambda: back.done() or "before anyone could read it" in told(room))
        if back.done():
            pytest.skip("this machine was too slow to answer faster than a person")
        assert is_noted
        room.answer({"city": "Rome"})
        assert text(back.result(SECONDS)) == "Sunny in Rome"


def test_a_refusal_that_a_person_had_time_for_counts(room: Room) -> None:
    key, state = only(leg(room, "weather"))
    time.sleep(UNHURRIED)
    leg(room, "weather", inputResponses={key: {"action": "decline"}}, **state)
    assert room.people.questions(room.session) == []
    assert "test-client declined" in told(room)


def test_an_answer_that_does_not_fit_leaves_the_question_to_people(room: Room) -> None:
    key, state = only(leg(room, "weather"))
    with ThreadPoolExecutor(1) as pool:
        answers = {key: {"action": "accept", "content": {}}}
        back = pool.submit(leg, room, "weather", inputResponses=answers, **state)
        wait_for(lambda: "does not fit" in told(room))
        room.answer({"city": "Rome"})
        assert text(back.result(SECONDS)) == "Sunny in Rome"


def test_a_client_that_cannot_be_asked_waits_for_people(room: Room) -> None:
    with ThreadPoolExecutor(1) as pool:
        back = pool.submit(leg, room, "weather", {})
        room.answer({"city": "Rome"})
        assert text(back.result(SECONDS)) == "Sunny in Rome"


def test_a_client_of_2025_that_answers_with_an_error_waits_for_people(room: Room) -> None:
    spec = room.spec(["tools/call", "weather", {}], answers=[{"action": "fail"}], era="legacy")
    with zoo.client("modern", spec) as failing:
        room.people.asked(room.session)
        wait_for(lambda: "could not be asked: there is no screen" in told(room))
        room.answer({"city": "Rome"})
        assert zoo.text_of(failing.report()["results"][0]) == "Sunny in Rome"


@pytest.mark.parametrize("mode", ["both", "client"])
@pytest.mark.parametrize("kind", ["modern", "legacy"])
def test_many_completions_at_once_have_one_effect(
    kind: str, mode: str, server: ServerProcess, people: People, effects: Path
) -> None:
    room = Room(f"{server.url}/mcp/{kind}-{mode}", people, f"rush-{kind}-{mode}")
    before = len(zoo.effects(effects / f"{kind}-{mode}", "weather"))
    key, state = only(leg(room, "weather"))
    questions = people.questions(room.session)

    def complete(number: int) -> str | None:
        if questions and number % 2:
            path = f"{path_of(room.session)}/requests/{questions[0]['id'].replace('/', '%2F')}"
            body = {"response": "accept", "content": {"city": f"City {number}"}}
            people.http.post(f"{path}/complete", json=body)
            return None
        answers = {key: {"action": "accept", "content": {"city": f"City {number}"}}}
        return text(leg(room, "weather", inputResponses=answers, **state))

    with ThreadPoolExecutor(20) as pool:
        results = {said for said in pool.map(complete, range(200)) if said is not None}
    assert len(results) == 1
    assert len(zoo.effects(effects / f"{kind}-{mode}", "weather")) == before + 1
    assert len(people.calls(room.session)) == 1


def post(room: Room, session: str | None, method: str, params: Any = None, **more: Any) -> Any:
    """A message of 2025-11-25, and the whole answer to it."""
    headers = {"Accept": "application/json, text/event-stream", **room.headers}
    if session is not None:
        headers |= {"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"}
    body = {"jsonrpc": "2.0", "method": method, "params": params or {}, **more}
    return httpx2.post(room.url, json=body, headers=headers, timeout=SECONDS)


@pytest.mark.parametrize(("mode", "ends"), [("client", True), ("both", False)])
@pytest.mark.parametrize("kind", ["modern", "legacy"])
def test_a_client_that_cancels_ends_the_call_that_it_alone_answers(
    kind: str, mode: str, ends: bool, server: ServerProcess, people: People
) -> None:
    """Where people can answer, it goes on."""
    room = Room(f"{server.url}/mcp/{kind}-{mode}", people, f"cancelled-{kind}-{mode}")
    hello = HELLO_2025["params"] | {"capabilities": {"elicitation": {}}}
    session = post(room, None, "initialize", hello, id=1).headers["Mcp-Session-Id"]
    post(room, session, "notifications/initialized")
    with ThreadPoolExecutor(1) as pool:
        weather = {"name": "weather", "arguments": {}}
        calling = pool.submit(post, room, session, "tools/call", weather, id=2)
        wait_for(lambda: people.http.get(path_of(room.session)).status_code == 200)
        wait_for(lambda: [c for c in people.calls(room.session) if c["state"] == "waiting"])
        post(room, session, "notifications/cancelled", {"requestId": 2})
        assert "cancelled" in calling.result(SECONDS).text
    if ends:
        assert room.ended()["state"] == "abandoned"
    else:
        room.answer({"city": "Rome"})
        assert room.ended()["state"] == "finished"
