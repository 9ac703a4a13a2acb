"""Finding elements of the page."""

from collections.abc import Sequence

from playwright.sync_api import Locator, Page, expect

from tests.page.browser import Person


def question(page: Page, name: str) -> Locator:
    return page.locator(f"[data-question={name}]")


def field(page: Page, name: str) -> Locator:
    return question(page, name).locator(".field-input").first


def arrive(people: Sequence[Person], session: str) -> list[Page]:
    """All of them in one session, each seeing its form and the others."""
    pages = [each.goes_to(f"#/s/{session}") for each in people]
    for page in pages:
        expect(page.locator(".request")).to_be_visible()
        expect(page.locator(".person")).to_have_count(len(people))
    return pages


def goes_offline(page: Page) -> None:
    """Until the page has noticed: what was under way may still arrive."""
    page.context.set_offline(offline=True)
    expect(page.locator(".connection-text")).not_to_have_text("live", ignore_case=True)


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()
