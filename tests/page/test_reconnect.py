"""Killed hosts, lost networks, reloads: nothing is lost and nothing is doubled."""

import re
import time
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.page.browser import People
from tests.page.conftest import SCENE_HOST
from tests.page.locators import arrive, field, question
from tests.page.stage import Stage, http, many_of, text
from tests.servers import ServerProcess, sqlite_store

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
