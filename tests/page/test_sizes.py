"""The page with large data; `benchmarks/page` has the numbers."""

import pytest
from playwright.sync_api import Browser, expect

from benchmarks.page.sizes import OPTIONS, QUESTIONS, SIZES, TURNS, Size, fill, measured
from tests.page.browser import People
from tests.page.locators import question
from tests.page.stage import Stage
from tests.servers import ServerProcess

FIRST_PAINT_MS = 20_000
LATENCY_MS = 1_000
"""Many times what an idle machine needs: these find what grows with the square of something."""


@pytest.fixture(scope="module")
def filled(stage: Stage) -> None:
    fill(stage)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: size.name)
def test_page_stays_fast_with_large_data(
    filled: None, browser: Browser, host: ServerProcess, size: Size
) -> None:
    figures = measured(browser, host.url, size)
    assert figures.first_paint_ms < FIRST_PAINT_MS
    assert figures.latency_ms < LATENCY_MS


def test_one_of_many_options_can_be_found_and_chosen(filled: None, person: People) -> None:
    ana = person("Ana").goes_to("#/s/options")
    pick = question(ana, "pick")
    pick.get_by_label("Search the options").fill(f"number {OPTIONS - 1}")
    pick.get_by_label(f"Option number {OPTIONS - 1}").check()
    expect(pick.locator(".choice-count")).to_contain_text(f"1 of {OPTIONS} match")
    pick.get_by_label("Search the options").fill("")
    expect(pick.locator(".choice-count")).to_have_text(f"Chosen: Option number {OPTIONS - 1}")
    # The list grows as it is scrolled.
    before = pick.locator(".choice").count()
    pick.locator(".choices").evaluate("list => list.scrollTop = list.scrollHeight")
    expect(pick.locator(".choice")).not_to_have_count(before)


def test_every_question_of_a_long_form_can_be_reached(filled: None, person: People) -> None:
    ana = person("Ana").goes_to("#/s/questions")
    expect(ana.locator(".mark")).to_have_count(QUESTIONS)
    ana.locator(".mark").last.click()
    expect(question(ana, f"q{QUESTIONS - 1}").locator(".field-input")).to_be_focused()


def test_long_history_is_rendered_from_its_end(filled: None, person: People) -> None:
    ana = person("Ana").goes_to("#/s/turns")
    expect(ana.locator(".message-text").last).to_have_text(f"Question number {TURNS - 1}")
    few = ana.locator(".turn").count()
    assert few < TURNS
    ana.locator(".scroller").evaluate("scroller => scroller.scrollTop = 0")
    expect(ana.locator(".turn")).not_to_have_count(few)
