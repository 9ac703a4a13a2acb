"""Much of everything: sessions that a page must stay usable with, and how usable it is.

Two numbers each. First paint: from asking for the address until what one came for is on the screen.
Latency: from a key going down until the frame that shows what it did.
"""

from collections.abc import Callable, Sequence
from statistics import median
from typing import NamedTuple

from playwright.sync_api import Browser, Page

from tests.page.browser import Person
from tests.page.stage import Stage, http, one_of, text

SESSIONS = 1_000
TURNS = 500
QUESTIONS = 200
OPTIONS = 2_000
KEYS = 20

PARAGRAPH = (
    "Here is **something** that was found, with `code` and [a link](https://a.example/).\n\n"
)

PAINTED = """selector => new Promise(resolve => {
  const look = () => {
    if (document.querySelector(selector)) {
      requestAnimationFrame(() => setTimeout(() => resolve(performance.now())));
    } else {
      requestAnimationFrame(look);
    }
  };
  look();
})"""

WATCH_KEYS = """() => {
  window.latencies = [];
  addEventListener("keydown", event => {
    const shown = () => latencies.push(performance.now() - event.timeStamp);
    requestAnimationFrame(() => setTimeout(shown));
  }, true);
}"""


class Size(NamedTuple):
    """`place` is where it is seen, `sign` what is there then, `typing` where one types."""

    name: str
    place: str
    sign: str
    typing: str


class Figures(NamedTuple):
    first_paint_ms: float
    latency_ms: float
    worst_latency_ms: float


SIZES = (
    Size(f"{SESSIONS:,} sessions in the list", "", ".session-row", ".sessions-search"),
    Size(f"{TURNS} turns", "#/s/turns", ".turn", ".composer-text"),
    Size(
        f"{QUESTIONS} questions in one request",
        "#/s/questions",
        ".question",
        "[data-question=q7] .field-input",
    ),
    Size(
        f"{OPTIONS:,} options in one select",
        "#/s/options",
        ".choice",
        "[data-question=pick] .choice-search",
    ),
)


def fill(stage: Stage) -> None:
    for number in range(SESSIONS - 3):
        name = f"session-{number}"
        wanted = {"resource": f"ahp-session:/{name}", "title": f"Session number {number}"}
        http("POST", f"{stage.url}/v1/sessions", wanted)
    turns = stage.session("turns", "A long history")
    for number in range(TURNS):
        stage.begins(turns, turn=f"t{number}", text=f"Question number {number}")
        stage.says(turns, PARAGRAPH * 3, turn=f"t{number}")
        stage.ends(turns, turn=f"t{number}")
    questions = stage.session("questions", "A long form")
    stage.begins(questions)
    stage.asks(questions, *(text(f"q{number}") for number in range(QUESTIONS)))
    options = stage.session("options", "A long list")
    stage.begins(options)
    labels = [f"Option number {number}" for number in range(OPTIONS)]
    stage.asks(options, one_of("pick", *labels), text("why"))


def measured(browser: Browser, url: str, size: Size) -> Figures:
    person = Person(browser, url, "Ana")
    try:
        page = person.page
        page.goto(f"{url}/?{size.place}", wait_until="commit")
        first_paint: float = page.evaluate(PAINTED, size.sign)
        latencies = _typed(page, size.typing)
        assert person.complaints == []
        return Figures(first_paint, median(latencies), max(latencies))
    finally:
        person.closes()


def _typed(page: Page, where: str) -> Sequence[float]:
    page.locator(where).click()
    page.evaluate(WATCH_KEYS)
    for number in range(KEYS):
        page.keyboard.press("1234567890"[number % 10])
        page.wait_for_function("count => latencies.length >= count", arg=number + 1)
    latencies: list[float] = page.evaluate("latencies")
    return latencies


def each(browser: Browser, url: str, tell: Callable[[Size, Figures], None]) -> None:
    for size in SIZES:
        tell(size, measured(browser, url, size))
