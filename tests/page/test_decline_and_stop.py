"""Decline, Dismiss and Stop: confirmation where others' work is lost, and Undo."""

import pytest
from playwright.sync_api import Page, expect

from tests.page.browser import People
from tests.page.locators import arrive, field, press, question
from tests.page.stage import Stage, http, text

HIDE = """
Object.defineProperty(document, "visibilityState", { value: "hidden", configurable: true });
document.dispatchEvent(new Event("visibilitychange"));
"""
"""As a phone does with a page that its person leaves for another one."""


def opened(stage: Stage, name: str) -> str:
    return stage.form(name, text("name"), text("place"))


def dismiss(page: Page) -> None:
    press(page, "More actions")
    page.get_by_role("menuitem", name="Dismiss without answering").click()


def stop(page: Page) -> None:
    press(page, "Session menu")
    page.get_by_role("menuitem", name="Stop the turn").click()


def is_open(stage: Stage, session: str) -> bool:
    state = http("GET", f"{stage.url}/v1/sessions/{session}/requests/r")["state"]
    return bool(state == "open")


@pytest.mark.parametrize(
    ("way", "asks", "done"),
    [
        ("Decline", "Decline for everyone? The agent receives “no” as the answer.", "declined"),
        ("Dismiss", "Dismiss without answering? The agent learns that nobody", "dismissed"),
    ],
)
def test_confirmation_names_whose_answers_would_be_lost(
    person: People, stage: Stage, way: str, asks: str, done: str
) -> None:
    opened(stage, f"lost-{way}")
    ana, ben = arrive([person("Ana"), person("Ben")], f"lost-{way}")
    field(ana, "name").fill("something")
    expect(field(ben, "name")).to_have_value("something")
    press(ben, "Decline") if way == "Decline" else dismiss(ben)
    expect(ben.locator(".progress-text")).to_contain_text(asks)
    expect(ben.locator(".progress-text")).to_contain_text("by Ana will be discarded")
    press(ben, "Back")
    expect(ben.locator(".toast")).to_have_count(0)
    press(ben, "Decline") if way == "Decline" else dismiss(ben)
    press(ben, way)
    expect(ben.locator(".toast")).to_be_visible()
    expect(ana.locator(".outcome-text")).to_contain_text(f"Ben {done}")


def test_decline_can_be_undone(person: People, stage: Stage) -> None:
    opened(stage, "undone")
    guest = person("Ana")
    guest.page.clock.install()
    (ana,) = arrive([guest], "undone")
    field(ana, "name").fill("mine")
    press(ana, "Decline")
    expect(ana.locator(".toast")).to_contain_text("Declining “Some questions”")
    expect(field(ana, "name")).not_to_be_editable()
    press(ana, "Undo")
    expect(field(ana, "name")).to_be_editable()
    expect(field(ana, "name")).to_have_value("mine")
    ana.clock.fast_forward(60_000)
    expect(ana.locator(".outcome")).to_have_count(0)
    assert is_open(stage, "undone")


def test_leaving_the_page_sends_the_decline_at_once(person: People, stage: Stage) -> None:
    opened(stage, "left")
    ana = person("Ana")
    ana.page.clock.install()
    page = ana.goes_to("#/s/left")
    expect(page.locator(".request")).to_be_visible()
    page.clock.pause_at("2100-01-01")  # no few seconds go by any more
    press(page, "Decline")
    expect(page.locator(".toast")).to_be_visible()
    page.evaluate(HIDE)
    url = f"{stage.url}/v1/sessions/left/requests/r?wait=10"
    assert http("GET", url)["outcome"]["response"] == "decline"


def test_changed_question_is_not_declined(person: People, stage: Stage) -> None:
    uri = opened(stage, "changes")
    (ana,) = arrive([person("Ana")], "changes")
    press(ana, "Decline")
    expect(ana.locator(".toast")).to_be_visible()
    stage.asks(uri, text("name", title="Something else"), text("place"))
    expect(ana.locator(".toast")).to_have_count(0)
    expect(question(ana, "name")).to_contain_text("Something else")
    expect(field(ana, "name")).to_be_editable()


def test_stop_asks_for_confirmation_and_can_be_undone(person: People, stage: Stage) -> None:
    opened(stage, "stops")
    ana, ben = arrive([person("Ana"), person("Ben")], "stops")
    expect(ben.get_by_role("button", name="Stop", exact=True)).to_be_hidden()
    field(ana, "name").fill("half a thought")
    expect(field(ben, "name")).to_have_value("half a thought")
    stop(ben)
    expect(ben.locator("dialog")).to_contain_text("Answers and drafts by Ana will be discarded.")
    press(ben, "Stop")
    press(ben, "Undo")
    expect(ben.locator(".toast")).to_have_count(0)
    assert is_open(stage, "stops")
    stop(ben)
    press(ben, "Stop")
    expect(ana.locator(".outcome-text")).to_contain_text("Ben stopped “Some questions”")


def test_confirmation_does_not_scroll(person: People, stage: Stage) -> None:
    stage.form("still-here", *(text(f"q{number}") for number in range(12)))
    ana, ben = arrive([person("Ana"), person("Ben")], "still-here")
    field(ana, "q0").fill("something")
    expect(field(ben, "q0")).to_have_value("something")
    scroller = ben.locator(".scroller")
    before = scroller.evaluate("scroller => scroller.scrollTop")

    def click(name: str) -> None:
        """With the mouse alone: Playwright's own click scrolls."""
        box = ben.get_by_role("button", name=name, exact=True).bounding_box()
        ben.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)

    click("Decline")
    expect(ben.locator(".request-actions").get_by_role("button", name="Decline")).to_be_focused()
    assert scroller.evaluate("scroller => scroller.scrollTop") == before
    click("Decline")
    expect(ben.locator(".progress-text")).to_contain_text("You can still undo it")
    assert scroller.evaluate("scroller => scroller.scrollTop") == before
    click("Undo")
    expect(ben.get_by_role("button", name="Review answers")).to_be_focused()
    assert scroller.evaluate("scroller => scroller.scrollTop") == before
