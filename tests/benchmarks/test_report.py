"""Results become tables and plots; the text around them stays."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from benchmarks.fanout.peers import LOOP, MEMORY
from benchmarks.fanout.shapes import CPU_DELIVERY, RATE
from benchmarks.report import BLOCK, PAGE, ratio_cells, shows, write
from benchmarks.results import Figure, Results


@pytest.fixture
def results() -> Results:
    made = Results(date="2030-01-02", machine="a machine")
    for value in (10.0, 12.0, 11.0):
        made.add(RATE, MEMORY.name, "100 × 1", value)
        made.add(RATE, LOOP.name, "100 × 1", value * 2)
        made.add(CPU_DELIVERY, MEMORY.name, "100 × 1", value)
        made.add(CPU_DELIVERY, LOOP.name, "100 × 1", value * 2)
    return made


def test_a_figure_is_the_median_with_its_spread() -> None:
    figure = Figure(table="t", row="r", column="c", samples=[10.0, 8.0, 11.0])
    assert figure.median == 10.0
    assert figure.spread == pytest.approx(0.15)


def test_a_ratio_above_one_is_always_better(results: Results) -> None:
    assert ratio_cells(results, RATE)[1][1] == "0.50 ×"
    assert ratio_cells(results, CPU_DELIVERY)[1][1] == "2.00 ×"


def test_blocks_of_the_page_are_filled_and_its_text_stays(tmp_path: Path, results: Results) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Mine\n<!-- bench: origin -->\n<!-- end -->\n<!-- bench: rates -->\nold\n<!-- end -->\n"
        "text\n<!-- bench: idle -->\nkept\n<!-- end -->\n"
    )
    write(results, page, tmp_path)
    text = page.read_text()
    assert text.startswith("# Mine\n<!-- bench: origin -->\n2030-01-02, a machine.\n<!-- end -->")
    assert f"| {MEMORY.name} | 11.0 ±9% |\n" in text
    assert "old" not in text
    assert text.endswith("text\n<!-- bench: idle -->\nkept\n<!-- end -->\n")


def test_a_page_is_written_only_when_something_in_it_was_measured(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- bench: origin -->\n<!-- end -->\n<!-- bench: nodes -->\n<!-- end -->\n")
    assert shows(page, {"nodes"})
    assert not shows(page, {RATE})


def test_plots_are_well_formed_and_name_every_peer(tmp_path: Path, results: Results) -> None:
    page = tmp_path / "page.md"
    page.write_text("")
    write(results, page, tmp_path)
    drawn = (tmp_path / "fanout-rates.svg").read_text()
    texts = [element.text for element in ET.fromstring(drawn).iter() if element.text]
    assert MEMORY.name in texts
    assert LOOP.name.replace("`", "") in texts


def test_a_busy_machine_reports_cpu_and_leaves_rates_out(tmp_path: Path, results: Results) -> None:
    results.load = 3.0
    page = tmp_path / "page.md"
    names = ("origin", RATE, f"ratios-{RATE}", CPU_DELIVERY, "plot-fanout-rates")
    page.write_text("".join(f"<!-- bench: {name} -->\n<!-- end -->\n" for name in names))
    write(results, page, tmp_path)
    text = page.read_text()
    assert "**Preliminary**: 3.0 processors" in text
    assert text.count("Left out: the machine was busy.") == 3
    assert text.count(f"| {MEMORY.name} |") == 1
    assert not list(tmp_path.glob("*.svg"))


def test_results_survive_being_kept(tmp_path: Path, results: Results) -> None:
    results.save(tmp_path / "results.json")
    assert Results.load_from(tmp_path / "results.json") == results


def test_every_table_of_the_page_is_measured() -> None:
    sources = "".join(path.read_text() for path in (PAGE.parents[1] / "benchmarks").rglob("*.py"))
    blocks = [found[2] for found in BLOCK.finditer(PAGE.read_text())]
    names = [re.sub("^(ratios|plot)-", "", name) for name in blocks]
    assert names
    assert [name for name in names if f'"{name}"' not in sources] == []
