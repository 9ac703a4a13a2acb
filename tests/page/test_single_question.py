"""A form with one question: one action sends its answer."""

import pytest
from playwright.sync_api import expect

from tests.page.browser import People
from tests.page.locators import arrive, field, press, question
from tests.page.stage import Stage, many_of, one_of, text, whole, yes_no


def test_single_question_has_one_button_that_sends(person: People, stage: Stage) -> None:
    stage.form("one", text("name", required=True))
    (ana,) = arrive([person("Ana")], "one")
    field(ana, "name").fill("Norway")
    expect(question(ana, "name")).to_contain_text("Draft saved")
    for name in ("Mark done", "Skip", "Review answers"):
        expect(ana.get_by_role("button", name=name, exact=True)).to_be_hidden()
    press(ana, "Send answer")
    expect(ana.locator(".outcome-text")).to_contain_text("You answered")
    assert stage.sent("one") == {"name": "Norway"}


@pytest.mark.parametrize("key", ["Enter", "Control+Enter", "Meta+Enter"])
def test_single_answer_is_sent_by_keyboard(person: People, stage: Stage, key: str) -> None:
    stage.form(f"by-{key}", text("name", max=20))
    (ana,) = arrive([person("Ana")], f"by-{key}")
    field(ana, "name").fill("Norway")
    field(ana, "name").press(key)
    expect(ana.locator(".outcome-text")).to_contain_text("You answered")
    assert stage.sent(f"by-{key}") == {"name": "Norway"}


@pytest.mark.parametrize(("name", "value"), [("Yes", True), ("No", False)])
def test_yes_no_question_is_sent_by_one_click(
    person: People, stage: Stage, name: str, value: bool
) -> None:
    stage.form(f"says-{name}", yes_no("sure", required=True, defaultValue=not value))
    (ana,) = arrive([person("Ana")], f"says-{name}")
    expect(question(ana, "sure")).to_contain_text(f"Default: {'No' if value else 'Yes'}")
    expect(ana.get_by_role("radio")).to_have_count(0)
    press(ana, name)
    expect(ana.locator(".outcome .review-row")).to_contain_text(name)
    assert stage.sent(f"says-{name}") == {"sure": value}


def test_letters_focus_yes_and_no_and_enter_sends(person: People, stage: Stage) -> None:
    stage.form("letters", yes_no("sure"))
    ana = person("Ana").goes_to("#/s/letters/q")
    expect(question(ana, "sure")).to_be_focused()
    ana.keyboard.press("Control+Enter")
    expect(ana.get_by_role("button", name="Yes", exact=True)).to_be_focused()
    ana.keyboard.press("n")
    expect(ana.get_by_role("button", name="No", exact=True)).to_be_focused()
    expect(ana.locator(".outcome")).to_have_count(0)
    ana.keyboard.press("Enter")
    assert stage.sent("letters") == {"sure": False}


def test_empty_single_answer_is_not_replaced_by_a_recommendation(
    person: People, stage: Stage
) -> None:
    food = many_of("food", "Bread", "Soup")
    food["options"][1]["recommended"] = True
    stage.form("empty", food)
    (ana,) = arrive([person("Ana")], "empty")
    press(ana, "Send answer")
    expect(ana.locator(".outcome .review-row")).to_contain_text("skipped")
    assert stage.sent("empty") == {}


def test_enter_without_an_answer_focuses_the_button(person: People, stage: Stage) -> None:
    stage.form("nothing", one_of("city", "Oslo", "Lisbon"))
    (ana,) = arrive([person("Ana")], "nothing")
    question(ana, "city").get_by_label("Oslo").focus()
    ana.keyboard.press("Enter")
    expect(ana.get_by_role("button", name="Send answer")).to_be_focused()
    expect(ana.locator(".request")).to_be_visible()


def test_foreign_draft_is_sent_only_after_using_it(person: People, stage: Stage) -> None:
    stage.form("foreign", whole("percent", defaultValue=10))
    ana, ben = arrive([person("Ana"), person("Ben")], "foreign")
    field(ben, "percent").fill("26")
    field(ben, "percent").blur()
    expect(question(ana, "percent")).to_contain_text("Draft by Ben")
    press(ana, "Send answer")
    expect(question(ana, "percent").locator(".problem")).to_contain_text(
        "Only drafted by Ben so far. Use this draft or enter your own answer."
    )
    press(ana, "Use this draft")
    expect(question(ana, "percent")).to_contain_text("not sent yet")
    press(ana, "Send answer")
    assert stage.sent("foreign") == {"percent": 26}
