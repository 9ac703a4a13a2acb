"""One session: turns, approvals, requests, countdowns, queued messages."""

import re
import time
from http.server import BaseHTTPRequestHandler
from typing import ClassVar

import pytest
from playwright.sync_api import expect

from tests.page.browser import People, phone_options
from tests.page.locators import arrive, field, question
from tests.page.stage import Stage, text, whole
from tests.servers import web_server

OPTIONS = [
    {"id": "once", "label": "Run once", "kind": "approve"},
    {"id": "always", "label": "Always", "kind": "approve"},
    {"id": "no", "label": "Don’t run", "kind": "deny"},
]


class Visits(BaseHTTPRequestHandler):
    """A site of somebody else's, which notes who comes."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(200)
        self.end_headers()


def test_turn_is_shown_while_it_streams(person: People, stage: Stage) -> None:
    uri = stage.session("turn")
    stage.begins(uri, text="What is new?")
    ana = person("Ana").goes_to("#/s/turn")
    expect(ana.locator(".message-text")).to_have_text("What is new?")
    expect(ana.locator(".working")).to_be_visible()
    stage.says(uri, "because of this", kind="reasoning")
    part = {"kind": "markdown", "id": "p", "content": "A **bold"}
    stage.act(uri, "responsePart", turnId="t", part=part)
    stage.act(uri, "delta", turnId="t", partId="p", content="** word")
    expect(ana.locator(".prose strong")).to_have_text("bold")
    expect(ana.get_by_text("because of this")).to_be_hidden()
    ana.get_by_text("Thought about it").click()
    expect(ana.get_by_text("because of this")).to_be_visible()
    stage.ends(uri)
    expect(ana.locator(".working")).to_be_hidden()


def test_form_is_scrolled_to_its_top(person: People, stage: Stage) -> None:
    uri = stage.session("below")
    for turn in ("t1", "t2", "t3"):
        stage.begins(uri, turn, text="Short")
        stage.ends(uri, turn)
    stage.begins(uri)
    stage.asks(uri, *(text(f"q{n}") for n in range(12)))
    (ana,) = arrive([person("Ana", **phone_options())], "below")
    top = ana.evaluate(
        """() => new Promise((told) => requestAnimationFrame(() => requestAnimationFrame(() => {
          const [form, scroller] = [".request", ".scroller"].map((of) =>
            document.querySelector(of).getBoundingClientRect());
          told(form.top - scroller.top);
        })))"""
    )
    assert 0 <= top < 40


def test_tool_call_is_approved_with_an_option_and_edited_input(
    person: People, stage: Stage
) -> None:
    uri = stage.session("approve")
    stage.begins(uri)
    stage.tool(uri, "c1", toolInput="rm -r build", editable=True, options=OPTIONS)
    ana, ben = (person(name).goes_to("#/s/approve") for name in ("Ana", "Ben"))
    expect(ben.locator(".tool-state")).to_have_text("Needs approval")
    ana.get_by_label("Input, which you can change").fill("rm -r build/tmp")
    ana.get_by_role("button", name="Always").click()
    expect(ben.locator(".tool-state")).to_have_text("Running")
    ben.locator(".tool-details summary").click()
    expect(ben.locator(".tool-more")).to_contain_text("rm -r build/tmp")
    expect(ben.locator(".tool-more")).to_contain_text("Always")
    stage.tool_done(uri, "c1", requiresResultConfirmation=True)
    ben.get_by_role("button", name="Use the result").click()
    expect(ana.locator(".tool-state")).to_have_text("Done")


def test_tool_call_is_denied(person: People, stage: Stage) -> None:
    uri = stage.session("deny")
    stage.begins(uri)
    stage.tool(uri, "c1", toolInput="rm -r /")
    ana = person("Ana").goes_to("#/s/deny/q")
    expect(ana.get_by_role("button", name="Approve", exact=True)).to_be_focused()
    ana.get_by_role("button", name="Deny", exact=True).click()
    expect(ana.locator(".tool-state")).to_have_text("Denied")


@pytest.mark.proves("mcp.url.whole", "mcp.url.no-prefetch")
def test_address_is_shown_in_full_and_opened_only_by_a_click(person: People, stage: Stage) -> None:
    uri = stage.session("visit")
    stage.begins(uri)
    with web_server(Visits) as port:
        address = f"http://127.0.0.1:{port}/login?next=https://evil.example/"
        stage.asks(uri, url=address, message="Sign in")
        (ana,) = arrive([person("Ana")], "visit")
        expect(ana.locator(".url-whole")).to_have_text(address)
        expect(ana.locator(".url-host")).to_have_text(f"127.0.0.1:{port}")
        expect(ana.locator(".url-warning")).to_contain_text("not encrypted")
        link = ana.get_by_role("link", name=f"Open 127.0.0.1:{port}")
        expect(link).to_have_attribute("rel", "noopener noreferrer")
        link.hover()
        assert Visits.asked == []
        with ana.context.expect_page() as opened:
            link.click()
        assert opened.value.url == address
        assert Visits.asked[0] == "/login?next=https://evil.example/"
        opened.value.close()
    ana.get_by_role("button", name="I’m done").click()
    expect(ana.locator(".outcome-text")).to_contain_text("You answered “Sign in”")


@pytest.mark.parametrize(
    "address", ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd"]
)
def test_unsafe_address_is_plain_text(person: People, address: str) -> None:
    """The host refuses such a request; the page does not rely on that."""
    page = person("Ana").goes_to()
    page.evaluate(
        """async (url) => {
          const { UrlRequest } = await import("/page/0/form/url-request.js");
          document.body.replaceChildren(new UrlRequest({ id: "r", url }, true, () => {}).element);
        }""",
        address,
    )
    expect(page.locator(".url-whole")).to_have_text(address)
    expect(page.locator(".url-request a")).to_have_count(0)


def test_messages_are_queued_and_can_be_removed(person: People, stage: Stage) -> None:
    uri = stage.session("queue", provider="demo")
    (ana,) = [person("Ana").goes_to("#/s/queue")]
    expect(ana.get_by_role("heading", name="Nothing here yet")).to_be_visible()
    ana.locator(".composer-text").fill("first")
    ana.keyboard.press("Enter")
    expect(ana.locator(".request")).to_be_visible()
    ana.locator(".composer-text").fill("second")
    ana.keyboard.press("Enter")
    expect(ana.locator(".queue-text")).to_have_text("second")
    expect(ana.locator(".composer-text")).to_be_in_viewport(ratio=1)
    ana.locator(".composer-text").fill("third")
    ana.get_by_role("button", name="Queue for the next turn").click()
    expect(ana.locator(".queue-text")).to_have_text(["second", "third"])
    ana.get_by_role("button", name="Remove from the queue").last.click()
    expect(ana.locator(".queue-text")).to_have_text(["second"])
    ana.get_by_role("button", name="Session menu").click()
    ana.get_by_role("menuitem", name="Stop the turn").click()
    expect(ana.locator(".toast")).to_contain_text("Stopping")
    expect(ana.locator(".message-text")).to_have_text(["first", "second"])
    expect(ana.locator(".turn-ending").first).to_have_text("Stopped")
    expect(ana.locator(".queue")).to_be_hidden()
    assert uri


def test_enter_on_touch_is_a_new_line_and_ctrl_enter_sends(person: People, stage: Stage) -> None:
    stage.session("touch")
    ana = person("Ana", **phone_options()).goes_to("#/s/touch")
    line = ana.get_by_role("textbox", name="Message")
    line.fill("One")
    line.press("Enter")
    expect(line).to_have_value("One\n")
    line.press("Control+Enter")
    expect(ana.locator(".message-text")).to_have_text("One")


def test_any_key_stops_a_countdown_for_everyone(person: People, stage: Stage) -> None:
    uri = stage.session("soon")
    stage.begins(uri)
    meta = {"expiresAt": int((time.time() + 600) * 1000), "onExpiry": "defaults"}
    stage.asks(uri, whole("age", defaultValue=3), _meta=meta)
    ana, ben = arrive([person("Ana"), person("Ben")], "soon")
    expect(ana.locator(".countdown")).to_contain_text("Defaults will be sent in")
    field(ben, "age").focus()
    ben.keyboard.press("Shift+Tab")  # a key that writes nothing is a key as well
    for page in (ana, ben):
        expect(page.locator(".countdown")).to_contain_text("has stopped")
        expect(question(page, "age")).to_contain_text("Default")


def test_automatic_acceptance_is_announced(person: People, stage: Stage) -> None:
    uri = stage.session("by-itself")
    stage.begins(uri)
    meta = {"expiresAt": int((time.time() + 600) * 1000), "onExpiry": "defaults"}
    stage.asks(uri, _meta=meta)
    (ana,) = arrive([person("Ana")], "by-itself")
    expect(ana.locator(".countdown")).to_contain_text("Will be accepted in")


def test_date_time_input_keeps_seconds(person: People, stage: Stage) -> None:
    stage.form("clock", text("when", format="date-time"), text("then", format="date-time",
               defaultValue="2026-07-28T14:00:30Z"))  # fmt: skip
    (ana,) = arrive([person("Ana")], "clock")
    field(ana, "when").focus()
    ana.keyboard.type("07282026")
    ana.keyboard.press("Tab")
    ana.keyboard.type("0230PM")
    expect(field(ana, "when")).to_have_value("2026-07-28T14:30")
    expect(question(ana, "when").locator(".question-state")).to_contain_text("Draft")
    expect(field(ana, "then")).to_have_value(re.compile(r"T\d\d:\d\d:30$"))


def test_timeout_is_not_shown_as_a_decline(person: People, stage: Stage) -> None:
    uri = stage.session("timeout")
    stage.begins(uri)
    ana = person("Ana").goes_to("#/s/timeout")
    expect(ana.locator(".person")).to_have_count(1)
    meta = {"expiresAt": int((time.time() + 4) * 1000), "onExpiry": "cancel"}
    stage.asks(uri, text("name"), _meta=meta)
    expect(ana.locator(".outcome-text")).to_contain_text("“Some questions” timed out.")
    expect(ana.locator(".outcome")).to_have_attribute("data-kind", "host")


def test_skipped_question_can_be_answered_later(person: People, stage: Stage) -> None:
    stage.form("skip", text("name"), text("place"))
    ana, ben = arrive([person("Ana"), person("Ben")], "skip")
    question(ana, "name").get_by_role("button", name="Skip").click()
    expect(question(ben, "name")).to_contain_text("Skipped by Ana")
    question(ben, "name").get_by_role("button", name="Answer it").click()
    field(ben, "name").fill("here")
    ben.get_by_role("button", name="More actions").click()
    ben.get_by_role("menuitem", name="Mark all done").click()
    expect(question(ana, "name")).to_contain_text("Done by Ben")


def test_changed_question_keeps_the_focus(person: People, stage: Stage) -> None:
    uri = stage.form("reworded", text("name"), text("place"))
    (ana,) = arrive([person("Ana")], "reworded")
    field(ana, "place").press_sequentially("No")
    stage.asks(uri, text("name"), text("place", title="Where to?"))
    expect(question(ana, "place")).to_contain_text("Where to?")
    ana.keyboard.type("rway")
    expect(field(ana, "place")).to_have_value("Norway")
