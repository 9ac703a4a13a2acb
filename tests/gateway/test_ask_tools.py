"""The ask tools at `/mcp`: any agent's questions, and every way in which they can end."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from session_server.gateway.request_state import MOST_LEGS
from tests.gateway.requests_2026 import (
    SECONDS,
    People,
    Room,
    finished,
    host,
    leaving,
    path_of,
    rpc,
    text,
    wait_for,
)
from tests.mcp import zoo
from tests.servers import ServerProcess, sqlite_store

HOLD = 0.5
CITY = {"question": "Which city?", "id": "city"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("host")
    with host(folder, {}, "--mcp-hold-seconds", str(HOLD)) as running:
        yield running


@pytest.fixture
def room(server: ServerProcess, request: pytest.FixtureRequest) -> Iterator[Room]:
    with People(server.url) as people:
        yield Room(f"{server.url}/mcp", people, request.node.name)


def ask(room: Room, *questions: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Asks until it is answered, as a client of 2026 does."""
    arguments = {"questions": list(questions), **more}
    answer = finished(room.url, "ask_questions", arguments, headers=room.headers)
    return dict(answer["result"])


def ended(room: Room, *questions: dict[str, Any], **how: Any) -> dict[str, Any]:
    """The structured result, once people have answered like this."""
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(ask, room, *questions)
        room.answer(**how)
        return dict(asking.result(20)["structuredContent"])


def test_the_tools_are_described_with_schemas_that_stand_alone(room: Room) -> None:
    listed = room.rpc("tools/list", {})["result"]["tools"]
    assert [tool["name"] for tool in listed] == ["ask_questions", "notify_status"]
    for tool in listed:
        for schema in (tool["inputSchema"], tool["outputSchema"]):
            assert schema["type"] == "object"
            assert "$ref" not in str(schema)
            jsonschema.Draft202012Validator.check_schema(schema)


def test_typed_questions_come_back_as_typed_answers(room: Room) -> None:
    questions: list[dict[str, Any]] = [
        CITY,
        {"question": "How many nights?", "id": "nights", "kind": "integer", "min": 1},
        {"question": "Budget?", "id": "budget", "kind": "number"},
        {"question": "Refundable?", "id": "refundable", "kind": "boolean"},
        {
            "question": "Meal?",
            "id": "meal",
            "options": ["breakfast", {"label": "None", "id": "no"}],
        },
        {
            "question": "Which days?",
            "id": "days",
            "kind": "multi-select",
            "options": ["Mon", "Tue"],
            "allowFreeform": True,
        },
        {"question": "Anything else?", "id": "else", "required": False},
    ]
    content = {
        "city": "Oslo",
        "nights": 2,
        "budget": 99.5,
        "refundable": True,
        "meal": "no",
        "days": ["Tue", "a Friday"],
    }
    result = ended(room, *questions, content=content)
    assert result["outcome"] == "accepted"
    assert result["answers"] == content
    assert result["session"] == room.session
    assert (result["by"], result["via"]) == ("local", "person")


@pytest.mark.parametrize(
    ("response", "outcome"), [("decline", "declined"), ("cancel", "cancelled")]
)
def test_declined_and_cancelled_are_different_outcomes(
    room: Room, response: str, outcome: str
) -> None:
    result = ended(room, CITY, response=response)
    assert (result["outcome"], result["answers"], result["via"]) == (outcome, {}, "person")


def test_a_timeout_is_not_reported_as_declined(room: Room) -> None:
    result = ask(room, CITY, deadlineSeconds=0.2)
    assert result["structuredContent"]["outcome"] == "timedOut"
    assert result["structuredContent"]["via"] == "timeout"
    assert "timed out" in result["content"][0]["text"]


def test_a_deadline_may_bring_the_defaults(room: Room) -> None:
    city = CITY | {"default": "Oslo", "required": False}
    result = ask(room, city, deadlineSeconds=0.2, onDeadline="defaults")["structuredContent"]
    assert (result["outcome"], result["answers"]) == ("accepted", {"city": "Oslo"})
    assert result["via"] == "default"


def test_withdrawn_is_an_outcome_of_its_own(room: Room) -> None:
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(ask, room, CITY)
        (question,) = room.people.asked(room.session)
        path = f"{path_of(room.session)}/requests/{question['id']}"
        room.people.http.delete(path).raise_for_status()
        result = asking.result(20)["structuredContent"]
    assert result["outcome"] == "withdrawn"


