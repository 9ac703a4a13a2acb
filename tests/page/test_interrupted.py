"""Hosts that die, networks that go, pages that are loaded again: nothing lost, nothing doubled."""

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Error, expect

from tests.page.browser import Person
from tests.page.conftest import SCENE_HOST
from tests.page.looking import arrive, field, question
from tests.page.stage import Stage, http, many_of, text, whole
from tests.servers import ServerProcess, sqlite_store

People = Callable[..., Person]
pytestmark = pytest.mark.slow

OFFLINE_MS = 30_000
ROUNDS = 9
"""How often everything is edited in that time: each food is chosen, dropped and chosen again."""
FOOD = ("Bread", "Soup", "Salad")
WAITING = re.compile(r"offline, \d+ waiting")


def test_the_host_is_killed_while_two_are_typing(person: People, tmp_path: Path) -> None:
    store = sqlite_store(tmp_path)
    server = ServerProcess(store, command=SCENE_HOST)
    stage = Stage(server)
    uri = stage.session("killed")
    stage.begins(uri)
    stage.asks(uri, text("plan"), text("name"), many_of("food", "Bread", "Soup"))
    ana, ben = arrive([person("Ana", server.url), person("Ben", server.url)], "killed")
    field(ana, "plan").press_sequentially("before")
    expect(field(ben, "plan")).to_have_value("before")

    server.kill()
    field(ana, "plan").press_sequentially(" and after")
    field(ben, "name").press_sequentially("written to nobody")
    question(ben, "food").get_by_label("Soup").check()
    expect(ben.locator(".connection-bar")).to_be_visible()
    expect(ben.locator(".connection-words")).to_contain_text(WAITING)
    server = ServerProcess(store, port=server.port, command=SCENE_HOST)
    try:
        for page in (ana, ben):
            expect(page.locator(".connection-words")).to_have_text("live")
            expect(page.locator(".connection-bar")).to_be_hidden()
            expect(field(page, "plan")).to_have_value("before and after")
            expect(field(page, "name")).to_have_value("written to nobody")
            expect(question(page, "food").get_by_label("Soup")).to_be_checked()
        record = http("GET", f"{server.url}/v1/sessions/killed/requests/r")
        answers = record.get("request", record)["answers"]
        assert answers["plan"]["value"]["value"] == "before and after"
        assert answers["food"]["value"]["value"] == ["soup"]
    finally:
        server.kill()


def test_half_a_minute_of_edits_made_offline_arrives_and_a_refused_one_is_shown_where_it_belongs(
    person: People, stage: Stage
) -> None:
    uri = stage.session("offline")
    stage.begins(uri)
    pattern = {"_meta": {"pattern": "^([A-Z]{3})+$"}}  # one that only the host checks
    stage.asks(uri, text("plan"), text("code", **pattern), whole("size"), name="first")
    stage.asks(uri, text("note"), many_of("food", *FOOD), name="second")
    stage.asks(uri, text("story"), many_of("drink", "Tea", "Milk"), name="third")
    ana, ben = (person(name).goes_to("#/s/offline") for name in ("Ana", "Ben"))
    for page in (ana, ben):
        expect(page.locator(".request")).to_have_count(3)
        page.context.set_offline(offline=True)

    began = time.monotonic()
    field(ben, "story").fill("written before the page went")
    question(ben, "drink").get_by_label("Tea").check()
    expect(ben.locator(".connection-words")).to_have_text(WAITING)
    with pytest.raises(Error, match="ERR_INTERNET_DISCONNECTED"):
        ben.reload()
    field(ana, "code").fill("no code")
    question(ana, "code").get_by_role("button", name="Mark done").click()
    for number in range(ROUNDS):
        field(ana, "plan").fill(f"plan {number}")
        field(ana, "size").fill(str(number))
        field(ana, "note").press_sequentially(f"{number} ")
        question(ana, "food").get_by_label(FOOD[number % len(FOOD)]).click()
        due = began * 1000 + OFFLINE_MS * (number + 1) / ROUNDS
        ana.wait_for_timeout(max(1, due - time.monotonic() * 1000))
    expect(ana.locator(".connection-words")).to_have_text(WAITING)
    assert (time.monotonic() - began) * 1000 >= OFFLINE_MS
    # A browser may load a page that it could not get by itself, so Ben's may be there already.
    for name in ("first", "second"):
        assert answers_of(stage, "offline", name) == {}
    for page in (ana, ben):
        page.context.set_offline(offline=False)
    ben.goto(f"{stage.url}/#/s/offline")

    for page in (ana, ben):
        expect(field(page, "plan")).to_have_value(f"plan {ROUNDS - 1}")
        expect(field(page, "size")).to_have_value(str(ROUNDS - 1))
        expect(field(page, "note")).to_have_value("".join(f"{n} " for n in range(ROUNDS)))
        for label in FOOD:
            expect(question(page, "food").get_by_label(label)).to_be_checked()
        expect(field(page, "story")).to_have_value("written before the page went")
        expect(question(page, "drink").get_by_label("Tea")).to_be_checked()
        expect(page.locator(".connection-words")).to_have_text("live")
    expect(question(ana, "code").locator(".problem")).to_contain_text("match the pattern")
    expect(field(ana, "code")).to_have_value("no code")
    assert "code" not in answers_of(stage, "offline", "first")
    authors = [
        answer["_meta"]["by"].get("name")
        for name in ("first", "second", "third")
        for answer in answers_of(stage, "offline", name).values()
    ]
    assert sorted(authors) == ["Ana"] * 4 + ["Ben"] * 2


