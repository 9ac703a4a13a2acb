"""`make bench`: measures, keeps the numbers in build/bench and fills the pages of docs with them.

`--quick` compares the fan-out with a few peers and prints ratios, in a minute or two.
"""

import argparse
import sys
import traceback
from importlib import import_module
from time import perf_counter

from benchmarks import report
from benchmarks.fanout import shapes
from benchmarks.fanout.peers import COALESCED, LOOP, MEMORY, NODE, SQLITE, TICK
from benchmarks.load import BUILD, CompilerMissingError
from benchmarks.results import Results

PARTS = {
    "fanout": "benchmarks.fanout.shapes",
    "host": "benchmarks.host",
    "versions": "benchmarks.versions",
    "gateway": "benchmarks.gateway",
    "draft": "benchmarks.draft",
    "log": "benchmarks.log",
    "nodes": "benchmarks.nodes",
    "page": "benchmarks.page",
}
"""Modules whose `run` fills tables; imported when they are wanted."""
KEPT = BUILD / "results.json"
QUICK_PEERS = (TICK, COALESCED, NODE, LOOP, MEMORY, SQLITE)


def quick() -> None:
    results = Results.begun()
    unhurried = [shape._replace(rate=0) for shape in shapes.SHAPES]
    shapes.run(results, QUICK_PEERS, unhurried, rounds=2, seconds=0.5, stalling=())
    report.show_ratios(results)


def measure(parts: list[str]) -> None:
    """What is not measured now stays as it was; a part that fails keeps the others from nothing."""
    results = Results.begun()
    last = Results.load_from(KEPT).figures if KEPT.exists() else []
    failed = [part for part in parts or PARTS if not has_run(part, results)]
    measured = {figure.table for figure in results.figures}
    results.figures += [figure for figure in last if figure.table not in measured]
    results.save(KEPT)
    for page in filter(lambda page: report.shows(page, measured), report.PAGES):
        report.write(results, page)
        print(f"{page.relative_to(report.ROOT)} has been written.")
    if failed:
        sys.exit(f"Not measured, for the reasons above: {', '.join(failed)}")


def has_run(part: str, results: Results) -> bool:
    began, known = perf_counter(), len(results.figures)
    try:
        import_module(PARTS[part]).run(results)
    except CompilerMissingError:
        raise
    except Exception:  # noqa: BLE001 - half an hour of measuring is not to be lost
        traceback.print_exc()
        del results.figures[known:]
        return False
    print(f"{part} took {(perf_counter() - began) / 60:.1f} minutes.", flush=True)
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], help="all, if none is named")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    try:
        quick() if given.quick else measure(given.parts)
    except CompilerMissingError as error:
        sys.exit(str(error))


main()
