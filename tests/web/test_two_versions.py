"""Two people in one field: neither text is lost, both know, and both end with the same."""

import re
import time
from collections.abc import Callable
from itertools import zip_longest

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.web.browser import Person
from tests.web.looking import arrive, field, goes_offline, question
from tests.web.stage import Stage, one_of, text

People = Callable[..., Person]
pytestmark = pytest.mark.slow

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
    return question(page, "plan").locator(".conflict:visible, .offer:visible")


def both(stage: Stage, person: People, session: str) -> tuple[Page, Page]:
    uri = stage.session(session)
    stage.begins(uri)
    stage.asks(uri, text("plan"), one_of("city", "Oslo", "Lisbon"))
    ana, ben = arrive([person("Ana"), person("Ben")], session)
    return ana, ben


def has_both(page: Page, *versions: str) -> None:
    """One in the field, the other beside it, once nobody writes any more."""
    page.wait_for_function(
        """versions => {
          const place = document.querySelector("[data-question=plan]");
          const aside = place.querySelector(":is(.conflict, .offer):not([hidden]) .their-words");
          const shown = [place.querySelector("textarea").value, aside?.textContent];
          return JSON.stringify(shown.sort()) === JSON.stringify(versions.sort());
        }""",
        arg=list(versions),
    )


@pytest.mark.parametrize(("chooser", "choice"), [(0, "mine"), (1, "theirs")])
def test_two_type_at_once_and_both_have_both_until_either_chooses(
    person: People, stage: Stage, chooser: int, choice: str
) -> None:
    pages = both(stage, person, f"once-{chooser}-{choice}")
    type_at_once(*pages)
    texts = [field(page, "plan").input_value() for page in pages]
    assert texts == [BOAT, TRAIN], "nothing changes under the hands of who writes"
    for page in pages:
        expect(question(page, "plan")).not_to_contain_text("writing")
        has_both(page, BOAT, TRAIN)

    page, mine = pages[chooser], texts[chooser]
    wanted = mine if choice == "mine" else texts[1 - chooser]
    is_shown = field(page, "plan").input_value() == wanted
    label = "Keep mine|Leave it" if is_shown else "Use theirs|Use mine"
    aside(page).locator("button").filter(has_text=_either(label)).click()
    for each in pages:
        expect(field(each, "plan")).to_have_value(wanted)
    if is_shown and choice == "theirs":
        # Whoever leaves it as it is says nothing, so the other still has to keep what stands there.
        for keep in aside(pages[1 - chooser]).get_by_role("button", name="Keep mine").all():
            keep.click()
    for each in pages:
        expect(question(each, "plan").locator(".conflict:visible")).to_have_count(0)
    # Whoever was overruled is told what of theirs did not get in; whoever chose knows.
    writer, other = pages if wanted == BOAT else reversed(pages)
    writer.keyboard.press("Control+Enter")
    writer.keyboard.press("Control+Enter")
    for each in pages:
        expect(each.locator(".outcome-row")).to_have_text(f"Plan{wanted}")
    assert writer.locator(".unsent").count() == 0
    assert other.locator(".unsent").count() == (choice == "mine")


def _either(words: str) -> re.Pattern[str]:
    return re.compile(f"^({words})$")


def test_a_text_that_gave_way_is_kept_and_said_to_be_unsent(person: People, stage: Stage) -> None:
    ana, ben = both(stage, person, "way")
    field(ana, "plan").fill(BOAT)
    field(ana, "plan").blur()
    expect(field(ben, "plan")).to_have_value(BOAT)
    field(ben, "plan").fill(TRAIN)
    expect(aside(ana)).to_contain_text("Ben changed this. Your text was:")
    ana.reload()
    expect(question(ana, "plan").locator(".offer")).to_contain_text(BOAT)
    ben.get_by_role("button", name="Review answers", exact=True).click()
    ben.get_by_role("button", name="Send answers", exact=True).click()
    stage.asks("ahp-session:/way", text("plan"), name="again")
    expect(question(ana, "plan").locator(".offer")).to_contain_text(BOAT)


def test_adding_to_a_text_takes_nothing_from_anyone(person: People, stage: Stage) -> None:
    ana, ben = both(stage, person, "more")
    field(ana, "plan").fill(BOAT)
    field(ana, "plan").blur()
    expect(field(ben, "plan")).to_have_value(BOAT)
    field(ben, "plan").press("End")
    field(ben, "plan").press_sequentially(" at noon")
    expect(field(ana, "plan")).to_have_value(f"{BOAT} at noon")
    expect(aside(ana)).to_have_count(0)


def test_who_chose_something_else_is_told_what_was_chosen_before(
    person: People, stage: Stage
) -> None:
    ana, ben = both(stage, person, "chosen")
    question(ana, "city").get_by_label("Oslo").check()
    expect(question(ben, "city").get_by_label("Oslo")).to_be_checked()
    field(ana, "plan").focus()
    question(ben, "city").get_by_label("Lisbon").check()
    offer = question(ana, "city").locator(".offer")
    expect(offer).to_contain_text("Ben changed this. Your choice was:")
    expect(question(ana, "city").get_by_label("Lisbon")).to_be_checked()
    offer.get_by_role("button", name="Use mine").click()
    expect(question(ben, "city").get_by_label("Oslo")).to_be_checked()


def test_a_draft_from_offline_never_goes_over_an_answer(person: People, stage: Stage) -> None:
    ana, ben = both(stage, person, "answered")
    goes_offline(ben)
    field(ben, "plan").press_sequentially(TRAIN)
    field(ana, "plan").fill(BOAT)
    question(ana, "plan").get_by_role("button", name="Mark done").click()
    expect(question(ana, "plan")).to_contain_text("Done by you")
    ben.context.set_offline(offline=False)
    expect(question(ben, "plan").locator(".conflict")).to_contain_text(BOAT)
    expect(question(ben, "plan")).not_to_contain_text("writing")
    expect(field(ben, "plan")).to_have_value(TRAIN)
    expect(question(ana, "plan")).to_contain_text("Done by you")
    question(ben, "plan").get_by_role("button", name="Keep mine").click()
    expect(field(ana, "plan")).to_have_value(TRAIN)
    expect(question(ana, "plan")).to_contain_text(f"“{BOAT}” by you counts")
    expect(aside(ana)).to_have_count(0)
