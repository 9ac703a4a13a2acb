"""`make bench`: measures, keeps the numbers in build/bench and fills docs/performance.md with them.

`--quick` compares the fan-out with a few peers and prints ratios, in a minute or two.
"""

import argparse
import sys
from importlib import import_module

from benchmarks import report
from benchmarks.fanout import shapes
from benchmarks.fanout.peers import COALESCED, LOOP, MEMORY, NODE, SQLITE, TICK
from benchmarks.load import BUILD, CompilerMissingError
from benchmarks.results import Results

PARTS = {
    "fanout": "benchmarks.fanout.shapes",
    "host": "benchmarks.host",
    "gateway": "benchmarks.gateway",
    "draft": "benchmarks.draft",
    "log": "benchmarks.log",
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
    """What is not measured now stays as it was."""
    results = Results.begun()
    for part in parts or PARTS:
        import_module(PARTS[part]).run(results)
    if KEPT.exists():
        measured = {figure.table for figure in results.figures}
        last = Results.load_from(KEPT).figures
        results.figures += [figure for figure in last if figure.table not in measured]
    results.save(KEPT)
    report.write(results)
    print(f"{report.PAGE.relative_to(report.ROOT)} has been written.")


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
