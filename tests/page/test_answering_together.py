"""Several people answer one form, each in their own browser."""

from playwright.sync_api import expect

from tests.page.browser import People, phone_options
from tests.page.locators import arrive, field, question
from tests.page.stage import Stage, many_of, one_of, text, yes_no


def test_three_people_answer_one_form_together(person: People, stage: Stage) -> None:
    stage.form(
        "three", text("name", required=True), one_of("city", "Oslo", "Lisbon"), yes_no("quick")
    )
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
        expect(page.locator(".progress-text")).to_have_text("3 of 3 ready, not sent yet")
        expect(page.locator("[data-status=submitted].mark")).to_have_count(3)

    ana.get_by_role("button", name="Review answers", exact=True).click()
    expect(ana.locator(".review-row")).to_have_count(3)
    ana.get_by_role("button", name="Send answers", exact=True).click()
    for page in (ana, ben, cleo):
        expect(page.locator(".request")).to_have_count(0)
        expect(page.locator(".outcome")).to_contain_text("Lisbon")
    expect(ben.locator(".outcome-text")).to_contain_text("Ana answered “Some questions”")
    expect(ana.locator(".outcome-text")).to_contain_text("You answered")


def test_late_visitor_sees_answers_and_authors(person: People, stage: Stage) -> None:
    stage.form("late", text("name"))
    (ana,) = arrive([person("Ana")], "late")
    field(ana, "name").fill("Norway")
    ana.get_by_role("button", name="Send answer").click()
    expect(ana.locator(".outcome")).to_be_visible()
    late = person("Dan").goes_to("#/s/late")
    expect(late.locator(".note")).to_contain_text("Ana answered “Some questions”. Name: Norway")


def test_freeform_answers_next_to_options(person: People, stage: Stage) -> None:
    stage.form(
        "own",
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
