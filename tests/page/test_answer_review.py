"""The review shows exactly what is sent."""

import pytest
from playwright.sync_api import Page, expect

from tests.page.browser import People
from tests.page.locators import arrive, field, goes_offline, press, question
from tests.page.stage import Stage, http, text, whole


def submits(page: Page, name: str, value: str) -> None:
    field(page, name).fill(value)
    question(page, name).get_by_role("button", name="Mark done").click()
    expect(question(page, name)).to_contain_text("Done by you")


def drafts(page: Page, name: str, value: str) -> None:
    field(page, name).fill(value)
    field(page, name).blur()


def two_people(person: People, stage: Stage, name: str) -> list[Page]:
    stage.form(name, whole("percent", defaultValue=10), text("note"))
    return arrive([person("Ana"), person("Ben")], name)


@pytest.mark.proves("design.calls.review")
def test_review_names_defaults_and_drafts_that_are_not_included(
    person: People, stage: Stage
) -> None:
    ana, ben = two_people(person, stage, "default")
    drafts(ben, "percent", "26")
    expect(question(ana, "percent")).to_contain_text("Draft by Ben")
    press(ana, "Review answers")
    row = ana.locator(".review-row").first
    expect(row.locator(".review-value")).to_have_text("10")
    expect(row).to_contain_text("Default. Ben’s draft “26” is not included.")
    press(ana, "Send answers")
    assert stage.sent("default") == {"percent": 10}


def test_discarded_or_emptied_draft_uncovers_the_answer(person: People, stage: Stage) -> None:
    ana, ben = two_people(person, stage, "discarded")
    submits(ana, "percent", "25")
    expect(question(ben, "percent")).to_contain_text("Done by Ana")
    drafts(ben, "percent", "26")
    expect(question(ana, "percent")).to_contain_text("Draft by Ben")
    question(ben, "percent").get_by_role("button", name="Discard draft").click()
    for page in (ana, ben):
        expect(field(page, "percent")).to_have_value("25")
        expect(question(page, "percent")).to_contain_text("Done by")
    drafts(ben, "percent", "26")
    expect(question(ana, "percent")).to_contain_text("Draft by Ben")
    field(ben, "percent").fill("")
    expect(question(ana, "percent")).to_contain_text("Done by you")
    expect(field(ben, "percent")).to_have_value("")
    field(ben, "percent").blur()
    expect(field(ben, "percent")).to_have_value("25")
    expect(question(ben, "percent")).to_contain_text("Done by Ana")
    question(ben, "percent").get_by_role("button", name="Clear").click()
    expect(question(ana, "percent")).to_contain_text("Default")


@pytest.mark.proves("design.calls.review-outdated")
def test_change_after_the_review_shows_a_new_review(person: People, stage: Stage) -> None:
    ana, ben = two_people(person, stage, "outdated")
    submits(ana, "percent", "25")
    expect(question(ben, "percent")).to_contain_text("Done by Ana")
    goes_offline(ana)
    press(ana, "Review answers")
    press(ana, "Send answers")
    expect(ana.locator(".progress-text")).to_contain_text("will be sent when you reconnect")
    submits(ben, "percent", "30")
    ana.context.set_offline(offline=False)
    expect(ana.locator(".request-foot .problem")).to_contain_text(
        "Changed after you reviewed it: “Percent”."
    )
    expect(ana.locator(".review-row").first).to_contain_text("30Answered by Ben")
    expect(ben.locator(".request")).to_be_visible()
    press(ana, "Send answers")
    assert stage.sent("outdated") == {"percent": 30}


@pytest.mark.proves("design.requests.answers-reopened")
def test_answer_to_a_changed_question_is_not_sent(person: People, stage: Stage) -> None:
    ana, ben = two_people(person, stage, "reworded")
    submits(ana, "note", "yes")
    stage.asks("ahp-session:/reworded", text("note", required=True), message="Delete everything?")
    for page, who in ((ana, "you"), (ben, "Ana")):
        expect(page.locator(".subject")).to_have_text("Delete everything?")
        expect(question(page, "note")).to_contain_text(
            f"Answered by {who} before the question changed"
        )
    press(ana, "Send answer")
    expect(question(ana, "note").locator(".problem")).to_contain_text("use it again")
    question(ana, "note").get_by_role("button", name="Use this answer").click()
    expect(question(ben, "note")).to_contain_text("Done by Ana")
    press(ana, "Send answer")
    assert stage.sent("reworded") == {"note": "yes"}


@pytest.mark.proves("design.requests.proposals")
def test_prefilled_answer_is_shown_as_default(person: People, stage: Stage) -> None:
    uri = stage.session("prefilled")
    stage.begins(uri)
    answer = {"state": "submitted", "value": {"kind": "text", "value": "yes"}}
    stage.asks(uri, text("note"), whole("age"), answers={"note": answer})
    (ana,) = arrive([person("Ana")], "prefilled")
    expect(field(ana, "note")).to_have_value("yes")
    expect(question(ana, "note")).to_contain_text("Default")
    press(ana, "Review answers")
    expect(ana.locator(".review-row").first).to_contain_text("yesDefault")


def test_outcome_names_who_stopped_the_turn(person: People, stage: Stage) -> None:
    ana, ben = two_people(person, stage, "stopped")
    http("DELETE", f"{stage.url}/v1/sessions/stopped/turns/active")
    for page in (ana, ben):
        expect(page.locator(".outcome-text")).to_contain_text("Someone stopped “Some questions”")
