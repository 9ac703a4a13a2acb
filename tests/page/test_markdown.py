"""The page's Markdown: what it supports, and that its output is inert."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.page.browser import Person
from tests.servers import ServerProcess

RENDER = """async source => {
  const { renderMarkdown } = await import("/page/0/text/markdown.js");
  const element = document.createElement("div");
  renderMarkdown(element, source);
  return element.innerHTML.replaceAll(' dir="auto"', "");
}"""

TIMED = """async source => {
  const { renderMarkdown } = await import("/page/0/text/markdown.js");
  const element = document.createElement("div");
  const start = performance.now();
  renderMarkdown(element, source);
  return [performance.now() - start, element.textContent.length];
}"""

SLOWEST_MS = 1_500
TRIES = 3
"""For 100 kB of the worst; a renderer with a quadratic corner takes minutes."""


@pytest.fixture(scope="module")
def page(browser: Browser, host: ServerProcess) -> Iterator[Page]:
    person = Person(browser, host.url, None)
    yield person.goes_to()
    person.closes()


@pytest.mark.parametrize(
    ("source", "html"),
    [
        ("plain", "<p>plain</p>"),
        ("one\ntwo  \nthree", "<p>one\ntwo<br>three</p>"),
        ("# Big #", "<h2>Big</h2>"),
        ("**bold**, *it*, ~~gone~~", "<strong>bold</strong>, <em>it</em>, <del>gone</del>"),
        ("***both***", "<strong><em>both</em></strong>"),
        ("*a **b** c*", "<em>a <strong>b</strong> c</em>"),
        ("**a *b* c**", "<strong>a <em>b</em> c</strong>"),
        ("snake_case_name and _it_", "snake_case_name and <em>it</em>"),
        ("2 * 3 * 4", "2 * 3 * 4"),
        ("an **open mark", "an **open mark"),
        ("`a < b` and ``a ` b``", "<code>a &lt; b</code> and <code>a ` b</code>"),
        ("\\*not\\*", "*not*"),
        ("```py\nx = 1\n```", 'aria-label="Code, py"><code dir="ltr">x = 1</code></pre>'),
        ("```\nstill coming", "still coming</code></pre>"),
        ("> quoted\n> > twice", "<blockquote><p>quoted</p><blockquote><p>twice</p>"),
        ("- a\n- b\n  - c", "<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>"),
        ("3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>'),
        ("- [x] done\n- [ ] not", "☑ </span>done"),
        ("a\n\n---\n\nb", "<hr>"),
        ("|a|b|\n|-|-|\n|1|2|", "<td>1</td><td>2</td>"),
        ("[words](https://a.example/x)", 'target="_blank" rel="noopener noreferrer nofollow">w'),
        ("[b.example](https://a.example/)", "(a.example)"),
        ("see https://a.example/x.", '<a href="https://a.example/x"'),
        ("![cat](https://a.example/cat.png)", ">cat<"),
    ],
)  # fmt: skip
def test_markdown_is_rendered(page: Page, source: str, html: str) -> None:
    assert html in page.evaluate(RENDER, source)


@pytest.mark.parametrize(
    "source",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[a](javascript:alert(1))",
        "[a](JaVaScRiPt:alert(1))",
        "[a](data:text/html,<script>1</script>)",
        "[a](vbscript:x)",
        "<javascript:alert(1)>",
        "![a](https://a.example/pixel.png)",
        "`<b>`\n\n```\n</code></pre><script>1</script>\n```",
    ],
)
def test_markdown_contains_no_markup_and_fetches_nothing(page: Page, source: str) -> None:
    made = page.evaluate(
        """async source => {
          const { renderMarkdown } = await import("/page/0/text/markdown.js");
          const element = document.createElement("div");
          renderMarkdown(element, source);
          const bad = element.querySelectorAll("script, img, iframe, b, [onerror], [src]").length;
          const links = [...element.querySelectorAll("a")].map(a => a.protocol);
          return [bad, links];
        }""",
        source,
    )
    assert made[0] == 0
    assert set(made[1]) <= {"https:", "http:", "mailto:"}


@pytest.mark.parametrize(
    "unit",
    ["*", "**a ", "_", "[", "[a](", "](", "`", "``` ", "`a", "> ", "- ", "  - a\n", "#", "|", "|-",
     "<", "\\", "![", "~~", "\n", " \n", "a*b_c`", "1. ", "\u202e", "https://a.b/(", "(" * 50],
)  # fmt: skip
def test_pathological_markdown_is_rendered_in_linear_time(page: Page, unit: str) -> None:
    source = (unit * (100_000 // len(unit) + 1))[:100_000]
    # A machine that is busy with something else is slow now and then; what grows with the square of
    # something is slow every time.
    tries = (page.evaluate(TIMED, source)[0] for _ in range(TRIES))
    assert any(milliseconds < SLOWEST_MS for milliseconds in tries)


def test_growing_markdown_keeps_finished_blocks(page: Page) -> None:
    is_same = page.evaluate(
        """async () => {
          const { renderMarkdown } = await import("/page/0/text/markdown.js");
          const element = document.createElement("div");
          renderMarkdown(element, "first\\n\\nsecond");
          const first = element.firstChild;
          renderMarkdown(element, "first\\n\\nsecond and more");
          return element.firstChild === first && element.textContent === "firstsecond and more";
        }"""
    )
    assert is_same
