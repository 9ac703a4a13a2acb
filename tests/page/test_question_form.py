"""The form: typing indicator, validation, sending, refusals, outcomes."""

import re

import pytest
from playwright.sync_api import expect

from tests.page.browser import People, Person
from tests.page.locators import arrive, field, goes_offline, question
from tests.page.stage import Stage, many_of, one_of, text, whole, yes_no


def rows(person: Person) -> list[str]:
    found = person.page.locator(".outcome .review-row").all_inner_texts()
    return [" ".join(row.split()) for row in found]


def test_outcome_shows_answers_and_authors_to_everyone(person: People, stage: Stage) -> None:
    """Also what travels with Accept; with somebody among them who has no name."""
    stage.form(
        "told",
        text("name"),
        whole("age"),
        one_of("city", "Oslo"),
        yes_no("quick", defaultValue=True),
    )
    crowd = ana, ben, nobody = [person("Ana"), person("Ben"), person()]
    pages = arrive(crowd, "told")
    field(pages[1], "age").fill("3")
    question(pages[1], "age").get_by_role("button", name="Mark done").click()
    question(pages[2], "city").get_by_label("Oslo").check()
    question(pages[2], "city").get_by_role("button", name="Mark done").click()
    expect(question(pages[2], "city")).to_contain_text("Done by you")
    expect(question(pages[0], "city")).to_contain_text(re.compile(r"Done \d"))
    field(pages[0], "name").fill("Norway")
    pages[0].get_by_role("button", name="Review answers", exact=True).click()
    pages[0].get_by_role("button", name="Send answers", exact=True).click()
    for page in pages:
        expect(page.locator(".outcome .review-row")).to_have_count(4)
    quick = "Quick Yes Default"
    assert rows(ana) == ["Name Norway", "Age 3 by Ben", "City Oslo by someone", quick]
    assert rows(ben) == ["Name Norway", "Age 3 by you", "City Oslo by someone", quick]
    assert rows(nobody) == ["Name Norway", "Age 3 by Ben", "City Oslo by you", quick]
    for page in pages:
        expect(page.locator(".note")).to_be_hidden()  # the card says it, and more
    pages[1].get_by_role("button", name="Hide").click()
    expect(pages[1].locator(".note")).to_contain_text("Ana answered")

    late = person("Dan").goes_to("#/s/told")
    expect(late.locator(".note")).to_contain_text(
        "Name: Norway; Age: 3 (Ben); City: Oslo (someone)"
    )


def test_person_without_a_name_is_shown_as_you(person: People, stage: Stage) -> None:
    stage.form("nameless", text("name"))
    one, other = arrive([person(), person()], "nameless")
    field(one, "name").fill("mine")
    expect(question(other, "name")).to_contain_text("Draft by someone")
    expect(other.get_by_role("button", name="Use this draft")).to_be_visible()
    one.get_by_role("button", name="Send answer").click()
    expect(one.locator(".outcome-text")).to_contain_text("You answered")
    expect(other.locator(".outcome-text")).to_contain_text("Someone answered")


def test_typing_indicator_needs_typing_and_times_out(person: People, stage: Stage) -> None:
    stage.form("writing", text("name"), one_of("city", "Oslo"))
    ana, ben = arrive([person("Ana"), person("Ben")], "writing")
    field(ana, "name").focus()
    question(ana, "city").get_by_label("Oslo").focus()
    field(ben, "name").fill("x")
    expect(question(ana, "name")).to_contain_text("Ben is writing")  # whatever came before is here
    expect(ben.locator("[data-writing]")).to_have_count(0)
    question(ana, "city").get_by_label("Oslo").check()
    expect(question(ben, "city")).to_contain_text("Ana is answering")
    expect(question(ben, "city")).to_contain_text("Draft by Ana")
    expect(question(ana, "name")).to_contain_text("Draft by Ben")


def test_required_text_must_not_be_blank(person: People, stage: Stage) -> None:
    stage.form(
        "blank",
        text("name", required=True),
        one_of("city", "Oslo", allowFreeformInput=True, required=True),
        text("was", required=True, defaultValue="there"),
    )
    (ana,) = arrive([person("Ana")], "blank")
    field(ana, "name").fill("   ")
    field(ana, "name").press("Tab")
    problem = question(ana, "name").locator(".problem")
    expect(problem).to_have_text("Enter an answer; spaces alone don’t count.")
    own = question(ana, "city").get_by_label("Other answer")
    own.fill("  ")
    own.press("Enter")
    expect(question(ana, "city").locator(".problem")).to_have_text("This needs an answer.")
    field(ana, "was").fill("")
    field(ana, "was").press("Enter")
    expect(question(ana, "was").locator(".problem")).to_have_text("This needs an answer.")
    ana.get_by_role("button", name="Review answers", exact=True).click()
    expect(ana.locator(".review .problem")).to_have_count(3)
    ana.get_by_role("button", name="Send answers", exact=True).click()
    expect(problem).to_be_visible()
    expect(ana.locator(".request")).to_be_visible()


