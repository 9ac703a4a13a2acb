"""Two people in one field: neither text is lost, and both end with the same."""

import time
from itertools import zip_longest

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.page.browser import People
from tests.page.locators import arrive, field, goes_offline, question
from tests.page.stage import Stage, http, one_of, text
from tests.waiting import wait_until

TRAIN, BOAT = "by train along the coast", "by boat to the islands"

FIRST_KEY = """([key, at]) => {
  setTimeout(() => document.execCommand("insertText", false, key), at - Date.now());
}"""


def type_at_once(ana: Page, ben: Page) -> None:
    """Both begin at the same moment; then a key of hers, a key of his, and so on."""
    begins_at = time.time() * 1000 + 1_000
    for page, words in ((ana, BOAT), (ben, TRAIN)):
        field(page, "plan").focus()
        page.evaluate(FIRST_KEY, [words[0], begins_at])
    for page in (ana, ben):
        expect(field(page, "plan")).not_to_have_value("")
    for hers, his in zip_longest(BOAT[1:], TRAIN[1:], fillvalue=""):
        ana.keyboard.type(hers)
        ben.keyboard.type(his)


def aside(page: Page) -> Locator:
    """The version that is not in the field."""
    return question(page, "plan").locator(".version:visible")


def both(stage: Stage, person: People, session: str) -> tuple[Page, Page]:
    stage.form(session, text("plan"), one_of("city", "Oslo", "Lisbon"))
    ana, ben = arrive([person("Ana"), person("Ben")], session)
    return ana, ben


@pytest.mark.parametrize("choice", ["Keep mine", "Use theirs"])
def test_of_two_people_typing_at_once_one_has_to_choose(
    person: People, stage: Stage, choice: str
) -> None:
    session = f"once-{choice[0]}"
    pages = both(stage, person, session)
    type_at_once(*pages)
    texts = [field(page, "plan").input_value() for page in pages]
    assert texts == [BOAT, TRAIN], "nothing changes under the hands of who writes"
    for page in pages:
        expect(question(page, "plan")).not_to_contain_text("writing")
    wait_until(lambda: host_has(stage, session) in texts)  # not only a part of one
    holder = texts.index(host_has(stage, session))
    other = pages[1 - holder]
    expect(aside(other)).to_contain_text(f"changed this to:{texts[holder]}")
    expect(field(other, "plan")).to_have_value(texts[1 - holder])
    expect(field(pages[holder], "plan")).to_have_value(texts[holder])
    expect(aside(pages[holder])).to_have_count(0)

    aside(other).get_by_role("button", name=choice).click()
    wanted = texts[1 - holder if choice == "Keep mine" else holder]
    for page in pages:
        expect(field(page, "plan")).to_have_value(wanted)
        expect(question(page, "plan").locator(".conflict:visible")).to_have_count(0)
    other.keyboard.press("Control+Enter")
    other.keyboard.press("Control+Enter")
    for page in pages:
        expect(page.locator(".outcome .review-row")).to_have_text(f"Plan{wanted}")
    # Only the person whose text was replaced sees what was not included.
    assert other.locator(".unsent").count() == 0
    assert pages[holder].locator(".unsent").count() == (choice == "Keep mine")


def test_replaced_text_is_offered_over_reloads_and_new_requests(
    person: People, stage: Stage
) -> None:
    ana, ben = both(stage, person, "way")
    field(ana, "plan").fill(BOAT)
    field(ana, "plan").blur()
    expect(field(ben, "plan")).to_have_value(BOAT)
    field(ben, "plan").fill(TRAIN)
    expect(aside(ana)).to_contain_text("Ben changed this. Your text was:")
    ana.reload()
    expect(aside(ana)).to_contain_text(f"Ben changed this. Your text was:{BOAT}")
    ben.get_by_role("button", name="Review answers", exact=True).click()
    ben.get_by_role("button", name="Send answers", exact=True).click()
    stage.asks("ahp-session:/way", text("plan"), name="again")
    expect(question(ana, "plan").locator(".version")).to_contain_text(BOAT)


