"""Waiting for people: legs are held, handed back, picked up again, and never lost."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from tests.effort import PATIENCE
from tests.gateway.requests_2026 import (
    SECONDS,
    People,
    Room,
    answer_of,
    envelope,
    finished,
    headers_for,
    host,
    leaving,
    text,
)
from tests.mcp import zoo
from tests.servers import ServerProcess, sqlite_store

HOLD = 0.6


@pytest.fixture(scope="module")
def effects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("zoo") / "effects"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, effects: Path) -> Iterator[ServerProcess]:
    entry = zoo.stdio_entry("modern", "--effects", str(effects))
    folder = tmp_path_factory.mktemp("host")
    with host(folder, {"zoo": entry}, "--mcp-hold-seconds", str(HOLD)) as running:
        yield running


@pytest.fixture
def room(server: ServerProcess, request: pytest.FixtureRequest) -> Iterator[Room]:
    with People(server.url) as people:
        yield Room(f"{server.url}/mcp/zoo", people, request.node.name)


@pytest.mark.proves("mcp.gateway.held-legs")
def test_a_leg_is_held_and_then_handed_back_with_a_state_that_picks_the_call_up(
    room: Room,
) -> None:
    began = time.monotonic()
    first = room.call("weather")["result"]
    assert time.monotonic() - began >= HOLD
    assert first["resultType"] == "input_required"
    assert "inputRequests" not in first
    second = room.call("weather", retry={"requestState": first["requestState"]})["result"]
    assert second["resultType"] == "input_required"
    room.answer({"city": "Oslo"})
    last = room.call("weather", retry={"requestState": second["requestState"]})
    assert text(last) == "Sunny in Oslo"


def test_a_state_is_worth_nothing_when_it_or_the_request_was_changed(room: Room) -> None:
    state = room.call("weather")["result"]["requestState"]
    forged = room.call("weather", retry={"requestState": state + "x"})["error"]
    other = room.call("survey", retry={"requestState": state})["error"]
    more = room.call("weather", {"a": 1}, retry={"requestState": state})["error"]
    for error in (forged, other, more):
        assert error["code"] == -32602
        assert error["data"] == {"reason": "invalid_request_state"}


@pytest.mark.proves("mcp.gateway.disconnect")
def test_a_client_that_disconnects_cancels_nothing_and_finds_its_result(
    room: Room, effects: Path
) -> None:
    leave = leaving(room, "forecast", {})
    room.people.asked(room.session)
    leave()
    room.answer({"city": "Oslo"})
    assert room.ended()["state"] == "finished"
    assert text(room.call("forecast", {})) == "Rain in Oslo"
    assert len(zoo.effects(effects, "forecast")) == 1


@pytest.mark.proves("mcp.gateway.attach")
def test_the_same_request_joins_the_call_whose_client_is_gone(room: Room, effects: Path) -> None:
    web = {"service": "web"}
    for _ in range(3):
        leave = leaving(room, "deploy", web)
        (question,) = room.people.asked(room.session)
        leave()
    assert len(room.people.calls(room.session)) == 1
    room.people.complete(room.session, question, {"environment": "staging"})
    assert text(finished(room.url, "deploy", web, headers=room.headers)) == "web is in staging"
    assert len(room.people.calls(room.session)) == 1
    assert len(zoo.effects(effects, "deploy")) == 1


@pytest.mark.proves("mcp.gateway.live-requests")
def test_identical_requests_of_connected_clients_are_different_calls(
    room: Room, effects: Path
) -> None:
    before = len(zoo.effects(effects, "busy"))
    with ThreadPoolExecutor(50) as pool:
        busy = (room.url, "busy", {"times": 0})
        calls = [pool.submit(finished, *busy, headers=room.headers) for _ in range(50)]
        assert {text(call.result(SECONDS)) for call in calls} == {"ready after 0"}
    assert len(zoo.effects(effects, "busy")) == before + 50


@pytest.mark.proves("mcp.gateway.live-requests")
def test_clients_that_come_back_with_their_states_keep_their_own_calls(
    room: Room, effects: Path
) -> None:
    before = len(zoo.effects(effects, "survey"))
    with ThreadPoolExecutor(10) as pool:
        calls = [pool.submit(finished, room.url, "survey", headers=room.headers) for _ in range(10)]
        for question in room.people.asked(room.session, 10):
            room.people.complete(room.session, question, {"city": "Oslo"})
        for call in calls:
            assert "result" in call.result(SECONDS)
    assert len(zoo.effects(effects, "survey")) == before + 10


@pytest.mark.proves("mcp.gateway.disconnect")
def test_a_client_that_leaves_as_the_answer_comes_finds_it_later_by_id_and_by_asking_again(
    room: Room, effects: Path
) -> None:
    for number in range(6):
        leave = leaving(room, "weather", {})
        (question,) = room.people.asked(room.session)
        leave()  # and at once
        room.people.complete(room.session, question, {"city": f"City {number}"})
        call_id = room.ended()["id"]
        if number % 2:
            kept = room.call("weather")
        else:
            kept = room.people.http.get(f"/v1/calls/{call_id}").raise_for_status().json()
        assert text(kept) == f"Sunny in City {number}"
    assert len(room.people.calls(room.session)) == 6
    assert {f"City {number}" for number in range(6)} <= {
        effect["city"] for effect in zoo.effects(effects, "weather")
    }


def test_the_same_request_right_after_its_result_is_a_new_call(room: Room) -> None:
    params = {"name": "echo", "arguments": {"text": "again"}}
    headers = headers_for("tools/call", params) | room.headers
    with httpx2.Client(headers=headers, timeout=PATIENCE) as client:
        for _ in range(30):
            answer = client.post(room.url, json=envelope("tools/call", params))
            assert text(answer_of(answer)) == "again"
        assert len(room.people.calls(room.session)) == 30


def test_waiting_is_reported_as_progress(room: Room) -> None:
    params = {"name": "weather", "arguments": {}, "_meta": {"progressToken": "p"}}
    response = httpx2.post(
        room.url,
        json=envelope("tools/call", params),
        headers=headers_for("tools/call", params) | room.headers,
        timeout=PATIENCE,
    )
    assert response.headers["content-type"].startswith("text/event-stream")
    assert "notifications/progress" in response.text
    host, name = room.url.partition("/mcp")[0], room.session.partition(":/")[2]
    page = f"{host}/#/s/{name}"
    told = f"Waiting for people to answer a question in {room.session}, at {page}"
    assert told in response.text


def test_a_call_outlives_the_host_for_a_client_that_has_its_state(tmp_path: Path) -> None:
    effects = tmp_path / "effects"
    entry = zoo.stdio_entry("modern", "--effects", str(effects))
    store, hold = sqlite_store(tmp_path), ("--mcp-hold-seconds", "0.3")
    with host(tmp_path, {"zoo": entry}, *hold, store=store) as first:
        with People(first.url) as people:
            before = Room(f"{first.url}/mcp/zoo", people, "kept")
            state = before.call("weather")["result"]["requestState"]
        first.kill()
    with host(tmp_path, {"zoo": entry}, *hold, store=store) as second, People(second.url) as people:
        room = Room(f"{second.url}/mcp/zoo", people, "kept")
        retry = {"requestState": state}
        assert "requestState" in room.call("weather", retry=retry)["result"]
        room.answer({"city": "Oslo"})
        assert room.ended()["state"] == "finished"
        assert text(room.call("weather", retry=retry)) == "Sunny in Oslo"
    assert len(zoo.effects(effects, "weather")) == 1


def test_a_host_that_stops_hands_back_what_it_holds_at_once(tmp_path: Path) -> None:
    with (
        host(tmp_path, {"zoo": zoo.stdio_entry("modern")}) as running,
        People(running.url) as people,
        ThreadPoolExecutor(1) as pool,
    ):
        room = Room(f"{running.url}/mcp/zoo", people, "stopping")
        held = pool.submit(room.call, "weather")
        with zoo.client("legacy", room.spec(["tools/call", "survey", {}])) as old:
            people.asked(room.session, 2)
            running.stop()
            assert held.result(30)["result"]["requestState"]
            (told,) = old.report()["results"]
    assert "Ask again" in told["error"]["message"]


def test_a_result_is_kept_for_a_client_of_2025_that_was_killed(room: Room, effects: Path) -> None:
    spec = room.spec(["tools/call", "pair", {}])
    gone = zoo.ZooClient("legacy", spec)
    try:
        room.people.asked(room.session, 2)
    finally:
        gone.kill()
    for question in room.people.asked(room.session, 2):
        values = {"name": "Ada", "age": 36}
        room.people.complete(room.session, question, values)
    assert room.ended()["state"] == "finished"
    report = zoo.run_client("legacy", spec)
    assert zoo.text_of(report["results"][0]) == "Ada is 36"
    assert len(zoo.effects(effects, "pair")) == 1


@pytest.mark.parametrize("answers", ["session", "client"])
def test_a_call_that_ended_with_an_error_is_a_new_call_when_it_is_made_again(
    answers: str, tmp_path: Path
) -> None:
    effects = tmp_path / "effects"
    entry = zoo.stdio_entry("dual", "--effects", str(effects), answers=answers)
    with (
        host(tmp_path, {"zoo": entry | {"protocol": "2026-07-28"}}) as running,
        People(running.url) as people,
    ):
        room = Room(f"{running.url}/mcp/zoo", people, "errors")
        for count in (1, 2, 3):
            assert "no back-channel" in room.call("book")["error"]["message"]
            assert len(zoo.effects(effects, "begun")) == count
