"""Comparing ways of doing the same work: interleaved, in one process, as ratios."""

import gc
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import TypeVar

from rich.console import Console
from rich.table import Table

Work = Callable[[], object]
K = TypeVar("K")
ROUNDS = 15
SECONDS_PER_ROUND = 0.05


def microseconds(contenders: dict[K, Work]) -> dict[K, float]:
    """The median time of one run of each. They take turns, so that noise hits all alike."""
    counts = {name: _calibrated(work) for name, work in contenders.items()}
    samples: dict[K, list[float]] = {name: [] for name in contenders}
    gc.disable()
    try:
        for _ in range(ROUNDS):
            for name, work in contenders.items():
                samples[name].append(_timed(work, counts[name]))
            gc.collect()
    finally:
        gc.enable()
    return {name: median(times) * 1e6 for name, times in samples.items()}


def _calibrated(work: Work) -> int:
    """How many runs fill a round."""
    count = 1
    while _timed(work, count) * count < SECONDS_PER_ROUND:
        count *= 2
    return count


def _timed(work: Work, count: int) -> float:
    started = perf_counter()
    for _ in range(count):
        work()
    return (perf_counter() - started) / count


def show(title: str, columns: dict[str, dict[str, float]], baseline: str) -> None:
    """A table of microseconds, each beside its ratio to the baseline."""
    table = Table(title=title, title_justify="left")
    table.add_column("")
    for column in columns:
        table.add_column(f"{column} (µs)", justify="right")
    for name in next(iter(columns.values())):
        cells = [
            f"{times[name]:.1f}  ×{times[name] / times[baseline]:.1f}" for times in columns.values()
        ]
        table.add_row(name, *cells)
    Console(width=100).print(table)