def test_recommended_options_are_not_preselected(person: People, stage: Stage) -> None:
    uri = stage.session("proposed")
    stage.begins(uri)
    food = many_of("food", "Bread", "Soup")
    food["options"][1]["recommended"] = True
    stage.asks(uri, food, text("note", defaultValue=""), text("tone", defaultValue="dry"))
    (ana,) = arrive([person("Ana")], "proposed")
    expect(question(ana, "food").get_by_label("Soup")).not_to_be_checked()
    expect(question(ana, "food")).to_contain_text("Recommended")
    expect(question(ana, "food")).to_contain_text("Not answered")
    expect(question(ana, "note")).to_contain_text("Not answered")
    expect(question(ana, "tone")).to_contain_text("Default")
    ana.get_by_role("button", name="Review answers", exact=True).click()
    expect(ana.locator(".review-row")).to_have_text(
        ["FoodSoupDefault", "Note—Default", "TonedryDefault"]
    )


def test_offline_completion_stays_visible_and_can_be_withdrawn(
    person: People, stage: Stage
) -> None:
    stage.form("waits", text("plan", required=True), whole("age"))
    ana, ben = arrive([person("Ana"), person("Ben")], "waits")
    goes_offline(ana)
    field(ana, "plan").fill("by boat")
    field(ana, "age").fill("3")
    ana.keyboard.press("Control+Enter")
    ana.keyboard.press("Control+Enter")
    words = ana.locator(".progress-text")
    expect(words).to_contain_text("You’re offline. Your answers will be sent")
    expect(field(ana, "plan")).not_to_be_editable()
    expect(ana.get_by_role("button", name="Waiting…", exact=True)).to_be_disabled()
    for name in ("Decline", "More actions"):
        expect(ana.get_by_role("button", name=name, exact=True)).to_be_hidden()
    expect(ana.locator(".outcome")).to_have_count(0)
    ana.get_by_role("button", name="Don’t send").click()
    expect(field(ana, "plan")).to_be_editable()
    field(ana, "plan").press_sequentially("!")
    ana.keyboard.press("Control+Enter")
    ana.keyboard.press("Control+Enter")
    expect(words).to_contain_text("You’re offline. Your answers will be sent")
    ana.context.set_offline(offline=False)
    for page in (ana, ben):
        expect(page.locator(".outcome .review-row")).to_have_text(["Planby boat!", "Age3"])


@pytest.mark.parametrize(("typed", "sent"), [("1,5", 1.5), ("-,25", -0.25), ("1.5", 1.5)])
def test_decimals_can_have_a_point_or_a_comma(
    person: People, stage: Stage, typed: str, sent: float
) -> None:
    name = f"decimal{sent}{typed[1]}"
    stage.form(name, {**whole("size"), "kind": "number"})
    (ana,) = arrive([person("Ana")], name)
    field(ana, "size").fill("1,500")
    ana.get_by_role("button", name="Send answer").click()
    expect(question(ana, "size").locator(".problem")).to_have_text(
        "This can be read in two ways. Enter it without a comma."
    )
    field(ana, "size").fill(typed)
    field(ana, "size").blur()
    expect(field(ana, "size")).to_have_value(typed)
    ana.get_by_role("button", name="Send answer").click()
    expect(ana.locator(".outcome .review-row")).to_have_text(f"Size{sent:g}")


def test_outcome_is_placed_before_what_follows_and_gets_the_focus(
    person: People, stage: Stage
) -> None:
    uri = stage.form("order", text("name"))
    (ana,) = arrive([person("Ana")], "order")
    field(ana, "name").fill("Norway")
    field(ana, "name").press("Enter")
    card = ana.locator("section.outcome")
    expect(card).to_be_focused()
    stage.says(uri, "Norway it is.")
    expect(ana.locator(".prose")).to_have_text("Norway it is.")
    order = ana.locator(".turn :is(section.outcome, .prose, .note:visible)")
    expect(order).to_have_count(2)
    expect(order.nth(0)).to_contain_text("You answered “Some questions”")
    card.get_by_role("button", name="Hide").click()
    expect(order.nth(0)).to_contain_text("Ana answered “Some questions”. Name: Norway")


def test_long_review_starts_at_its_top(person: People, stage: Stage) -> None:
    stage.form("long-review", *(text(f"q{number}") for number in range(40)))
    (ana,) = arrive([person("Ana")], "long-review")
    field(ana, "q39").fill("the last")
    field(ana, "q39").press("Control+Enter")
    expect(ana.locator(".review-title")).to_be_in_viewport()
    expect(ana.get_by_role("button", name="Send answers")).to_be_focused()
    ana.keyboard.press("Enter")
    expect(ana.locator("section.outcome")).to_be_focused()
