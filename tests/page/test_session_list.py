"""The session list: live, grouped by activity, with links to waiting questions."""

import re

from playwright.sync_api import Page, expect

from tests.page.browser import People
from tests.page.locators import field
from tests.page.stage import Stage, text


def titles(page: Page) -> list[str]:
    return page.locator(".session-list .row-title").all_text_contents()


def heads(page: Page) -> list[str]:
    return page.locator(".group-head h2").all_text_contents()


def test_session_list_is_live_and_grouped_by_activity(person: People, stage: Stage) -> None:
    ana = person("Ana").goes_to()
    expect(ana.locator(".sessions .empty h2")).to_have_text("No sessions yet")
    expect(ana.locator(".command")).to_contain_text("session-server ask")
    expect(ana.locator(".command")).to_contain_text(stage.url)
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


def test_archived_session_stays_in_the_list_while_questions_are_open(
    person: People, stage: Stage
) -> None:
    stage.form("put-away", text("name"), title="Old plan")
    ana = person("Ana").goes_to()
    row = ana.locator(".session-row", has_text="Old plan")
    row.hover()
    ana.get_by_role("button", name="Archive: Old plan").click()
    expect(ana.locator(".toast")).to_contain_text("stays in the list until")
    expect(ana.get_by_role("button", name="Unarchive: Old plan")).to_have_count(1)
    expect(row).to_have_attribute("data-activity", "input-needed")
    expect(ana).to_have_title(re.compile(r"^\(\d\) "))
    row.locator(".row-link").click()
    field(ana, "name").fill("x")
    ana.keyboard.press("Control+Enter")
    expect(row).to_have_count(0)
    ana.locator(".filter[data-filter=archived]").click()
    expect(row).to_have_count(1)


def test_opened_session_is_read_and_archived_session_is_hidden(
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
    ana.get_by_role("button", name="Undo").click()
    expect(row).to_have_count(1)
    row.hover()
    row.get_by_role("button", name="Archive: Report").click()
    expect(row).to_have_count(0)
    ana.get_by_role("button", name="Archived").click()
    expect(row).to_have_count(1)


def test_new_session_dialog_creates_a_session(person: People, stage: Stage) -> None:
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


def test_link_focuses_its_question(person: People, stage: Stage) -> None:
    stage.form("deep", text("one"), text("two"), name="r/1", title="Deep")
    ana = person("Ana").goes_to("#/s/deep/q/r%2F1/two")
    expect(field(ana, "two")).to_be_focused()
    late = person("Ben").goes_to("#/s/deep/q/closed")
    expect(late.locator(".toast")).to_have_text("That question is no longer open.")


def test_unknown_session_shows_a_message_and_a_way_back(person: People, stage: Stage) -> None:
    stage.session("there", "Over here")
    ana = person("Ana").goes_to("#/s/nowhere")
    expect(ana.get_by_role("heading", name="There is no such session here")).to_be_visible()
    expect(ana.locator(".session")).to_contain_text("not shared with you")
    expect(ana.locator(".session-title")).to_have_text("Not found")
    expect(ana).to_have_title(re.compile("Not found"))
    ana.get_by_role("link", name="All sessions").filter(visible=True).click()
    expect(ana.locator(".welcome")).to_be_visible()


def test_link_works_once_its_session_exists(person: People, stage: Stage) -> None:
    ana = person("Ana").goes_to("#/s/soon-there/q")
    expect(ana.get_by_role("heading", name="There is no such session here")).to_be_visible()
    stage.form("soon-there", text("name"), title="Here now")
    expect(ana.locator(".session-title")).to_have_text("Here now")
    expect(field(ana, "name")).to_be_visible()


def test_long_titles_fit_on_the_welcome_screen(person: People, stage: Stage) -> None:
    stage.form("long-title", text("name"), title="Look through the quarterly numbers " * 4)
    ana = person("Ana").goes_to("#/")
    expect(ana.locator(".welcome-item").first).to_be_visible()
    middles = ana.evaluate(
        """() => [".welcome", ".welcome-list"].map((of) => {
          const { left, right } = document.querySelector(of).getBoundingClientRect();
          return Math.round((left + right) / 2);
        })"""
    )
    assert middles[0] == middles[1]


def test_list_and_welcome_screen_have_the_same_order(person: People, stage: Stage) -> None:
    for name in ("first", "second", "third"):
        uri = stage.session(f"order-{name}", f"Order {name}")
        stage.begins(uri)
        stage.asks(uri, text("name"))
    ana = person("Ana").goes_to()
    expect(ana.locator(".welcome-item").first).to_contain_text("Order third")
    greeted = ana.locator(".welcome-item .row-title").all_text_contents()
    assert greeted == titles(ana)[: len(greeted)]
    # And so does the key that goes through them.
    ana.keyboard.press("w")
    expect(ana.locator(".session-title")).to_have_text(greeted[0])


def test_click_on_the_open_session_focuses_its_question_again(person: People, stage: Stage) -> None:
    stage.form("again", text("name"), text("place"), title="Once more")
    ana = person("Ana").goes_to()
    row = ana.get_by_role("link", name="Once more needs input")
    row.click()
    expect(field(ana, "name")).to_be_focused()
    field(ana, "name").blur()
    row.click()
    expect(field(ana, "name")).to_be_focused()


def test_new_below_button_appears_only_if_there_is_more_below(person: People, stage: Stage) -> None:
    uri = stage.session("below", "Below")
    stage.begins(uri)
    ana = person("Ana").goes_to("#/s/below/q")
    jump = ana.get_by_role("button", name="New below")
    stage.says(uri, "A short word.")
    expect(ana.locator(".prose")).to_have_text("A short word.")
    expect(jump).to_be_hidden()
    stage.says(uri, "\n\n".join(f"Paragraph {number}" for number in range(80)))
    expect(ana.get_by_text("Paragraph 79")).to_be_attached()
    ana.locator(".scroller").evaluate("scroller => scroller.scrollTop = 0")
    stage.says(uri, "The end.")
    jump.click()
    expect(ana.get_by_text("The end.")).to_be_in_viewport()
    expect(jump).to_be_hidden()


def test_waiting_sessions_are_counted_in_the_title(person: People, stage: Stage) -> None:
    uri = stage.session("quiet", "Quiet one")
    stage.begins(uri)
    ana = person("Ana").goes_to()
    expect(ana.locator(".session-row", has_text="Quiet one")).to_be_visible()
    stage.asks(uri, text("name"))
    expect(ana.locator("#announcer")).to_have_text("Quiet one needs input")
    ana.keyboard.press("w")
    expect(field(ana, "name")).to_be_focused()
