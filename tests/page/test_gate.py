"""Without access: the message, and the input for a token or link."""

import json
import re
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.npm_modules import npm_script
from tests.page.browser import People, phone_options
from tests.page.locators import field
from tests.page.test_accessibility import DEVICES, RUN, assert_fits
from tests.servers import ServerProcess, serving

TOKEN = "a-token-for-this-test"
DEADLINE = 20
SHARES = "/v1/sessions/demo/shares"
JARGON = re.compile("Bearer|tkn|credential|Authorization|Loading|host's owner")


@pytest.fixture(scope="module")
def guarded() -> Iterator[ServerProcess]:
    with serving("memory:", "--demo", "--connection-token", TOKEN) as server:
        yield server


def as_owner(server: ServerProcess, method: str, path: str, body: object = None) -> Any:
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(server.url + path, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def shared(server: ServerProcess, **wanted: object) -> str:
    url: str = as_owner(server, "POST", SHARES, {"role": "answerer", **wanted})["url"]
    return url


def says(page: Page, title: str, text: str) -> None:
    """It is shown once, plainly, and without the page around it."""
    expect(page.get_by_role("heading", name=title)).to_be_visible()
    expect(page.locator(".gate-text")).to_contain_text(text)
    expect(page.locator(".panes")).to_be_hidden()
    expect(page.locator(".connection-bar")).to_be_hidden()
    expect(page).to_have_title(re.compile(title))
    assert not JARGON.search(page.locator("body").inner_text())


def test_token_is_asked_for_kept_and_forgotten(person: People, guarded: ServerProcess) -> None:
    ana = person("Ana", guarded.url).goes_to()
    says(ana, "You need a link to get in", "open the link they sent")
    entry = ana.get_by_label("A link or a token")
    entry.fill("no-token-of-this-host")
    ana.get_by_role("button", name="Open").click()
    expect(ana.get_by_role("alert").filter(has_text="isn't valid here")).to_be_visible()
    expect(entry).to_have_value("no-token-of-this-host")
    entry.fill(TOKEN)
    entry.press("Enter")
    expect(ana.locator(".session-row").first).to_be_visible()
    expect(ana.locator(".gate")).to_be_hidden()
    ana.reload()
    expect(ana.locator(".session-row").first).to_be_visible()

    ana.get_by_role("button", name="Settings").click()
    ana.get_by_role("menuitem", name="Forget this token").click()
    says(ana, "You need a link to get in", "paste the link")
    ana.reload()
    says(ana, "You need a link to get in", "paste the link")


@pytest.mark.parametrize("options", DEVICES.values(), ids=DEVICES)
def test_gate_is_accessible(
    person: People, guarded: ServerProcess, options: dict[str, object]
) -> None:
    visitor = person(None, guarded.url, **options, reduced_motion="reduce")
    visitor.context.add_init_script(path=npm_script("axe-core", "axe.min.js"))
    page = visitor.goes_to("?tkn=half-of-a-link#/s/demo")
    says(page, "This link does not work", "Ask the person who sent it for a new one.")
    assert "tkn" not in page.url
    assert page.evaluate(RUN) == []
    if "has_touch" in options:
        assert_fits(page)


def test_pasted_link_opens_its_session(person: People, guarded: ServerProcess) -> None:
    guest = person(None, guarded.url, **phone_options()).goes_to()
    guest.get_by_label("A link or a token").fill(shared(guarded))
    guest.get_by_role("button", name="Open").tap()
    expect(guest.locator(".request")).to_be_visible()
    assert guest.url.endswith("#/s/demo")
    expect(guest.locator(".banner")).to_contain_text("You can answer questions.")


def test_expired_link_shows_a_message_and_keeps_drafts(
    person: People, guarded: ServerProcess
) -> None:
    url = shared(guarded, expiresIn=8)
    guest = person(None, guarded.url, **phone_options()).page
    guest.goto(url)
    field(guest, "name").fill("Norway")
    says(guest, "This link has expired", "Ask the person who sent it for a new one.")
    late = person(None, guarded.url, **phone_options()).page
    late.goto(url)
    says(late, "This link has expired", "Ask the person who sent it for a new one.")
    # A new link, and they are where they were.
    guest.get_by_label("A link or a token").fill(shared(guarded))
    guest.get_by_role("button", name="Open").tap()
    expect(field(guest, "name")).to_have_value("Norway")


def test_guest_of_one_session_cannot_create_others(person: People, guarded: ServerProcess) -> None:
    guest = person(None, guarded.url).page
    guest.goto(shared(guarded, role="owner"))
    expect(guest.get_by_role("button", name="Share", exact=True)).to_be_visible()
    expect(guest.get_by_role("button", name="New session")).to_have_count(0)
    guest.locator(".session-title").click()
    guest.keyboard.press("n")
    expect(guest.get_by_role("dialog")).to_have_count(0)
    owner = person("Ana", guarded.url).goes_to(f"?tkn={TOKEN}")
    expect(owner.get_by_role("button", name="New session").first).to_be_visible()


def owning(page: Page) -> None:
    expect(page.locator(".session-row").first).to_be_visible()
    expect(page.get_by_role("button", name="New session").first).to_be_visible()


def watching(page: Page) -> None:
    expect(page.locator(".banner")).to_contain_text("You can view this session")


def test_link_does_not_replace_the_owners_access(person: People, guarded: ServerProcess) -> None:
    owner = person("Ana", guarded.url)
    page = owner.goes_to(f"?tkn={TOKEN}")
    owning(page)
    expect(page.locator(".link-bar")).to_be_hidden()
    page.goto(shared(guarded, role="observer"))
    watching(page)
    bar = page.locator(".link-bar")
    expect(bar).to_contain_text("New tabs use the access that this browser had before.")
    expect(bar.get_by_role("button")).to_have_text(["Use my access here", "Close"])
    page.reload()
    watching(page)
    another = owner.context.new_page()
    another.goto(f"{guarded.url}/#/s/demo")
    owning(another)
    expect(another.locator(".link-bar")).to_be_hidden()
    bar.get_by_role("button", name="Use my access here").click()
    owning(page)
    expect(bar).to_be_hidden()
    page.reload()
    owning(page)


@pytest.mark.parametrize("options", DEVICES.values(), ids=DEVICES)
def test_link_bar_is_accessible(
    person: People, guarded: ServerProcess, options: dict[str, object]
) -> None:
    visitor = person(None, guarded.url, **options, reduced_motion="reduce")
    visitor.context.add_init_script(path=npm_script("axe-core", "axe.min.js"))
    page = visitor.goes_to(f"?tkn={TOKEN}")
    expect(page.locator(".session-row").first).to_be_visible()
    page.goto(shared(guarded))
    expect(page.locator(".link-bar")).to_be_visible()
    assert page.evaluate(RUN) == []
    if "has_touch" in options:
        assert_fits(page)
    page.get_by_role("button", name="Close", exact=True).click()
    expect(page.locator(".link-bar")).to_be_hidden()


def test_link_replaces_the_kept_access_on_request(person: People, guarded: ServerProcess) -> None:
    issued = as_owner(guarded, "POST", "/v1/tokens", {"name": "Bo", "role": "observer"})["token"]
    visitor = person(None, guarded.url)
    page = visitor.goes_to(f"?tkn={issued}")
    expect(page.locator(".session-row").first).to_be_visible()
    page.goto(f"{guarded.url}/?tkn={TOKEN}")
    owning(page)
    page.get_by_role("button", name="Use the link everywhere").click()
    expect(page.locator(".link-bar")).to_be_hidden()
    another = visitor.context.new_page()
    another.goto(f"{guarded.url}/")
    owning(another)


def test_each_link_is_used_for_its_session_in_new_tabs(
    person: People, guarded: ServerProcess
) -> None:
    deploy = as_owner(guarded, "POST", "/v1/sessions/deploy/shares", {"role": "observer"})["url"]
    guest = person(None, guarded.url)
    for url in (shared(guarded), deploy):
        guest.page.goto(url)
        expect(guest.page.locator(".session-title")).to_be_visible()
    for name, words in (("demo", "You can answer"), ("deploy", "You can view this session")):
        page = guest.context.new_page()
        page.goto(f"{guarded.url}/#/s/{name}")
        expect(page.locator(".banner")).to_contain_text(words)


def test_forgetting_a_link_keeps_the_owners_access(person: People, guarded: ServerProcess) -> None:
    page = person("Ana", guarded.url).goes_to(f"?tkn={TOKEN}")
    owning(page)
    page.goto(shared(guarded, role="observer"))
    watching(page)
    page.get_by_role("button", name="Settings").click()
    page.get_by_role("menuitem", name="Forget this token").click()
    owning(page)


def test_no_request_has_the_token_in_its_address(person: People, guarded: ServerProcess) -> None:
    page = person(None, guarded.url).page
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("websocket", lambda socket: asked.append(socket.url))
    link = shared(guarded)
    page.goto(link)
    expect(page.locator(".banner")).to_contain_text("You can answer")
    page.reload()
    expect(page.locator(".banner")).to_contain_text("You can answer")
    assert [url for url in asked if "tkn" in url] == [link.partition("#")[0]]
    assert len([url for url in asked if url.startswith("ws:")]) == 2
