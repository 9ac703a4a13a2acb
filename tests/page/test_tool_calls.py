"""Tool calls, MCP servers and ended turns in every state."""

import pytest
from playwright.sync_api import expect

from tests.page.browser import People, phone_options
from tests.page.scenes import set_the_calls
from tests.page.stage import Stage


@pytest.fixture(scope="module")
def calls(stage: Stage) -> None:
    set_the_calls(stage)


def test_tool_call_shows_its_state(calls: None, person: People) -> None:
    ana = person("Ana").goes_to("#/s/calls")
    states = ["Done", "Failed", "Running", "Preparing", "Needs approval", "Result needs approval"]
    expect(ana.locator(".tool-state")).to_have_text(states)
    # What went wrong, and what is to be decided on, is seen without looking for it.
    expect(ana.get_by_text("EACCES: permission denied")).to_be_visible()
    asking = ana.locator("[data-call=query]").get_by_role("group", name="Approval")
    expect(asking).to_contain_text("12,345")
    changed = ana.locator("[data-call=edit] .edit").first
    expect(changed).to_contain_text("/app/config.py")
    expect(changed).to_contain_text("+1")
    changed.locator("summary").click()
    expect(changed.get_by_text("x = 1")).to_be_visible()
    ana.locator("[data-call=read] summary").click()
    expect(ana.get_by_text("abc123 fix")).to_be_visible()


def test_mcp_servers_show_their_state_with_problems_first(
    calls: None, person: People, stage: Stage
) -> None:
    ana = person("Ana").goes_to("#/s/calls")
    servers = ana.get_by_role("list", name="MCP servers").get_by_role("listitem")
    expect(servers).to_have_count(4)
    for number, words in enumerate(
        (
            "database cannot be reached · the program ended: exit code 1",
            "calendar needs a sign-in · Sign in to Calendar",
            "deployer starting…",
            "github ready",
        )
    ):
        name, _, rest = words.partition(" ")
        expect(servers.nth(number)).to_contain_text(name)
        for piece in rest.split(" · "):
            expect(servers.nth(number)).to_contain_text(piece)
    # On a small screen only problems are shown.
    phone = person("Ben", **phone_options()).goes_to("#/s/calls")
    expect(phone.locator(".server").filter(visible=True)).to_have_count(3)
    state = {"kind": "ready"}
    for name in ("database", "calendar", "deployer"):
        stage.act("ahp-session:/calls", "mcpServerStateChanged", id=name, state=state)
    expect(phone.locator(".servers")).to_be_hidden()
    expect(ana.locator(".server[data-state=ready]")).to_have_count(4)


def test_failed_turn_shows_its_error(person: People, stage: Stage) -> None:
    uri = stage.session("ended")
    stage.begins(uri)
    problem = {"errorType": "x", "message": "The file has three columns."}
    stage.act(uri, "error", turnId="t", error=problem)
    stage.begins(uri, turn="t2")
    stage.act(uri, "turnCancelled", turnId="t2")
    ana = person("Ana").goes_to("#/s/ended")
    endings = ana.locator(".turn-ending")
    expect(endings).to_have_text(["The file has three columns.", "Stopped"])
