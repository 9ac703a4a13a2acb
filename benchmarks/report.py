"""Results as text: tables on the terminal, tables and plots in pages of `docs`.

A page is written by hand but for blocks between `<!-- bench: name -->` and `<!-- end -->`: a
table of that name, its ratios (`ratios-`), a plot (`plot-`), or `origin`: date and machine.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from html import escape
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.fanout import shapes
from benchmarks.fanout.peers import COALESCED, LOOP, MEMORY, NODE, SQLITE, TICK
from benchmarks.load import ROOT
from benchmarks.results import Figure, Results

PAGE = ROOT / "docs" / "performance.md"
PAGES = (PAGE, ROOT / "docs" / "scaling.md")
IMAGES = ROOT / "docs" / "images"
BLOCK = re.compile(r"(<!-- bench: ([a-z0-9-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
OURS = (MEMORY.name, SQLITE.name)
BASELINES = (LOOP.name, NODE.name, COALESCED.name, TICK.name)
BUSY = 0.5
"""Processors that are busy with other work; with more a run is called preliminary."""
QUIET_ONLY = (shapes.RATE, shapes.P50, shapes.P99, shapes.STALLS, "typing", "nodes-pace")
"""Tables that a busy machine would make nonsense of."""

Cells = list[list[str]]


def number(value: float) -> str:
    """Three significant digits, and no more decimals than make sense."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def cell(figure: Figure | None) -> str:
    if figure is None:
        return ""
    if len(figure.samples) == 1:
        return number(figure.median)
    return f"{number(figure.median)} ±{figure.spread:.0%}"


def cells_of(results: Results, table: str) -> Cells:
    columns = results.columns(table)
    return [
        ["", *columns],
        *(
            [row, *(cell(results.find(table, row, column)) for column in columns)]
            for row in results.rows(table)
        ),
    ]


def ratio_cells(results: Results, table: str) -> Cells:
    """Ours next to each baseline; more than 1 is always better."""
    power = 1 if table == shapes.RATE else -1
    columns = results.columns(table)
    rows = [["", *columns]]
    for ours in OURS:
        for baseline in BASELINES:
            ratios = []
            for column in columns:
                top, bottom = (results.find(table, name, column) for name in (ours, baseline))
                if top is None or bottom is None:
                    ratios.append("")
                    continue
                ratios.append(f"{(top.median / bottom.median) ** power:.2f} ×")
            if any(ratios):
                rows.append([f"{ours} / {baseline}", *ratios])
    return rows


def show(title: str, cells: Cells) -> None:
    table = Table(*cells[0], title=title, title_justify="left")
    for column in table.columns[1:]:
        column.justify = "right"
    for row in cells[1:]:
        table.add_row(*row)
    Console(width=140).print(table)


def show_ratios(results: Results) -> None:
    show("Server CPU per action, µs", cells_of(results, shapes.CPU_ACTION))
    show("Deliveries a second, in thousands", cells_of(results, shapes.RATE))
    cells = ratio_cells(results, shapes.CPU_DELIVERY)
    show("Deliveries per second of server CPU (holds on a busy machine too)", cells)
    show("Deliveries a second", ratio_cells(results, shapes.RATE))


def markdown(cells: Cells) -> str:
    head, *rows = cells
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


# Plots


Bar = tuple[str, float, bool]
WIDTH, LABEL, ROW, HEAD = 720, 270, 20, 30


def bars(panels: Iterable[tuple[str, Sequence[Bar]]]) -> str:
    """Horizontal bars in panels, each with a scale of its own; ours are coloured."""
    parts: list[str] = []
    top = 0
    for title, rows in panels:
        parts.append(f'<text x="0" y="{top + 18}" class="title">{escape(title)}</text>')
        most = max(value for _, value, _ in rows) or 1.0
        top += HEAD
        for label, value, is_ours in rows:
            length = max(1.0, value / most * (WIDTH - LABEL - 70))
            kind = 'class="ours"' if is_ours else 'class="other"'
            middle = top + 13
            parts += [
                f'<text x="{LABEL - 8}" y="{middle}" text-anchor="end">{escape(label)}</text>',
                f'<rect x="{LABEL}" y="{top + 2}" width="{length:.0f}" height="14" {kind}/>',
                f'<text x="{LABEL + length + 6:.1f}" y="{middle}">{number(value)}</text>',
            ]
            top += ROW
        top += 14
    style = (
        "text{font:12px sans-serif;fill:#333}.title{font-weight:bold}"
        ".ours{fill:#2563eb}.other{fill:#9ca3af}"
    )
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" role="img">\n'
        f'<style>{style}</style>\n<rect width="100%" height="100%" fill="#fff"/>\n{body}\n</svg>\n'
    )


def panels(results: Results, table: str, unit: str) -> list[tuple[str, list[Bar]]]:
    """One for each column."""
    found = []
    for column in results.columns(table):
        rows = [
            (figure.row.replace("`", ""), figure.median, figure.row in OURS)
            for figure in results.figures
            if (figure.table, figure.column) == (table, column)
        ]
        found.append((f"{column}: {unit}", rows))
    return found


PLOTS = {
    "fanout-rates": (shapes.RATE, "deliveries a second, in thousands"),
    "fanout-cpu": (shapes.CPU_ACTION, "server CPU per action, µs"),
    "fanout-latency": (shapes.P99, "p99 at a moderate load, ms"),
    "growth": ("growth", "with 10 × 10, SQLite full sync"),
}


# The page


def origin(results: Results) -> str:
    text = f"{results.date}, {results.machine}."
    if is_busy(results):
        text += (
            f" **Preliminary**: {results.load:.1f} processors were busy with other work when the"
            " run began. CPU times are somewhat higher than on a quiet machine; rates and latencies"
            " would mean nothing and are left out."
        )
    return text + "\n"


def is_busy(results: Results) -> bool:
    return results.load > BUSY


def block(results: Results, name: str) -> str:
    """Empty if it was not measured."""
    if name == "origin":
        return origin(results)
    table = PLOTS[name.removeprefix("plot-")][0] if name.startswith("plot-") else name
    table = table.removeprefix("ratios-")
    if not results.rows(table):
        return ""
    if table in QUIET_ONLY and is_busy(results):
        return "(Left out: the machine was busy.)\n"
    if name.startswith("plot-"):
        plot = name.removeprefix("plot-")
        return f"![{PLOTS[plot][1]}](images/{plot}.svg)\n"
    make = cells_of if name == table else ratio_cells
    return markdown(make(results, table))


def shows(page: Path, tables: Collection[str]) -> bool:
    """Whether it has a block for any of these."""
    return any(found[2] in tables for found in BLOCK.finditer(page.read_text()))


def write(results: Results, page: Path = PAGE, images: Path = IMAGES) -> None:
    """Fills the blocks of the page; one that nothing was measured for stays as it is."""

    def filled(found: re.Match[str]) -> str:
        text = block(results, found[2])
        return f"{found[1]}{text}{found[3]}" if text else found[0]

    page.write_text(BLOCK.sub(filled, page.read_text()))
    for name, (table, unit) in PLOTS.items():
        if results.rows(table) and not (table in QUIET_ONLY and is_busy(results)):
            (images / f"{name}.svg").write_text(bars(panels(results, table, unit)))
