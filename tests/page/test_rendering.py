"""What is rendered again when something changes."""

from playwright.sync_api import Page, expect

from tests.page.browser import People
from tests.page.locators import arrive, field, question
from tests.page.stage import Stage, text

COUNT = """async () => {
  const { src } = document.querySelector("script[type=module]");
  const { Timeline } = await import(new URL("views/session/timeline.js", src));
  const { update } = Timeline.prototype;
  window.timelineUpdates = 0;
  Timeline.prototype.update = function (state) {
    window.timelineUpdates += 1;
    update.call(this, state);
  };
}"""
PAINTED = "() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"


def timeline_updates(page: Page) -> int:
    """After what is due in the next frame."""
    page.evaluate(PAINTED)
    count: int = page.evaluate("window.timelineUpdates")
    return count


def test_draft_updates_only_the_form(person: People, stage: Stage) -> None:
    uri = stage.form("drafted", text("name"), text("place"))
    ana, ben = arrive([person("Ana"), person("Ben")], "drafted")
    field(ana, "place").fill("Oslo")  # after everything that arriving has caused
    expect(field(ben, "place")).to_have_value("Oslo")
    for page in (ana, ben):
        page.evaluate(PAINTED)
        page.evaluate(COUNT)
    field(ana, "name").press_sequentially("Norway", delay=100)
    expect(field(ben, "name")).to_have_value("Norway")
    expect(question(ana, "name")).to_contain_text("Draft saved")
    assert [timeline_updates(page) for page in (ana, ben)] == [0, 0]
    stage.says(uri, "Something else")
    for page in (ana, ben):
        expect(page.locator(".turn")).to_contain_text("Something else")
        assert timeline_updates(page) > 0


def test_draft_updates_review_confirmation_and_strip(person: People, stage: Stage) -> None:
    stage.form("observed", text("name"), text("place"))
    ana, ben = arrive([person("Ana"), person("Ben")], "observed")
    ana.get_by_role("button", name="Review answers", exact=True).click()
    row = ana.locator(".review-row").first
    expect(row).to_contain_text("Not answered")
    field(ben, "name").fill("Norway")
    expect(row).to_contain_text("Ben’s draft “Norway” is not included.")
    ana.get_by_role("button", name="Back", exact=True).click()
    expect(ana.locator(".mark").first).to_have_attribute("data-status", "foreign")
    ana.get_by_role("button", name="Decline", exact=True).click()
    expect(ana.locator(".progress-text")).to_contain_text("Answers and drafts by Ben")
    question(ben, "name").get_by_role("button", name="Clear").click()
    expect(row).to_be_hidden()
    expect(ana.locator(".mark").first).to_have_attribute("data-status", "empty")
