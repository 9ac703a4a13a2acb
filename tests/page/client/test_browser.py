"""The client in a real browser: reducers, tabs, back/forward cache, suspended pages, storage."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.page.browser import FLAGS, PATIENCE_MS, WHOLE, installed
from tests.page.client.open_requests import ask, get, new_session
from tests.page.client.relay import relaying
from tests.servers import ServerProcess

BLANK = "page/0/client/events.js"
"""A file of the page as a document of its own: the page's address without the page."""

LOAD = """async (options) => {
  const { Host } = await import("/page/0/client/host.js");
  window.host = new Host({ url: "/ahp", ...options }); // this document is not where the page is
  host.start();
  return host.clientId;
}"""


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context()
    context.set_default_timeout(PATIENCE_MS)
    yield context
    context.close()


def until(page: Page, expression: str) -> None:
    """Asked from outside: the page's own policy lets nothing be evaluated in it."""
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while not page.evaluate(expression):
        assert time.monotonic() < deadline, expression
        page.wait_for_timeout(20)


def load(page: Page, url: str, **options: Any) -> str:
    page.goto(f"{url}/{BLANK}")
    identity: str = page.evaluate(LOAD, options)
    until(page, "host.status.phase === 'live'")
    return identity


def test_tab_keeps_its_id_over_a_reload_and_a_duplicate_gets_another(
    server: ServerProcess, context: BrowserContext
) -> None:
    page = context.new_page()
    identity = load(page, server.url)
    with context.expect_page() as opened:
        page.evaluate("path => void window.open(path)", f"/{BLANK}")
    twin = opened.value
    twin.wait_for_load_state()
    assert twin.evaluate("sessionStorage.getItem('session-server:tab')") is None
    assert twin.evaluate(LOAD, {}) != identity
    page.reload()
    assert page.evaluate(LOAD, {}) == identity


NEVER_MS = 3_600_000
PATIENT = {"timeout": NEVER_MS}
"""Only a page that wakes up notices that its connection is dead."""

