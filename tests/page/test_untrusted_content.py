"""Untrusted strings everywhere: shown, and inert."""

import pytest
from playwright.sync_api import Page, expect

from session_server.reducers.texts import visible_name
from tests.page.browser import People
from tests.page.stage import Stage

STRINGS = {
    "script": "<script>window.hit = 1</script><img src=x onerror='window.hit = 1'>",
    "markdown": "[click](javascript:window.hit=1) ![x](https://evil.example/x.png) <b>bold</b>",
    "right-to-left": "abc \u202e desrever \u2066 \u0627\u0644\u0633\u0644\u0627\u0645",
    "attributes": '" onfocus=window.hit=1 autofocus x="\' --> </style></textarea></title>',
    "template": "${window.hit=1} {{constructor.constructor('window.hit=1')()}}",
}
HUGE = "100 kB of this: " + "W" * 100_000


def everything(stage: Stage, name: str, words: str, title: str) -> None:
    """A session in which every string that a stranger can choose is this one."""
    uri = stage.session(name, title)
    stage.begins(uri, text=words)
    stage.says(uri, words)
    stage.says(uri, words, kind="reasoning")
    stage.act(
        uri,
        "responsePart",
        turnId="t",
        part={"kind": "systemNotification", "content": {"markdown": words}},
    )
    stage.act(uri, "activityChanged", activity=words[:500])
    stage.tool(
        uri,
        "c1",
        name=words,
        shown=words,
        confirmed="not-needed",
        toolInput=words,
        invocationMessage={"markdown": words},
    )
    content = [
        {"type": "text", "text": words},
        {"type": "fileEdit", "after": {"uri": words, "content": words}},
        {"type": "resource", "uri": words},
        {"type": "terminal", "resource": "x:", "title": words},
    ]
    failure = {"success": False, "error": {"message": words}, "content": content}
    stage.tool_done(uri, "c1", pastTenseMessage=words, **failure)
    stage.tool(uri, "c2", shown=words, toolInput=words, confirmationTitle=words, editable=True,
               options=[{"id": "a", "label": words, "kind": "approve"}])  # fmt: skip
    # One frame holds all of a request, and no more than a megabyte.
    part = words[:60_000]
    option = {"id": words[:500], "label": part, "description": part, "recommended": True}
    both = {"message": part, "title": part}
    stage.asks(
        uri,
        {"kind": "text", "id": words[:500] + "1", "defaultValue": part, **both},
        {
            "kind": "single-select",
            "id": "2",
            "options": [option],
            "allowFreeformInput": True,
            **both,
        },
        {"kind": "multi-select", "id": "3", "options": [option], **both},
        {"kind": "boolean", "id": "4", **both},
        message=words,
        name=words[:400],
        answers={
            "2": {
                "state": "draft",
                "value": {"kind": "selected", "value": "", "freeformValues": [part]},
            }
        },
    )


def assert_inert(page: Page, requests: list[str], url: str) -> None:
    assert page.evaluate("window.hit") is None
    assert (
        page.evaluate(
            "document.querySelectorAll('script:not([src]), iframe, object, embed').length"
        )
        == 0
    )
    assert page.evaluate("[...document.images].every(i => i.src.endsWith('/icon.svg'))")
    assert page.evaluate(
        "[...document.links].every(a => ['http:', 'https:', 'mailto:'].includes(a.protocol))"
    )
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert [address for address in requests if not address.startswith(url)] == []


@pytest.mark.parametrize("kind", STRINGS)
def test_untrusted_content_stays_text(person: People, stage: Stage, kind: str) -> None:
    words = STRINGS[kind]
    everything(stage, kind, words, words)
    ana = person(words)
    asked: list[str] = []
    ana.page.on("request", lambda request: asked.append(request.url))
    page = ana.goes_to(f"#/s/{kind}")
    expect(page.locator(".request .question")).to_have_count(4)
    expect(page.locator(".session-title")).to_have_text(visible_name(words))
    for details in page.locator("details > summary").all():
        details.click()
    page.get_by_role("button", name="Review answers", exact=True).click()
    expect(page.locator(".review-row")).to_have_count(4)
    page.get_by_role("button", name="Back").click()
    assert_inert(page, asked, ana.url)
    page.get_by_role("button", name="Decline", exact=True).click()
    expect(page.locator(".toast")).to_contain_text("Declining")
    expect(page.locator(".outcome")).to_be_visible()
    assert_inert(page, asked, ana.url)


def test_very_long_content_does_not_break_the_layout(person: People, stage: Stage) -> None:
    everything(stage, "huge", HUGE, HUGE[:500])
    ana = person("Ana")
    asked: list[str] = []
    ana.page.on("request", lambda request: asked.append(request.url))
    page = ana.goes_to("#/s/huge")
    expect(page.locator(".request .question")).to_have_count(4)
    page.get_by_role("button", name="Decline", exact=True).click()
    expect(page.locator(".toast")).to_be_visible()
    assert_inert(page, asked, ana.url)
