"""Every view of the page with content, for tests that check all of them."""

from collections.abc import Callable
from typing import Any, NamedTuple

from playwright.sync_api import Page

from tests.page.stage import Stage, many_of, one_of, text, whole, yes_no

LONG = [f"Option {number}" for number in range(40)]


class Scene(NamedTuple):
    """`place` is the address within the page; `act` what is done there; `shows` what is seen."""

    place: str
    shows: str
    act: Callable[[Page], None] = lambda _: None


def _press(name: str) -> Callable[[Page], None]:
    return lambda page: page.get_by_role("button", name=name, exact=True).first.click()


def _share(page: Page) -> None:
    _press("Share")(page)
    _press("Create link")(page)


def _mistake(page: Page) -> None:
    page.locator("[data-question=mail] .field-input").fill("nobody")
    page.locator("[data-question=mail] .field-input").press("Tab")


SCENES = {
    "list": Scene("", ".session-row"),
    "nothing matches": Scene(
        "", ".empty", lambda page: page.locator(".sessions-search").fill("zzz")
    ),
    "new session": Scene("", "dialog", _press("New session")),
    "settings": Scene("", ".menu:not([hidden])", _press("Settings")),
    "keyboard": Scene("", "dialog .keys", lambda page: page.keyboard.press("?")),
    "turns": Scene("#/s/turns", ".tool-call"),
    "calls": Scene("#/s/calls", ".server[data-state=authRequired]"),
    "form": Scene("#/s/form", ".request"),
    "mistake": Scene("#/s/form", ".problem:not([hidden])", _mistake),
    "review": Scene("#/s/form", ".review", _press("Review answers")),
    "share": Scene("#/s/form", ".share-roles", _press("Share")),
    "share link": Scene("#/s/form", ".share-link", _share),
    "visit": Scene("#/s/visit", ".url-request"),
    "failed": Scene("#/s/failed", ".turn-ending:not([hidden])"),
    "empty session": Scene("#/s/empty", ".session .empty"),
    "no such session": Scene("#/s/nowhere", ".session .empty a"),
}


def set_the_scene(stage: Stage) -> None:
    turns = stage.session("turns", "Deploy")
    stage.begins(turns, text="Ship it")
    stage.says(turns, "Thinking about *it*", kind="reasoning")
    stage.says(
        turns,
        "# Plan\n\n1. `build`\n\n|a|b|\n|-|-|\n|1|2|\n\n```sh\nmake\n```\n\n[x](https://a.example)",
    )
    stage.tool(turns, "c1", confirmed="not-needed", toolInput="{}")
    stage.tool_done(turns, "c1", content=[{"type": "text", "text": "fine"}])
    stage.tool(
        turns,
        "c2",
        toolInput="rm -r build",
        editable=True,
        confirmationTitle="Clean up first?",
        options=[
            {"id": "once", "label": "Once", "kind": "approve"},
            {"id": "no", "label": "No", "kind": "deny"},
        ],
    )
    set_the_calls(stage)
    form = stage.session("form", "Planning")
    stage.begins(form, text="Plan it")
    stage.asks(
        form,
        text("name", required=True, max=60),
        text("mail", format="email"),
        text("day", format="date"),
        one_of("city", "Oslo", "Lisbon", allowFreeformInput=True),
        many_of("many", *LONG, max=3),
        whole("people", min=1, max=12, defaultValue=2),
        yes_no("quick", defaultValue=True),
    )
    visit = stage.session("visit", "Sign in")
    stage.begins(visit)
    stage.asks(visit, url="https://accounts.example.com/authorize?x=1", message="Sign in, please")
    failed = stage.session("failed", "Import")
    stage.begins(failed)
    stage.act(failed, "error", turnId="t", error={"errorType": "x", "message": "Three columns"})
    running = stage.session("running", "Evaluate")
    stage.begins(running)
    stage.act(running, "activityChanged", activity="Case 3 of 12")
    stage.session("empty", "Nothing yet")


def set_the_calls(stage: Stage) -> None:
    """Tool calls and servers in every state that people come across."""
    calls = stage.session("calls", "All kinds of calls")
    stage.begins(calls, text="Do all that you can, please")
    stage.tool(calls, "read", shown="git log", confirmed="not-needed", toolInput='{"n": 20}')
    stage.tool_done(calls, "read", content=[{"type": "text", "text": "abc123 fix"}])
    stage.tool(calls, "write", shown="Write file", confirmed="not-needed")
    problem = {"message": "EACCES: permission denied"}
    stage.tool_done(calls, "write", success=False, pastTenseMessage="Could not", error=problem)
    stage.tool(calls, "deploy", shown="deploy", confirmed="not-needed")
    begun = {"turnId": "t", "toolCallId": "find", "toolName": "find", "displayName": "find"}
    stage.act(calls, "toolCallStart", **begun)
    edits = [edited("config.py", added=1, removed=1), edited("new.py", added=12, removed=0)]
    stage.tool(calls, "edit", confirmationTitle="May I change these?", edits={"items": edits})
    stage.tool(calls, "query", shown="SQL", confirmed="not-needed", toolInput="select 1")
    rows = [{"type": "text", "text": "12,345"}]
    stage.tool_done(calls, "query", requiresResultConfirmation=True, content=rows)
    resource = {"resource": "https://calendar.example.com"}
    signing = {"kind": "authRequired", "reason": "required", "resource": resource}
    failed = {"errorType": "unreachable", "message": "the program ended: exit code 1"}
    states: dict[str, dict[str, Any]] = {
        "github": {"kind": "ready"},
        "deployer": {"kind": "starting"},
        "database": {"kind": "error", "error": failed},
        "calendar": {**signing, "description": "Sign in to Calendar"},
    }
    servers = [
        {
            "type": "mcpServer",
            "id": name,
            "uri": name,
            "name": name,
            "enabled": True,
            "state": state,
        }
        for name, state in states.items()
    ]
    stage.act(calls, "customizationsChanged", customizations=servers)


def server(name: str, state: dict[str, Any]) -> dict[str, Any]:
    about = {"type": "mcpServer", "id": name, "uri": name, "name": name}
    return {**about, "enabled": True, "state": state}


def edited(name: str, **diff: int) -> dict[str, Any]:
    version = {"uri": f"file:///app/{name}", "content": "x = 1"}
    return {"before": version, "after": version, "diff": diff}
