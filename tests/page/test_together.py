"""Several people on one session, each with a browser of their own."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect

from tests.page.browser import Person, phone_options
from tests.page.looking import arrive, field, goes_offline, question
from tests.page.stage import Stage, many_of, one_of, text, whole, yes_no

People = Callable[..., Person]
pytestmark = pytest.mark.slow


def test_each_answers_a_question_and_all_see_all(person: People, stage: Stage) -> None:
    uri = stage.session("three")
    stage.begins(uri)
    stage.asks(uri, text("name", required=True), one_of("city", "Oslo", "Lisbon"), yes_no("quick"))
    crowd = [person("Ana"), person("Ben"), person("Cleo", **phone_options())]
    ana, ben, cleo = arrive(crowd, "three")

    field(ana, "name").fill("Norway")
    expect(field(ben, "name")).to_have_value("Norway")
    expect(question(ben, "name")).to_contain_text("Ana is writing")
    question(ben, "city").get_by_label("Lisbon").check()
    expect(question(cleo, "city").get_by_label("Lisbon")).to_be_checked()
    question(cleo, "quick").get_by_label("Yes").tap()

    question(ana, "name").get_by_role("button", name="Mark done").click()
    expect(question(cleo, "name")).to_contain_text("Done by Ana")
    question(ben, "city").get_by_role("button", name="Mark done").click()
    question(cleo, "quick").get_by_role("button", name="Mark done").tap()
    for page in (ana, ben, cleo):
        expect(page.locator(".progress-words")).to_have_text("3 of 3 ready, not sent yet")
        expect(page.locator("[data-standing=submitted].mark")).to_have_count(3)

    ana.get_by_role("button", name="Review answers", exact=True).click()
    expect(ana.locator(".review-row")).to_have_count(3)
    ana.get_by_role("button", name="Send answers", exact=True).click()
    for page in (ana, ben, cleo):
        expect(page.locator(".request")).to_have_count(0)
        expect(page.locator(".outcome")).to_contain_text("Lisbon")
    expect(ben.locator(".outcome-words")).to_contain_text("Ana answered “Some questions”")
    expect(ana.locator(".outcome-words")).to_contain_text("You answered")


def test_a_form_that_closes_elsewhere_keeps_what_was_not_sent(person: People, stage: Stage) -> None:
    uri = stage.session("kept")
    stage.begins(uri)
    stage.asks(uri, text("plan"), name="first")
    ana, ben = arrive([person("Ana"), person("Ben")], "kept")

    goes_offline(ben)
    field(ben, "plan").press_sequentially("a long thought")
    field(ana, "plan").fill("done")
    ana.get_by_role("button", name="Send answer").click()
    expect(ana.locator(".outcome")).to_be_visible()
    ben.context.set_offline(offline=False)
    expect(ben.locator(".request")).to_have_count(0)
    expect(ben.locator(".outcome-words")).to_contain_text("Ana answered")
    expect(ben.locator(".unsent")).to_contain_text("a long thought")

    stage.asks(uri, text("plan"), name="second")
    expect(question(ben, "plan").locator(".version")).to_contain_text("a long thought")
    ben.get_by_role("button", name="Use it").click()
    expect(field(ben, "plan")).to_have_value("a long thought")
    expect(field(ana, "plan")).to_have_value("a long thought")


def test_who_comes_late_sees_what_was_answered_and_by_whom(person: People, stage: Stage) -> None:
    uri = stage.session("late")
    stage.begins(uri)
    stage.asks(uri, text("name"))
    (ana,) = arrive([person("Ana")], "late")
    field(ana, "name").fill("Norway")
    ana.get_by_role("button", name="Send answer").click()
    expect(ana.locator(".outcome")).to_be_visible()
    late = person("Dan").goes_to("#/s/late")
    expect(late.locator(".note")).to_contain_text("Ana answered “Some questions”. Name: Norway")


def test_somebody_elses_draft_is_theirs_to_submit(person: People, stage: Stage) -> None:
    uri = stage.session("theirs")
    stage.begins(uri)
    stage.asks(uri, text("name", required=True), whole("age"))
    ana, ben = arrive([person("Ana"), person("Ben")], "theirs")
    field(ana, "name").fill("half a wor")
    field(ana, "name").blur()
    expect(question(ben, "name")).to_contain_text("Draft by Ana")
    ben.get_by_role("button", name="Review answers", exact=True).click()
    expect(ben.locator(".review-row").first).to_contain_text("Only drafted by Ana so far")
    ben.get_by_role("button", name="Send answers", exact=True).click()
    expect(question(ben, "name").locator(".problem")).to_contain_text("by Ana so far")
    expect(ana.locator(".request")).to_be_visible()
    question(ben, "name").get_by_role("button", name="Use this draft").click()
    expect(question(ana, "name")).to_contain_text("Done by Ben")


def test_options_of_ones_own(person: People, stage: Stage) -> None:
    uri = stage.session("own")
    stage.begins(uri)
    stage.asks(
        uri,
        one_of("city", "Oslo", "Lisbon", allowFreeformInput=True),
        many_of("food", "Bread", "Soup", allowFreeformInput=True, max=3),
    )
    ana, ben = arrive([person("Ana"), person("Ben")], "own")
    question(ana, "city").get_by_label("Oslo").check()
    question(ana, "city").get_by_label("Other answer").fill("Bergen")
    expect(question(ana, "city").get_by_label("Oslo")).not_to_be_checked()
    expect(question(ben, "city").get_by_label("Other answer")).to_have_value("Bergen")
    food = question(ana, "food")
    food.get_by_label("Soup").check()
    for words in ("Figs", "Nuts", "Salt"):
        food.get_by_label("Add another answer").fill(words)
        food.get_by_label("Add another answer").press("Enter")
    food.get_by_role("button", name="Mark done").click()
    expect(food.locator(".problem")).to_contain_text("Takes at most 3 choices; this has 4.")
    food.get_by_role("button", name="Remove Salt").click()
    food.get_by_role("button", name="Mark done").click()
    expect(question(ben, "food")).to_contain_text("Done by Ana")
    expect(question(ben, "food").locator(".own-chip")).to_have_text(["Figs×", "Nuts×"])
