"""Killed hosts, lost networks, reloads: nothing is lost and nothing is doubled."""

import re
import time
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Error, expect

from tests.page.browser import People
from tests.page.conftest import SCENE_HOST
from tests.page.locators import arrive, field, question
from tests.page.stage import Stage, http, many_of, text, whole
from tests.servers import ServerProcess, sqlite_store

pytestmark = pytest.mark.slow

ROUNDS = 9
"""How often everything is edited: each food is chosen, dropped and chosen again."""
FOOD = ("Bread", "Soup", "Salad")
WAITING = re.compile(r"offline, \d+ waiting")


def test_drafts_survive_a_killed_host(person: People, tmp_path: Path) -> None:
    store = sqlite_store(tmp_path)
    server = ServerProcess(store, command=SCENE_HOST)
    stage = Stage(server)
    stage.form("killed", text("plan"), text("name"), many_of("food", "Bread", "Soup"))
    ana, ben = arrive([person("Ana", server.url), person("Ben", server.url)], "killed")
    field(ana, "plan").press_sequentially("before")
    expect(field(ben, "plan")).to_have_value("before")

    server.kill()
    field(ana, "plan").press_sequentially(" and after")
    field(ben, "name").press_sequentially("written to nobody")
    question(ben, "food").get_by_label("Soup").check()
    expect(ben.locator(".connection-bar")).to_be_visible()
    expect(ben.locator(".connection-text")).to_contain_text(WAITING)
    server = ServerProcess(store, port=server.port, command=SCENE_HOST)
    try:
        for page in (ana, ben):
            expect(page.locator(".connection-text")).to_have_text("live")
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


def test_offline_edits_are_sent_and_a_refusal_is_shown_at_its_field(
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

    field(ben, "story").fill("written before the page went")
    question(ben, "drink").get_by_label("Tea").check()
    expect(ben.locator(".connection-text")).to_have_text(WAITING)
    with pytest.raises(Error, match="ERR_INTERNET_DISCONNECTED"):
        ben.reload()
    field(ana, "code").fill("no code")
    question(ana, "code").get_by_role("button", name="Mark done").click()
    for number in range(ROUNDS):
        field(ana, "plan").fill(f"plan {number}")
        field(ana, "size").fill(str(number))
        field(ana, "note").press_sequentially(f"{number} ")
        question(ana, "food").get_by_label(FOOD[number % len(FOOD)]).click()
    expect(ana.locator(".connection-text")).to_have_text(WAITING)
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
        expect(page.locator(".connection-text")).to_have_text("live")
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


def test_reload_keeps_drafts_and_the_composer(person: People, stage: Stage) -> None:
    uri = stage.session("reload", provider="demo")
    stage.begins(uri)
    (ana,) = arrive([person("Ana")], "reload")
    field(ana, "name").press_sequentially("half a sen")
    ana.locator(".composer-text").fill("for later")
    ana.reload()
    expect(field(ana, "name")).to_have_value("half a sen")
    expect(ana.locator(".composer-text")).to_have_value("for later")


@pytest.mark.parametrize("wrong", [-300, 300], ids=["slow", "fast"])
def test_countdown_uses_the_hosts_clock(person: People, stage: Stage, wrong: int) -> None:
    name = f"clock{wrong}"
    uri = stage.session(name)
    stage.begins(uri)
    asked = {"questions": [text("plan")], "expiresIn": 1000, "onExpiry": "cancel"}
    http("POST", f"{stage.url}/v1/sessions/{name}/requests", asked)
    ana = person("Ana")
    ana.page.clock.install(time=time.time() + wrong)
    page = ana.goes_to(f"#/s/{name}")
    expect(page.locator(".countdown")).to_contain_text(re.compile(r"in 16:\d\d"))
