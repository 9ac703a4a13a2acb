"""Calls of real MCP servers that wait for people in browsers."""

import contextlib
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.mcp import zoo
from tests.page.browser import People, phone_options
from tests.page.locators import field, question
from tests.page.stage import http
from tests.servers import ServerProcess, serving, sqlite_store

WAIT = 20


@pytest.fixture(scope="module")
def calling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("calling")
    config = zoo.mcp_json(folder, {"zoo": zoo.stdio_entry("modern")})
    with serving(sqlite_store(folder), "--mcp-config", str(config)) as server:
        yield server


def call(server: ServerProcess, session: str, tool: str, **arguments: object) -> str:
    uri = f"ahp-session:/{session}"
    with contextlib.suppress(OSError):
        http("POST", f"{server.url}/v1/sessions", {"resource": uri, "title": session})
    wanted = {"server": "zoo", "tool": tool, "arguments": arguments}
    name: str = http("POST", f"{server.url}/v1/sessions/{session}/calls", wanted)["id"]
    return name


def test_two_rounds_are_answered_on_desktop_and_phone(
    person: People, calling: ServerProcess
) -> None:
    name = call(calling, "rounds", "deploy", service="web")
    desk = person("Ana", calling.url).goes_to("#/s/rounds")
    phone = person("Ben", calling.url, **phone_options()).goes_to("#/s/rounds")
    for page in (desk, phone):
        expect(page.locator(".asker")).to_contain_text("zoo · deploy")
        expect(page.locator(".tool-rounds")).to_contain_text(
            "Round 1: waiting for your answers below"
        )
    question(phone, "environment").get_by_text("production").tap()
    expect(question(desk, "environment").get_by_label("production")).to_be_checked()
    phone.get_by_role("button", name="Send answer", exact=True).tap()
    expect(desk.locator(".outcome-text")).to_contain_text("Ben answered")

    for page in (desk, phone):
        expect(page.locator(".round")).to_have_text("Round 2")
        expect(page.locator(".tool-rounds")).to_contain_text("Round 2")
    question(desk, "sure").get_by_label("Yes").check()
    field(phone, "reason").fill("because")
    question(phone, "reason").get_by_role("button", name="Mark done").tap()
    expect(question(desk, "reason")).to_contain_text("Done by Ben")
    desk.get_by_role("button", name="Review answers", exact=True).click()
    desk.get_by_role("button", name="Send answers", exact=True).click()
    for page in (desk, phone):
        expect(page.locator(".request")).to_have_count(0)
        expect(page.locator(".tool-state")).to_have_text("Done")
    done = http("GET", f"{calling.url}/v1/calls/{name}?wait={WAIT}")
    assert done["state"] == "finished"


@pytest.mark.proves("design.calls.one-form")
def test_requests_of_one_round_are_one_form_with_one_button(
    person: People, calling: ServerProcess
) -> None:
    name = call(calling, "pair", "pair")
    ana = person("Ana", calling.url).goes_to("#/s/pair")
    expect(ana.locator(".request")).to_have_count(1)
    expect(ana.locator(".request-section")).to_have_count(2)
    for each in ana.locator(".question").all():
        each.locator(".field-input").fill("41")
    ana.get_by_role("button", name="Review answers", exact=True).click()
    ana.get_by_role("button", name="Send answers", exact=True).click()
    expect(ana.locator(".request")).to_have_count(0)
    done = http("GET", f"{calling.url}/v1/calls/{name}?wait={WAIT}")
    assert done["state"] == "finished"


def test_every_kind_of_question_can_be_answered(person: People, calling: ServerProcess) -> None:
    name = call(calling, "kinds", "every_kind")
    ana = person("Ana", calling.url).goes_to("#/s/kinds")
    expect(ana.locator(".question").first).to_be_visible()
    for each in ana.locator(".question").all():
        shown = each.locator(".field-input").first
        if each.get_attribute("data-status") == "proposed":
            continue
        if each.locator(".choice").count() > 0:
            each.locator(".choice input").first.check()
        else:
            kind = shown.get_attribute("type")
            words = {"email": "ana@example.com", "url": "https://a.example", "date": "2026-07-28",
                     "datetime-local": "2026-07-28T14:00"}  # fmt: skip
            shown.fill(words.get(kind or "", "AB12"))
    ana.get_by_role("button", name="Review answers", exact=True).click()
    expect(ana.locator(".review .problem")).to_have_count(0)
    ana.get_by_role("button", name="Send answers", exact=True).click()
    expect(ana.locator(".outcome-text")).to_contain_text("You answered")
    done = http("GET", f"{calling.url}/v1/calls/{name}?wait={WAIT}")
    assert done["state"] == "finished"
