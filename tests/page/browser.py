"""People in a real browser: Debian's Chromium, one context each, every wait bounded."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
PATIENCE_MS = 60_000
DESKTOP = {"width": 1280, "height": 860}
PHONE = {"width": 390, "height": 844}


WHOLE = ("chromium",)
"""As people have it."""

QUICK = ("chromium-headless-shell", *WHOLE)
"""The first has no windows of its own, and opens a page with an eighth of the work."""


def installed(programs: Sequence[str]) -> str:
    """The first of them that is there."""
    for path in map(shutil.which, programs):
        if path is not None:
            return path
    pytest.skip(f"there is no {programs[0]}; on Debian: apt install {programs[0]}")


@contextmanager
def chromium(programs: Sequence[str] = QUICK) -> Iterator[Browser]:
    path = installed(programs)
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        try:
            yield browser
        finally:
            browser.close()


class Person:
    """Somebody at a device of their own; what the page complains about is an error here."""

    def __init__(self, browser: Browser, url: str, name: str | None, **options: object) -> None:
        self.context: BrowserContext = browser.new_context(
            **{"viewport": DESKTOP, "locale": "en-GB", **options}  # type: ignore[arg-type]
        )
        self.context.set_default_timeout(PATIENCE_MS)
        self.url = url
        if name is not None:
            key = "session-server:name"
            # A browser's own page, as that for being offline, has no storage.
            script = f"try {{ localStorage.setItem({key!r}, {name!r}) }} catch {{}}"
            self.context.add_init_script(script)
        self.page: Page = self.context.new_page()
        self.complaints: list[str] = []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", self._heard)

    def _heard(self, message: object) -> None:
        text = f"{message.type}: {message.text}"  # type: ignore[attr-defined]
        if "Content Security Policy" in text or "TrustedHTML" in text:
            self.complaints.append(text)

    def goes_to(self, place: str = "") -> Page:
        self.page.goto(f"{self.url}/{place}")
        return self.page

    def closes(self) -> None:
        self.context.close()


People = Callable[..., Person]
"""People arrive by name, at a host, with options of their browser."""


def phone_options() -> dict[str, object]:
    return {
        "viewport": PHONE,
        "is_mobile": True,
        "has_touch": True,
        "device_scale_factor": 2,
    }
