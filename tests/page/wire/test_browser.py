"""The wire in a real browser: the same reducer, tabs as browsers make them, and plain HTTP."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from session_server.identity.binding import outside_address
from tests.npm_modules import ROOT
from tests.page.browser import PATIENCE_MS
from tests.page.wire.asking import ask, new_session
from tests.reducers.cases import FOLDER
from tests.servers import ServerProcess, serving

BLANK = "page/0/wire/ids.js"
"""A file of the page as a document of its own: the page's address without the page."""

LOAD = """async (options) => {
  const { Host } = await import("/page/0/wire/host.js");
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


@pytest.mark.slow
def test_every_case_of_the_corpus_holds_in_the_browser(
    server: ServerProcess, context: BrowserContext
) -> None:
    page = context.new_page()
    script = (ROOT / "tests/page/wire/corpus.js").read_text()
    script = script.replace("../../../web_demo/", f"{server.url}/page/0/")
    page.route(
        "**/corpus.js", lambda route: route.fulfill(body=script, content_type="text/javascript")
    )
    page.goto(f"{server.url}/{BLANK}")
    for path in sorted(FOLDER.glob("*.json")):
        if path.stem != "nulls":
            told = page.evaluate(
                "async ([name, file]) => (await import('/corpus.js')).runFile(name, file)",
                [path.stem, json.loads(path.read_text())],
            )
            assert told["faults"] == []
            assert told["ran"] > 0


@pytest.mark.slow
def test_a_tab_keeps_its_id_over_a_reload_and_its_duplicate_gets_another(
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


@pytest.mark.slow
def test_text_typed_right_before_a_reload_is_there_after_it(
    server: ServerProcess, context: BrowserContext
) -> None:
    uri = new_session(server.url)
    request = ask(server.url, uri)
    page = context.new_page()
    load(page, server.url)
    field = f"window.session.field({request!r}, 'name')"
    opened = f"window.session = host.open({uri!r})"
    page.evaluate(opened)
    until(page, "session.phase === 'open'")
    context.set_offline(True)
    page.evaluate(f"{field}.edit({{kind: 'text', value: 'Leeks'}})")
    context.set_offline(False)
    load(page, server.url)
    page.evaluate(opened)
    until(page, f"session.phase === 'open' && {field}.value?.value === 'Leeks'")
    until(page, f"!{field}.isDirty && session.confirmed.inputRequests[0].answers")


@pytest.mark.slow
def test_a_page_on_plain_http_in_a_lan_works(context: BrowserContext) -> None:
    """Where there is no `crypto.randomUUID` and no `crypto.subtle`."""
    address = outside_address()
    if address is None:
        pytest.skip("this machine has no address but loopback")
    token = "a-token-that-nobody-guesses"
    with serving("memory:", "--host", "0.0.0.0", "--connection-token", token) as server:
        page = context.new_page()
        load(page, f"http://{address}:{server.port}", token=token)
        assert page.evaluate("[isSecureContext, typeof crypto.randomUUID]") == [False, "undefined"]
