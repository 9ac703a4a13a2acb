"""How the page bears much of everything; `sizes.py` says how much."""

import sys

from benchmarks.page.sizes import Figures, Size, each, fill
from benchmarks.results import Results

PAGE = "page"
"""The table that is filled, ms."""


def run(results: Results) -> None:
    """Needs the tests' browser."""
    from tests.page.browser import WHOLE, chromium  # noqa: PLC0415
    from tests.page.stage import Stage  # noqa: PLC0415
    from tests.servers import serving  # noqa: PLC0415

    def keep(size: Size, figures: Figures) -> None:
        results.add(PAGE, size.name, "first paint", figures.first_paint_ms)
        results.add(PAGE, size.name, "key to frame, median", figures.latency_ms)
        results.add(PAGE, size.name, "key to frame, worst", figures.worst_latency_ms)

    command = (sys.executable, "-m", "tests.page.scene_host")
    with serving("memory:", command=command) as server, chromium(WHOLE) as browser:
        stage = Stage(server)
        fill(stage)
        each(browser, server.url, keep)
        stage.close()
