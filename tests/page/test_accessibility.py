"""Accessibility: axe-core, screen readers, reduced motion, forced colours."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.npm_modules import npm_script
from tests.page.browser import People, Person, phone_options
from tests.page.locators import arrive, field, question
from tests.page.scenes import SCENES, set_the_scene
from tests.page.stage import Stage, many_of, one_of, text
from tests.servers import ServerProcess

RUN = """async () => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  const words = node => `${node.target} ${node.failureSummary}`;
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(words).join(" | ")}`);
}"""

DEVICES: dict[str, dict[str, object]] = {
    "desktop, light": {"color_scheme": "light"},
    "phone, dark": {"color_scheme": "dark", **phone_options()},
}
"""Every view in both themes, and on both devices."""


@pytest.fixture(scope="module")
def scene(stage: Stage) -> None:
    set_the_scene(stage)


@pytest.fixture(scope="module", params=DEVICES)
def visitor(
    request: pytest.FixtureRequest, browser: Browser, host: ServerProcess, scene: None
) -> Iterator[Person]:
    options = {**DEVICES[request.param], "reduced_motion": "reduce"}
    visitor = Person(browser, host.url, "Ana", **options)
    # The page's own policy keeps scripts of others out, so this one comes from the tool.
    visitor.context.add_init_script(path=npm_script("axe-core", "axe.min.js"))
    yield visitor
    visitor.closes()


@pytest.mark.parametrize("name", SCENES)
def test_axe_finds_no_violation(visitor: Person, name: str) -> None:
    place, shows, act = SCENES[name]
    is_phone = visitor.page.viewport_size is not None and visitor.page.viewport_size["width"] < 760
    page = visitor.goes_to(f"?view={name}{place}")
    act(page)
    expect(page.locator(shows).first).to_be_visible()
    assert page.evaluate(RUN) == []
    if is_phone:
        assert_fits(page)


TAPPED = "button, a.button, a.icon-button, .choice, .field-input, summary"
IN_TEXT = ".link, .skip-link, .row-archive, .reasoning > summary, .edit > summary"
TARGET = 40
"""The page means 44; borders and rounding take a little."""

SMALL = """([tapped, inText, target]) => [...document.querySelectorAll(tapped)]
  .filter(e => e.checkVisibility() && !e.matches(inText))
  .map(e => [e.className, e.textContent, e.getBoundingClientRect().height])
  .filter(([, , height]) => height > 0 && height < target)"""

TINY = """() => [...document.querySelectorAll("input, textarea, select")]
  .filter(e => !["radio", "checkbox"].includes(e.type) && !e.readOnly && e.checkVisibility())
  .filter(e => parseFloat(getComputedStyle(e).fontSize) < 16)
  .map(e => e.className)"""


def assert_fits(page: Page) -> None:
    """Nothing is wider than the phone, and what one taps or types in is big enough."""
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(SMALL, [TAPPED, IN_TEXT, TARGET]) == []
    assert page.evaluate(TINY) == []


def test_new_question_is_announced_without_moving_the_focus(person: People, stage: Stage) -> None:
    uri = stage.session("announced")
    stage.begins(uri)
    ana = person("Ana").goes_to("#/s/announced")
    ana.locator(".composer-text").focus()
    stage.asks(uri, text("name"), text("place"), message="Two small things")
    expect(ana.locator("#announcer")).to_have_text("New question: Two small things, 2 questions")
    expect(ana.locator("#announcer")).to_have_attribute("aria-live", "polite")
    expect(ana.locator(".composer-text")).to_be_focused()


def test_every_question_is_a_named_group(person: People, stage: Stage) -> None:
    stage.form("groups", text("name", required=True), one_of("city", "Oslo", "Lisbon"))
    (ana,) = arrive([person("Ana")], "groups")
    expect(ana.get_by_role("group", name="Name Required")).to_be_visible()
    expect(ana.get_by_role("textbox", name="Name")).to_be_visible()
    city = ana.get_by_role("group", name="City Optional")
    expect(city.get_by_role("radio", name="Oslo")).to_be_visible()


def test_reduced_motion_disables_animations(person: People, stage: Stage) -> None:
    uri = stage.session("still")
    stage.begins(uri)
    ana = person("Ana", reduced_motion="reduce").goes_to("#/s/still")
    expect(ana.locator(".working")).to_be_visible()
    assert ana.evaluate("document.getAnimations().length") == 0


CHOSEN = """selector => [...document.querySelectorAll(selector)]
  .map((place) => getComputedStyle(place).outlineStyle)"""


def test_chosen_option_is_visible_in_forced_colours(person: People, stage: Stage) -> None:
    stage.form("forced", one_of("city", "Oslo", "Lisbon"), text("name"))
    (ana,) = arrive([person("Ana", forced_colors="active")], "forced")
    question(ana, "city").get_by_label("Lisbon").check()
    field(ana, "name").focus()
    assert ana.evaluate(CHOSEN, "[data-question=city] .choice") == ["none", "solid"]
    assert ana.evaluate(CHOSEN, ".row-link[aria-current=page]") == ["solid"]
    assert ana.evaluate(CHOSEN, ".filter[aria-pressed=true]") == ["solid"]


def test_unchosen_option_is_empty_in_dark_mode(person: People, stage: Stage) -> None:
    stage.form("dark", one_of("city", "Oslo", "Lisbon"), many_of("food", "Bread", "Soup"))
    (ana,) = arrive([person("Ana", color_scheme="dark")], "dark")
    for radio in question(ana, "city").get_by_role("radio").all():
        expect(radio).to_have_css("appearance", "none")
        expect(radio).to_have_css("background-color", "rgba(0, 0, 0, 0)")
    question(ana, "food").get_by_label("Bread").check()
    expect(question(ana, "food").get_by_label("Bread")).to_have_css("appearance", "auto")
    expect(question(ana, "food").get_by_label("Soup")).to_have_css("appearance", "none")