SILENT = {"timeout": 1_000, "quiet": NEVER_MS}
"""Only a page that has sent something does."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """As people have it: Playwright turns off what keeps pages in memory."""
    path = installed(WHOLE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path,
            args=[*FLAGS, "--enable-features=BackForwardCache"],
            ignore_default_args=["--disable-back-forward-cache"],
        )
        yield browser
        browser.close()


class Asked:
    """A session with an open request, and how to look at it."""

    def __init__(self, server: ServerProcess) -> None:
        self.url = server.url
        self.uri = new_session(server.url)
        self.request = ask(server.url, self.uri)

    def opened(self, page: Page, url: str | None = None, **options: Any) -> Page:
        load(page, url or self.url, **options)
        return self.looked_at(page)

    def looked_at(self, page: Page) -> Page:
        page.evaluate("uri => { window.session = host.open(uri); }", self.uri)
        until(page, "session.phase === 'open'")
        return page

    def types(self, page: Page, text: str, question: str = "name") -> None:
        page.evaluate(
            "([request, question, value]) => "
            "session.field(request, question).edit({ kind: 'text', value })",
            [self.request, question, text],
        )

    def shown(self, page: Page, question: str = "name") -> str | None:
        field = "([request, question]) => session.field(request, question).value?.value"
        shown: str | None = page.evaluate(field, [self.request, question])
        return shown

    def until_held(self, text: str, question: str = "name", seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        held = None
        while held != text:
            assert time.monotonic() < deadline, held
            time.sleep(0.05)
            (request,) = get(self.url, self.uri)["inputRequests"]
            held = request.get("answers", {}).get(question, {}).get("value", {}).get("value")


@pytest.fixture
def asked(server: ServerProcess) -> Asked:
    return Asked(server)


def test_page_from_the_back_forward_cache_reconnects(context: BrowserContext, asked: Asked) -> None:
    page = asked.opened(context.new_page())
    identity = page.evaluate("host.clientId")
    page.evaluate("addEventListener('pageshow', (event) => { window.kept = event.persisted; })")
    context.set_offline(True)
    asked.types(page, "Leeks")
    context.set_offline(False)
    page.goto(f"{asked.url}/icon.svg")
    page.go_back(wait_until="commit")
    assert page.evaluate("window.kept") is True
    asked.until_held("Leeks")
    until(page, "host.status.phase === 'live'")
    assert page.evaluate("host.clientId") == identity
    asked.types(page, "Leeks and kale")
    asked.until_held("Leeks and kale")


@pytest.mark.parametrize(
    "wakes",
    [
        "dispatchEvent(new Event('online'))",
        "document.dispatchEvent(new Event('visibilitychange'))",
    ],
    ids=["online", "visibilitychange"],
)
def test_dead_connection_is_replaced_when_the_page_wakes_up(
    context: BrowserContext, server: ServerProcess, asked: Asked, wakes: str
) -> None:
    with relaying(server.port) as relay:
        page = asked.opened(context.new_page(), relay.url, connection=PATIENT)
        relay.fall_silent()
        asked.types(page, "Leeks")
        page.evaluate(wakes)
        asked.until_held("Leeks")
        until(page, "host.status.phase === 'live'")


def test_draft_sent_to_a_dead_connection_is_sent_again(
    context: BrowserContext, server: ServerProcess, asked: Asked
) -> None:
    """Nothing says that the machine was asleep."""
    with relaying(server.port) as relay:
        page = asked.opened(context.new_page(), relay.url, connection=SILENT)
        relay.fall_silent()
        asked.types(page, "Leeks")
        until(page, "host.status.phase === 'syncing'")
        asked.until_held("Leeks")


def test_two_tabs_keep_their_own_drafts(context: BrowserContext, asked: Asked) -> None:
    one, other = (asked.opened(context.new_page()) for _ in range(2))
    assert one.evaluate("host.clientId") != other.evaluate("host.clientId")
    context.set_offline(True)
    asked.types(one, "Leeks", "name")
    asked.types(other, "by the fence", "note")
    context.set_offline(False)
    identities = [page.evaluate("host.clientId") for page in (one, other)]
    for page in (one, other):
        page.goto(f"{asked.url}/{BLANK}")
    for page, identity in zip((one, other), identities, strict=True):
        assert page.evaluate(LOAD, {}) == identity
        asked.looked_at(page)
    asked.until_held("Leeks", "name")
    asked.until_held("by the fence", "note")
    for page in (one, other):
        until(page, "session.waiting === 0")
        assert page.evaluate("Object.keys(localStorage).filter((k) => /draft/.test(k))") == []


def test_different_offline_texts_in_two_tabs_are_both_kept(
    context: BrowserContext, asked: Asked
) -> None:
    one, other = (asked.opened(context.new_page()) for _ in range(2))
    context.set_offline(True)
    asked.types(one, "Leeks")
    asked.types(other, "Kale")
    context.set_offline(False)
    for page in (one, other):
        until(page, "host.status.phase === 'live' && session.waiting === 0")
    field = f"session.field({asked.request!r}, 'name')"
    versions = {
        text
        for page in (one, other)
        for text in page.evaluate(f"[{field}.value?.value, {field}.alternative?.value?.value]")
    }
    assert {"Leeks", "Kale"} <= versions


FILL = """() => {
  let size = 1 << 22;
  for (let count = 0; size > 0; count += 1) {
    try { localStorage.setItem(`junk${count}`, "x".repeat(size)); } catch { size >>= 1; }
  }
}"""
BLOCK = (
    "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('no'); } });"
)
BLOCK_TAB = BLOCK.replace("localStorage", "sessionStorage")


@pytest.mark.parametrize("trouble", ["full", "blocked"])
def test_page_works_without_storage(context: BrowserContext, asked: Asked, trouble: str) -> None:
    complaints: list[str] = []
    page = context.new_page()
    page.on("pageerror", lambda error: complaints.append(str(error)))
    if trouble == "blocked":
        page.add_init_script(BLOCK + BLOCK_TAB)
    page.goto(f"{asked.url}/{BLANK}")
    if trouble == "full":
        page.evaluate(FILL)
    asked.opened(page)
    page.evaluate("host.setName('Ana')")
    context.set_offline(True)
    asked.types(page, "Leeks" * 40)
    page.evaluate("void session.rename('Long beds')")
    context.set_offline(False)
    asked.until_held("Leeks" * 40)
    until(page, "session.confirmed.summary.title === 'Long beds' && host.me?.name === 'Ana'")
    assert complaints == []
