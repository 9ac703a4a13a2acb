"""Hosts that die, networks that go, pages that are loaded again: nothing lost, nothing doubled."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.servers import ServerProcess, sqlite_store
from tests.web.browser import Person
from tests.web.conftest import SCENE_HOST
from tests.web.looking import arrive, field, question
from tests.web.stage import Stage, http, many_of, text, whole

People = Callable[..., Person]
pytestmark = pytest.mark.slow

OFFLINE_MS = 4_000
"""Long enough for the page to notice, to give up a few times, and to say so."""


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
    expect(ben.locator(".connection-words")).to_contain_text("2 waiting")
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


def test_edits_made_offline_arrive_and_a_refused_one_is_shown_where_it_belongs(
    person: People, stage: Stage
) -> None:
    uri = stage.session("offline")
    stage.begins(uri)
    pattern = {"_meta": {"pattern": "^[A-Z]{3}$"}}
    stage.asks(uri, text("plan"), text("code", **pattern), whole("size"))
    ana, ben = arrive([person("Ana"), person("Ben")], "offline")

    ana.context.set_offline(offline=True)
    field(ana, "plan").fill("written offline")
    field(ana, "size").fill("42")
    field(ana, "code").fill("no code")
    question(ana, "code").get_by_role("button", name="Submit").click()
    expect(ana.locator(".connection-words")).not_to_have_text("live")
    ana.wait_for_timeout(OFFLINE_MS)
    expect(field(ben, "plan")).to_have_value("")
    ana.context.set_offline(offline=False)

    expect(field(ben, "plan")).to_have_value("written offline")
    expect(field(ben, "size")).to_have_value("42")
    expect(question(ana, "code").locator(".problem")).to_contain_text("must match the pattern")
    expect(field(ana, "code")).to_have_value("no code")
    expect(ana.locator(".connection-words")).to_have_text("live")


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
    expect(ana.locator(".connection-words")).to_contain_text("1 waiting")
    server = ServerProcess(store, port=server.port, command=SCENE_HOST)
    try:
        ana.reload()
        expect(field(ana, "plan")).to_have_value("nobody heard this")
        expect(question(ana, "plan")).to_contain_text("Draft saved")
    finally:
        server.kill()