def test_the_same_question_is_asked_once_for_each_connected_agent(room: Room) -> None:
    with ThreadPoolExecutor(5) as pool:
        asking = [pool.submit(ask, room, CITY) for _ in range(5)]
        for number, question in enumerate(room.people.asked(room.session, 5)):
            room.people.complete(room.session, question, {"city": f"City {number}"})
        results = [one.result(SECONDS)["structuredContent"] for one in asking]
    assert len({result["requestId"] for result in results}) == 5
    assert len({result["answers"]["city"] for result in results}) == 5


def test_an_agent_whose_client_gave_up_after_the_last_leg_takes_its_question_up(room: Room) -> None:
    """Clients give up after ten legs, and their agents try again."""
    arguments = {"questions": [CITY]}
    retry: dict[str, Any] = {}
    for _ in range(MOST_LEGS):
        result = room.call("ask_questions", arguments, retry=retry)["result"]
        retry = {"requestState": result["requestState"]}
    room.call("ask_questions", arguments)
    assert len(room.people.questions(room.session)) == 1


def test_an_agent_that_leaves_while_it_waits_asks_again_and_is_where_it_was(room: Room) -> None:
    """Whether it leaves before the answer or in the same moment, and is then asked anew."""
    arguments = {"questions": [CITY]}
    for city in ("Oslo", "Rome", "Cairo"):
        leaving(room, "ask_questions", arguments)()
        leave = leaving(room, "ask_questions", arguments)
        (question,) = room.people.asked(room.session)
        leave()
        room.people.complete(room.session, question, {"city": city})
        kept = ask(room, CITY)["structuredContent"]
        assert (kept["answers"], kept["requestId"]) == ({"city": city}, question["id"])
        assert room.people.questions(room.session) == []


def test_wrong_arguments_are_refused_with_the_kinds_and_a_correct_example(room: Room) -> None:
    mistakes = [
        ({}, "questions"),
        ({"questions": []}, "questions"),
        ({"questions": [CITY | {"kind": "colour"}]}, "kind"),
        ({"questions": [CITY | {"choices": ["Oslo", "Rome"]}]}, "unknown field `choices`"),
        ({"questions": [CITY | {"kind": "integer", "default": "x"}]}, "default"),
        ({"questions": [CITY, CITY]}, "same id"),
        ({"questions": [CITY], "onDeadline": "cancel"}, "deadlineSeconds"),
    ]
    for arguments, reason in mistakes:
        result = room.call("ask_questions", arguments)["result"]
        assert result["isError"], arguments
        told = result["content"][0]["text"]
        assert reason in told
        assert "text, number, integer, boolean, single-select, multi-select" in told
        example = json.loads(told[told.index("{") :])
    asking = room.call("ask_questions", example)
    assert asking["result"]["resultType"] == "input_required", "the example can be asked"
    (question,) = room.people.questions(room.session)
    assert question["request"]["message"] == "Release 1.4"


def test_a_status_with_wrong_arguments_is_refused(room: Room) -> None:
    result = room.call("notify_status", {"text": "here"})["result"]
    assert result["isError"]
    assert "ask" not in result["content"][0]["text"]


def title_of(people: People, session: str) -> str:
    sessions = people.http.get("/v1/sessions").json()["items"]
    return str(next(s["title"] for s in sessions if s["resource"] == session))


def test_the_title_of_an_agents_session_says_who_asks_what(server: ServerProcess) -> None:
    def ask_in_own_session(question: str) -> str:
        params = {"name": "ask_questions", "arguments": {"questions": [{"question": question}]}}
        rpc(f"{server.url}/mcp", "tools/call", params, client="planner")
        return next(s for s in people.sessions() if s not in before)

    with People(server.url) as people:
        before = set(people.sessions())
        status = {"name": "notify_status", "arguments": {"status": "Reading"}}
        rpc(f"{server.url}/mcp", "tools/call", status, client="planner")
        session = next(s for s in people.sessions() if s not in before)
        assert title_of(people, session) == "planner"
        assert ask_in_own_session("Which city?") == session
        assert title_of(people, session) == "planner: Which city?"
        ask_in_own_session("Which hotel?")
        assert title_of(people, session) == "planner: Which hotel?"


