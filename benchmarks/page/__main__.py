"""How the page bears much of everything: `python -m benchmarks.page`."""

import sys

from rich.console import Console
from rich.table import Table

from benchmarks.page.sizes import Figures, Size, each, fill
from tests.servers import serving
from tests.web.browser import chromium
from tests.web.stage import Stage


def main() -> None:
    table = Table(title="The page with much of everything (ms)", title_justify="left")
    table.add_column("")
    for head in ("first paint", "key to frame, median", "key to frame, worst"):
        table.add_column(head, justify="right")

    def tell(size: Size, figures: Figures) -> None:
        table.add_row(size.name, *(f"{figure:.0f}" for figure in figures))

    command = (sys.executable, "-m", "tests.web.scene_host")
    with serving("memory:", command=command) as server, chromium() as browser:
        stage = Stage(server)
        fill(stage)
        each(browser, server.url, tell)
        stage.close()
    Console(width=100).print(table)


main()
