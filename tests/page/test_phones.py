"""On phones the form has most of the screen."""

import pytest
from playwright.sync_api import Page, expect

from tests.page.browser import People, phone_options
from tests.page.stage import Stage, http, many_of, one_of, text, whole, yes_no

SIZES = {"portrait": (390, 844), "landscape": (844, 390), "small": (320, 568)}
MOST = 0.5
"""Of the height of the screen, at least, for the questions."""

VISIBLE = """() => {
  const body = document.querySelector(".request-body, .request-review:not([hidden])");
  body.scrollIntoView({ block: "center" });
  const scroller = document.querySelector(".scroller").getBoundingClientRect();
  let { top, bottom } = body.getBoundingClientRect();
  top = Math.max(top, scroller.top);
  bottom = Math.min(bottom, scroller.bottom);
  for (const each of document.querySelectorAll(".request-foot, .strip, .name-prompt, .banner")) {
    const over = each.getBoundingClientRect();
    if (over.height < 2 || over.bottom <= top || over.top >= bottom) continue;
    if (over.top - top < bottom - over.bottom) top = over.bottom;
    else bottom = over.top;
  }
  return bottom - top;
}"""


@pytest.fixture(scope="module")
def link(stage: Stage) -> str:
    stage.form(
        "phones",
        text("name", required=True),
        one_of("city", "Oslo", "Lisbon"),
        whole("people", min=1),
        yes_no("quick"),
        many_of("food", "Bread", "Soup", "Figs"),
        text("note"),
        title="Release planning",
    )
    url: str = http("POST", f"{stage.url}/v1/sessions/phones/shares", {"role": "answerer"})["url"]
    return url


@pytest.mark.parametrize("size", SIZES)
def test_form_has_most_of_a_phones_screen(person: People, link: str, size: str) -> None:
    width, height = SIZES[size]
    person("Ben").goes_to("#/s/phones")
    viewport = {"width": width, "height": height}
    page = person(None, **{**phone_options(), "viewport": viewport}).page
    page.goto(link)
    expect(page.locator(".request")).to_be_visible()
    expect(page.locator(".name-prompt")).to_be_visible()
    before = page.evaluate(VISIBLE)
    assert before > MOST * height
    in_one_row(page)
    field = page.locator("[data-question=note] .field-input")
    field.focus()
    assert page.evaluate(VISIBLE) > before  # the foot is where the form ends
    page.get_by_role("button", name="Review answers").click()
    expect(page.locator(".review")).to_be_visible()
    in_one_row(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def in_one_row(page: Page) -> None:
    """The actions of the form, each of them large enough for a finger."""
    boxes = [each.bounding_box() for each in page.locator(".request-foot button:visible").all()]
    assert len({round(box["y"]) for box in boxes if box}) == 1
    assert all(box and box["height"] >= 44 for box in boxes)
    width = page.evaluate("innerWidth")
    assert all(box and box["x"] >= 0 and box["x"] + box["width"] <= width for box in boxes)


def test_guest_banner_is_a_toast_on_a_phone(person: People, link: str) -> None:
    page = person(None, **phone_options()).page
    page.goto(link)
    expect(page.locator(".toast")).to_contain_text("You can answer questions.")
    box = page.locator(".banner").bounding_box()
    assert box["height"] < 2