def test_a_title_that_a_person_has_set_is_kept(room: Room) -> None:
    made = {"resource": room.session, "title": "Our trip"}
    room.people.http.post("/v1/sessions", json=made).raise_for_status()
    room.call("ask_questions", {"questions": [CITY]})
    assert title_of(room.people, room.session) == "Our trip"


def test_a_status_is_shown_and_taken_away_again(room: Room) -> None:
    def activity() -> str | None:
        sessions = room.people.http.get("/v1/sessions").json()["items"]
        return next(s for s in sessions if s["resource"] == room.session).get("activity")

    assert room.session in text(room.call("notify_status", {"status": "Reading the docs"}))
    assert activity() == "Reading the docs"
    room.call("notify_status", {"status": ""})
    assert activity() is None


def test_an_unknown_tool_is_a_protocol_error(room: Room) -> None:
    assert room.call("order_pizza")["error"]["code"] == -32602


@pytest.mark.parametrize("kind", ["modern", "typescript", "legacy"])
def test_agents_of_every_kind_can_ask(kind: zoo.Kind, room: Room) -> None:
    call = ["tools/call", "ask_questions", {"questions": [CITY]}]
    with zoo.client(kind, room.spec(["tools/list"], call)) as started:
        room.answer({"city": "Oslo"})
        _, result = started.report()["results"]
    assert result["structuredContent"]["answers"] == {"city": "Oslo"}


def test_an_answer_outlives_the_host_for_an_agent_that_has_its_state(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path / 'sessions.db'}"
    arguments = {"questions": [CITY]}
    with host(tmp_path, {}, "--mcp-hold-seconds", "0.1", store=store) as first:
        with People(first.url) as people:
            room = Room(f"{first.url}/mcp", people, "kept")
            state = room.call("ask_questions", arguments)["result"]["requestState"]
        first.kill()
    with host(tmp_path, {}, store=store) as second, People(second.url) as people:
        room = Room(f"{second.url}/mcp", people, "kept")
        room.answer({"city": "Oslo"})
        done = room.call("ask_questions", arguments, retry={"requestState": state})
    assert done["result"]["structuredContent"]["answers"] == {"city": "Oslo"}


def test_an_answer_that_came_while_its_agent_was_away_outlives_the_host(tmp_path: Path) -> None:
    store = sqlite_store(tmp_path)
    with host(tmp_path, {}, store=store) as first:
        with People(first.url) as people:
            room = Room(f"{first.url}/mcp", people, "kept")
            leave = leaving(room, "ask_questions", {"questions": [CITY]})
            (question,) = people.asked(room.session)
            leave()
            people.complete(room.session, question, {"city": "Oslo"})
        first.kill()
    with host(tmp_path, {}, store=store) as second:
        with People(second.url) as people:
            room = Room(f"{second.url}/mcp", people, "kept")
            kept = ask(room, CITY)["structuredContent"]
            assert (kept["answers"], kept["requestId"]) == ({"city": "Oslo"}, question["id"])
            leave = leaving(room, "ask_questions", {"questions": [CITY]})
            (anew,) = people.asked(room.session)  # what was fetched is over
            leave()
            people.complete(room.session, anew, {"city": "Rome"})
        second.kill()
    with host(tmp_path, {}, store=store) as third, People(third.url) as people:
        room = Room(f"{third.url}/mcp", people, "kept")
        kept = ask(room, CITY)["structuredContent"]
        assert (kept["answers"], kept["requestId"]) == ({"city": "Rome"}, anew["id"])
        leave = leaving(room, "ask_questions", {"questions": [CITY]})
        (last,) = people.asked(room.session)
        leave()
    assert len({question["id"], anew["id"], last["id"]}) == 3


def test_without_a_session_named_each_client_has_one_of_its_own(server: ServerProcess) -> None:
    arguments = {"status": "here"}
    with People(server.url) as people:
        before = set(people.sessions())
        for client in ("ada", "bob", "ada"):
            params = {"name": "notify_status", "arguments": arguments}
            rpc(f"{server.url}/mcp", "tools/call", params, client=client)
        made = set(wait_for(people.sessions)) - before
    assert len(made) == 2
    assert all(session.startswith("ahp-session:/mcp-ask-") for session in made)
