"""Questions whose asker is gone: they are marked, and drafts are kept."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.http.sessions import polling
from tests.page.browser import People
from tests.page.locators import field
from tests.page.stage import Stage, http, text
from tests.servers import ServerProcess

WORDS = "The program that asked is no longer waiting (since "
KEPT = "Your answer will be kept for it."


class Asker:
    """Asks in a session of its own; `leaves` cuts its connection, `returns` polls again."""

    def __init__(self, host: ServerProcess, stage: Stage, name: str, lease: float) -> None:
        self._host = host
        self._open = ExitStack()
        stage.session(name, name.capitalize(), provider="people")
        body: dict[str, Any] = {"questions": [text("city")], "lease": lease}
        asked = http("POST", f"{host.url}/v1/sessions/{name}/requests", body)
        self.path = f"/v1/sessions/{name}/requests/{asked['id']}"

    def returns(self) -> None:
        self._open.enter_context(polling(self._host, self.path))

    def leaves(self) -> None:
        self._open.close()


@pytest.fixture
def asker(host: ServerProcess, stage: Stage) -> Iterator[Callable[[str, float], Asker]]:
    made: list[Asker] = []

    def asks(name: str, lease: float) -> Asker:
        made.append(Asker(host, stage, name, lease))
        return made[-1]

    yield asks
    for each in made:
        each.leaves()


def row(page: Page, title: str) -> Locator:
    return page.locator(".session-row", has_text=title)


@pytest.mark.proves("design.requests.asker-left")
def test_abandoned_question_is_marked_and_keeps_the_draft(
    person: People, stage: Stage, asker: Callable[[str, float], Asker]
) -> None:
    program = asker("killed", 1.0)
    program.returns()
    ana = person("Ana").goes_to("#/s/killed")
    mark, pill = ana.locator(".asker-gone"), ana.locator(".session-name .status-pill").first
    expect(mark).to_be_hidden()
    expect(pill).to_have_text("Needs input")
    expect(ana).to_have_title("(1) Killed · session-server")
    field(ana, "city").press_sequentially("Os")

    program.leaves()
    expect(mark).to_contain_text(WORDS)
    expect(mark).to_contain_text(KEPT)
    expect(pill).to_have_text("No longer waiting")
    expect(ana).to_have_title("Killed · session-server")
    expect(row(ana, "Killed")).to_have_attribute("data-activity", "left")
    expect(ana.locator(".group-head h2").first).to_have_text("No longer waiting")
    expect(field(ana, "city")).to_be_focused()
    expect(field(ana, "city")).to_have_value("Os")
    ana.keyboard.type("l")

    program.returns()
    expect(mark).to_be_hidden()
    expect(pill).to_have_text("Needs input")
    expect(ana).to_have_title("(1) Killed · session-server")
    expect(field(ana, "city")).to_have_value("Osl")

    program.leaves()
    expect(mark).to_be_visible()
    ana.keyboard.type("o")
    ana.keyboard.press("Control+Enter")
    expect(ana.locator(".request")).to_have_count(0)
    kept = http("GET", f"{stage.url}{program.path}?wait=10")
    assert kept["content"] == {"city": "Oslo"}


def test_abandoned_question_can_be_dismissed(
    person: People, stage: Stage, asker: Callable[[str, float], Asker]
) -> None:
    program = asker("forgotten", 0.1)
    ana = person("Ana").goes_to()
    row(ana, "Forgotten").locator(".row-link").click()
    expect(ana.locator(".asker-gone")).to_contain_text(WORDS)
    ana.locator(".request").get_by_role("button", name="More").click()
    ana.get_by_role("menuitem", name="Dismiss").click()
    expect(row(ana, "Forgotten")).to_have_attribute("data-activity", "idle")
    assert http("GET", f"{stage.url}{program.path}")["outcome"]["response"] == "cancel"