def test_an_unsent_text_of_a_closed_tab_is_offered_where_the_same_is_asked_again(
    person: People, stage: Stage
) -> None:
    uri = stage.form("tab", text("plan"))
    ana = person("Ana")
    page = ana.goes_to("#/s/tab")
    field(page, "plan").focus()
    goes_offline(page)
    field(page, "plan").fill(BOAT)
    expect(question(page, "plan")).to_contain_text("not saved yet")
    page.close()
    ana.context.set_offline(offline=False)
    http("POST", f"{stage.url}/v1/sessions/tab/requests/r/complete", {"response": "decline"})
    stage.asks(uri, text("plan"), name="again")
    page = ana.context.new_page()
    page.goto(f"{stage.url}/#/s/tab")
    offer = question(page, "plan").locator(".version")
    expect(offer).to_contain_text(f"You have an earlier draft:{BOAT}")
    box, input_box = offer.bounding_box(), field(page, "plan").bounding_box()
    assert box
    assert input_box
    assert box["width"] == input_box["width"], "below the input and as wide"
    offer.get_by_role("button", name="Use it").click()
    expect(field(page, "plan")).to_have_value(BOAT)


def test_text_that_contains_the_other_one_replaces_nothing(person: People, stage: Stage) -> None:
    ana, ben = both(stage, person, "more")
    field(ana, "plan").fill(BOAT)
    field(ana, "plan").blur()
    expect(field(ben, "plan")).to_have_value(BOAT)
    field(ben, "plan").press("End")
    field(ben, "plan").press_sequentially(" at noon")
    expect(field(ana, "plan")).to_have_value(f"{BOAT} at noon")
    expect(aside(ana)).to_have_count(0)


def test_replaced_choice_is_offered_to_its_author(person: People, stage: Stage) -> None:
    ana, ben = both(stage, person, "chosen")
    question(ana, "city").get_by_label("Oslo").check()
    expect(question(ben, "city").get_by_label("Oslo")).to_be_checked()
    field(ana, "plan").focus()
    question(ben, "city").get_by_label("Lisbon").check()
    offer = question(ana, "city").locator(".version")
    expect(offer).to_contain_text("Ben changed this. Your choice was:")
    expect(question(ana, "city").get_by_label("Lisbon")).to_be_checked()
    offer.get_by_role("button", name="Use mine").click()
    expect(question(ben, "city").get_by_label("Oslo")).to_be_checked()


def draft(page: Page, words: str) -> None:
    field(page, "plan").fill(words)
    field(page, "plan").blur()


def offline_edits(ana: Page, ben: Page, hers: str, his: str) -> None:
    """Ana writes without a connection; Ben writes later than she does; then she is back."""
    goes_offline(ana)
    draft(ana, hers)
    draft(ben, his)
    expect(question(ben, "plan")).to_contain_text("Draft saved")
    ana.context.set_offline(offline=False)
    expect(aside(ana)).to_contain_text(f"Ben changed this to:{his}")


def host_has(stage: Stage, session: str) -> str:
    record = http("GET", f"{stage.url}/v1/sessions/{session}/requests/r")
    held: str = record.get("request", record)["answers"]["plan"]["value"]["value"]
    return held


def test_only_one_alternative_is_shown_at_a_time(person: People, stage: Stage) -> None:
    ana, ben = both(stage, person, "stacked")
    draft(ana, "by car")
    expect(field(ben, "plan")).to_have_value("by car")
    draft(ben, "on foot")
    expect(aside(ana)).to_contain_text("Ben changed this. Your text was:by car")
    offline_edits(ana, ben, BOAT, TRAIN)
    expect(aside(ana)).to_have_count(1)
    ana.reload()
    expect(aside(ana)).to_contain_text(f"Ben changed this to:{TRAIN}")
    expect(aside(ana)).to_have_count(1)
    expect(field(ana, "plan")).to_have_value(BOAT)
    aside(ana).get_by_role("button", name="Use theirs").click()
    expect(field(ana, "plan")).to_have_value(TRAIN)
    expect(aside(ana)).to_have_count(0)


def test_conflict_message_disappears_after_choosing(person: People, stage: Stage) -> None:
    ana, ben = both(stage, person, "demand")
    offline_edits(ana, ben, BOAT, TRAIN)
    ana.get_by_role("button", name="Review answers").click()
    ana.get_by_role("button", name="Send answers").click()
    problem = question(ana, "plan").locator(".problem")
    expect(problem).to_have_text("Choose a version before sending.")
    aside(ana).get_by_role("button", name="Keep mine").click()
    expect(problem).to_be_hidden()
    expect(field(ben, "plan")).to_have_value(BOAT)
