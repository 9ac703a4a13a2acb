"""The form by keyboard."""

from playwright.sync_api import Page, expect

from tests.page.browser import People
from tests.page.locators import arrive, field, question
from tests.page.stage import Stage, many_of, one_of, text, whole, yes_no


def focused(page: Page) -> str:
    question: str = page.evaluate(
        "document.activeElement.closest('[data-question]')?.dataset.question ?? "
        "document.activeElement.textContent"
    )
    return question


def test_form_can_be_answered_by_keyboard_alone(person: People, stage: Stage) -> None:
    stage.form(
        "keys",
        text("name", required=True),
        one_of("city", "Oslo", "Lisbon", "Kyoto", required=True),
        many_of("food", "Bread", "Soup", "Figs"),
        whole("people", min=1),
        yes_no("quick"),
    )
    ana = person("Ana").goes_to()
    expect(ana.locator(".session-row")).not_to_have_count(0)
    # From the list to the question: one key each way.
    ana.keyboard.press("/")
    ana.keyboard.type("keys")
    ana.keyboard.press("ArrowDown")
    ana.keyboard.press("Enter")
    expect(field(ana, "name")).to_be_focused()

    ana.keyboard.type("Norway")
    ana.keyboard.press("Enter")
    assert focused(ana) == "city"
    ana.keyboard.press("ArrowDown")
    ana.keyboard.press("Space")
    expect(question(ana, "city").get_by_label("Lisbon")).to_be_checked()
    ana.keyboard.press("3")
    expect(question(ana, "city").get_by_label("Kyoto")).to_be_checked()
    ana.keyboard.press("Enter")
    assert focused(ana) == "food"
    ana.keyboard.press("Space")
    ana.keyboard.press("ArrowDown")
    ana.keyboard.press("ArrowDown")
    ana.keyboard.press("Space")
    ana.keyboard.press("ArrowRight")
    assert focused(ana) == "people"
    ana.keyboard.press("ArrowUp")
    ana.keyboard.press("ArrowUp")
    expect(field(ana, "people")).to_have_value("2")
    ana.keyboard.press("Escape")
    expect(field(ana, "people")).to_have_value("2")
    expect(field(ana, "people")).not_to_be_focused()
    ana.keyboard.press("ArrowLeft")
    assert focused(ana) == "food"
    ana.keyboard.press("Escape")
    ana.keyboard.press("2")
    expect(question(ana, "food").get_by_label("Soup")).to_be_checked()
    ana.keyboard.press("Escape")
    ana.keyboard.press("ArrowDown")
    ana.keyboard.press("2")
    expect(question(ana, "food").get_by_label("Soup")).not_to_be_checked()
    ana.keyboard.press("ArrowRight")
    ana.keyboard.press("Enter")
    assert focused(ana) == "quick"
    ana.keyboard.press("y")
    expect(question(ana, "quick").get_by_label("Yes")).to_be_checked()

    ana.keyboard.press("Control+Enter")
    expect(ana.locator(".review")).to_be_visible()
    expect(ana.locator(".review-row").nth(2)).to_contain_text("Bread, Figs")
    ana.keyboard.press("Control+Enter")
    expect(ana.locator(".outcome")).to_contain_text("Kyoto")


def test_escape_leaves_the_review_without_losing_anything(person: People, stage: Stage) -> None:
    stage.form("escape", text("name"), text("place"))
    (ana,) = arrive([person("Ana")], "escape")
    field(ana, "name").fill("Norway")
    ana.keyboard.press("Control+Enter")
    ana.keyboard.press("Escape")
    expect(field(ana, "name")).to_have_value("Norway")
    expect(ana.locator(".review")).to_be_hidden()


def test_field_shows_its_problem_when_it_is_left(person: People, stage: Stage) -> None:
    uri = stage.session("wrong")
    stage.begins(uri)
    code = {"_meta": {"pattern": "^[A-Z]{3}$"}}
    stage.asks(
        uri,
        text("mail", format="email"),
        whole("age", min=18),
        text("name", required=True),
        text("code", **code),
    )
    (ana,) = arrive([person("Ana")], "wrong")
    field(ana, "mail").fill("nobody")
    expect(question(ana, "mail").locator(".problem")).to_be_hidden()
    field(ana, "mail").press("Tab")
    expect(question(ana, "mail").locator(".problem")).to_contain_text("Must be an e-mail address")
    expect(field(ana, "mail")).to_have_attribute("aria-invalid", "true")
    field(ana, "mail").fill("ana@example.com")
    expect(question(ana, "mail").locator(".problem")).to_be_hidden()
    field(ana, "code").fill("abc")
    field(ana, "code").press("Shift+Tab")
    expect(question(ana, "code").locator(".problem")).to_contain_text("Must match the pattern")
    field(ana, "code").fill("ABC")
    field(ana, "age").fill("12,5")
    field(ana, "age").press("Tab")
    expect(question(ana, "age").locator(".problem")).to_have_text("Must be a whole number.")
    field(ana, "age").fill("12")
    field(ana, "age").press("Enter")
    expect(question(ana, "age").locator(".problem")).to_contain_text("Must be at least 18.")
    ana.keyboard.press("Control+Enter")
    ana.keyboard.press("Control+Enter")
    expect(question(ana, "name").locator(".problem")).to_contain_text("This needs an answer.")
    expect(field(ana, "age")).to_be_focused()