def answers_of(stage: Stage, session: str, request: str) -> dict[str, Any]:
    record = http("GET", f"{stage.url}/v1/sessions/{session}/requests/{request}")
    answers: dict[str, Any] = record.get("request", record).get("answers", {})
    return answers


def test_a_reload_loses_nothing(person: People, stage: Stage) -> None:
    uri = stage.session("reload", provider="demo")
    stage.begins(uri)
    (ana,) = arrive([person("Ana")], "reload")
    field(ana, "name").press_sequentially("half a sen")
    ana.locator(".composer-text").fill("for later")
    ana.reload()
    expect(field(ana, "name")).to_have_value("half a sen")
    expect(ana.locator(".composer-text")).to_have_value("for later")


def test_what_was_typed_offline_survives_a_reload(person: People, tmp_path: Path) -> None:
    store = sqlite_store(tmp_path)
    server = ServerProcess(store, command=SCENE_HOST)
    stage = Stage(server)
    uri = stage.session("gone")
    stage.begins(uri)
    stage.asks(uri, text("plan"))
    (ana,) = arrive([person("Ana", server.url)], "gone")
    server.kill()
    field(ana, "plan").press_sequentially("nobody heard this")
    expect(ana.locator(".connection-words")).to_contain_text(WAITING)
    server = ServerProcess(store, port=server.port, command=SCENE_HOST)
    try:
        ana.reload()
        expect(field(ana, "plan")).to_have_value("nobody heard this")
        expect(question(ana, "plan")).to_contain_text("Draft saved")
    finally:
        server.kill()


def test_a_host_that_stops_wanting_a_token_is_entered_without_by_itself(
    person: People, tmp_path: Path
) -> None:
    """The page's label and its token are those of somebody whom the host no longer knows."""
    store = sqlite_store(tmp_path)
    server = ServerProcess(store)
    http("POST", f"{server.url}/v1/sessions", {"resource": "ahp-session:/terms", "title": "Terms"})
    asked = {"questions": [text("plan")]}
    request = http("POST", f"{server.url}/v1/sessions/terms/requests", asked)["id"]
    server.kill()
    token = "a-token-that-nobody-guesses"
    server = ServerProcess(store, "--connection-token", token, port=server.port)
    ana = person("Ana", server.url).goes_to(f"?tkn={token}#/s/terms")
    expect(ana.locator(".request")).to_be_visible()
    server.kill()
    field(ana, "plan").press_sequentially("nobody heard this")
    expect(ana.locator(".connection-words")).to_contain_text("waiting")
    server = ServerProcess(store, port=server.port)
    try:
        expect(ana.locator(".connection-words")).to_have_text("live")
        expect(question(ana, "plan")).to_contain_text("Draft saved")
        ana.reload()
        expect(field(ana, "plan")).to_have_value("nobody heard this")
        record = http("GET", f"{server.url}/v1/sessions/terms/requests/{request}")
        answer = record.get("request", record)["answers"]["plan"]
        assert answer["value"]["value"] == "nobody heard this"
        assert answer["_meta"]["by"] == {"id": "local", "name": "Ana"}
    finally:
        server.kill()


@pytest.mark.parametrize("wrong", [-300, 300], ids=["slow", "fast"])
def test_time_runs_out_by_the_hosts_clock(person: People, stage: Stage, wrong: int) -> None:
    name = f"clock{wrong}"
    uri = stage.session(name)
    stage.begins(uri)
    asked = {"questions": [text("plan")], "expiresIn": 1000, "onExpiry": "cancel"}
    http("POST", f"{stage.url}/v1/sessions/{name}/requests", asked)
    ana = person("Ana")
    ana.page.clock.install(time=time.time() + wrong)
    page = ana.goes_to(f"#/s/{name}")
    expect(page.locator(".countdown")).to_contain_text(re.compile(r"in 16:\d\d"))
