"""The list of sessions: live, in order of need, and one click from the question that waits."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.web.browser import Person
from tests.web.looking import field
from tests.web.stage import Stage, text

People = Callable[..., Person]
pytestmark = pytest.mark.slow


def titles(page: Page) -> list[str]:
    return page.locator(".session-list .row-title").all_text_contents()


def heads(page: Page) -> list[str]:
    return page.locator(".group-head h2").all_text_contents()


def test_the_list_is_live_and_in_order_of_need(person: People, stage: Stage) -> None:
    ana = person("Ana").goes_to()
    expect(ana.locator(".empty h2").first).to_have_text("No sessions yet")
    idle = stage.session("idle", "Resting")
    running = stage.session("running", "Working")
    stage.begins(running)
    failed = stage.session("failed", "Broken")
    stage.begins(failed)
    stage.act(failed, "error", turnId="t", error={"errorType": "x", "message": "no"})
    asking = stage.session("asking", "Waiting")
    stage.begins(asking)
    stage.asks(asking, text("name"))
    expect(ana.locator(".session-row")).to_have_count(4)
    assert heads(ana) == ["Needs input", "Running", "Failed", "Idle"]
    assert titles(ana) == ["Waiting", "Working", "Broken", "Resting"]
    expect(ana.locator(".sessions-sum")).to_have_text("1 needs input, 1 running")
    expect(ana).to_have_title("(1) session-server")
    expect(ana.locator("link[rel=icon]")).to_have_attribute("href", "icon-waiting.svg")

    # One click, and the question has the focus.
    ana.get_by_role("link", name="Waiting needs input").click()
    expect(field(ana, "name")).to_be_focused()
    expect(ana).to_have_title("(1) Waiting · session-server")
    field(ana, "name").fill("x")
    ana.keyboard.press("Control+Enter")
    expect(ana).to_have_title("Waiting · session-server")
    expect(ana.locator("link[rel=icon]")).to_have_attribute("href", "icon.svg")

    stage.begins(idle)
    expect(ana.locator(".group-head h2")).to_have_text(["Running", "Failed"])
    ana.locator(".sessions-search").fill("rest")
    expect(ana.locator(".session-row")).to_have_count(1)
    ana.locator(".sessions-search").fill("")
    ana.get_by_role("button", name="Failed").click()
    expect(ana.locator(".session-row .row-title")).to_have_text(["Broken"])


def test_what_is_seen_is_read_and_what_is_put_away_is_out_of_sight(
    person: People, stage: Stage
) -> None:
    uri = stage.session("seen", "Report")
    stage.begins(uri)
    stage.ends(uri)
    ana = person("Ana").goes_to()
    row = ana.locator(".session-row", has_text="Report")
    expect(row).to_have_attribute("data-unread", "")
    row.get_by_role("link").click()
    expect(row).not_to_have_attribute("data-unread", "")
    ana.get_by_role("button", name="Session menu").click()
    ana.get_by_role("menuitem", name="Mark as unread").click()
    expect(row).to_have_attribute("data-unread", "")
    row.hover()
    row.get_by_role("button", name="Archive: Report").click()
    expect(row).to_have_count(0)
    ana.get_by_role("button", name="Archived").click()
    expect(row).to_have_count(1)


def test_a_session_is_started_here(person: People, stage: Stage) -> None:
    ana = person("Ana").goes_to()
    ana.keyboard.press("n")
    ana.get_by_label("Demo").check()
    ana.get_by_label("First message").fill("Plan a trip")
    ana.get_by_role("button", name="Start").click()
    expect(ana.locator(".message-text")).to_have_text("Plan a trip")
    expect(ana.locator(".request")).to_be_visible()
    ana.get_by_role("button", name="Session menu").click()
    ana.get_by_role("menuitem", name="Rename").click()
    ana.get_by_label("Title").fill("Our trip")
    ana.keyboard.press("Enter")
    expect(ana.locator(".session-list")).to_contain_text("Our trip")


def test_a_link_leads_to_a_question(person: People, stage: Stage) -> None:
    uri = stage.session("deep", "Deep")
    stage.begins(uri)
    stage.asks(uri, text("one"), text("two"), name="r/1")
    ana = person("Ana").goes_to("#/s/deep/q/r%2F1/two")
    expect(field(ana, "two")).to_be_focused()
    late = person("Ben").goes_to("#/s/deep/q/closed")
    expect(late.locator(".toast")).to_have_text("That question is no longer open.")
    nowhere = person("Cleo").goes_to("#/s/nowhere")
    expect(nowhere.get_by_role("heading", name="This session is not here")).to_be_visible()


def test_whoever_is_elsewhere_is_told(person: People, stage: Stage) -> None:
    uri = stage.session("quiet", "Quiet one")
    stage.begins(uri)
    ana = person("Ana").goes_to()
    expect(ana.locator(".session-row", has_text="Quiet one")).to_be_visible()
    stage.asks(uri, text("name"))
    expect(ana.locator("#announcer")).to_have_text("Quiet one needs input")
    ana.keyboard.press("w")
    expect(field(ana, "name")).to_be_focused()
