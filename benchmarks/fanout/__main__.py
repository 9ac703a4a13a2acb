"""Runs every server under the same load, in turns, and prints ratios: `make bench`.

`BENCH_ROUNDS` and `BENCH_SECONDS` make it longer or shorter.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks.fanout.contenders import (
    CHANNEL,
    FASTAPI,
    HERE,
    MEMORY,
    NODE,
    SQLITE,
    Door,
    contenders,
    pinned,
)

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
SECONDS = float(os.environ.get("BENCH_SECONDS", "1.5"))
STALL_SECONDS = 4 * SECONDS
SUBSCRIBERS = (1, 10, 100, 1000)
SATURATED, LONE = 64, 1
WANTED = {FASTAPI: 8, NODE: 4}
console = Console(width=120)


class Case(NamedTuple):
    name: str
    subscribers: int
    window: int
    stalled: int = 0
    seconds: float = SECONDS


Samples = dict[Case, list[dict[str, Any]]]


def load(door: Door, case: Case) -> dict[str, Any]:
    port, path, pid = door
    arguments = [port, path, CHANNEL, case.subscribers, case.window, case.seconds, case.stalled]
    command = [sys.executable, (HERE / "load.py").as_posix(), *map(str, arguments)]
    begun = processor_seconds(pid)
    done = subprocess.run(pinned(command, 1), check=True, capture_output=True, timeout=120)
    found: dict[str, Any] = json.loads(done.stdout)
    found["cpu"] = (processor_seconds(pid) - begun) / max(found["sent"], 1) * 1e6
    return found


def processor_seconds(pid: int) -> float:
    """What a process has used of the processors, its threads and the kernel's work included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cases_of(name: str) -> list[Case]:
    cases = [Case(name, number, window) for number in SUBSCRIBERS for window in (SATURATED, LONE)]
    if name in (MEMORY, SQLITE, FASTAPI):
        cases += [Case(name, 100, SATURATED, stalled, STALL_SECONDS) for stalled in (0, 1)]
    return cases


def main() -> None:
    samples: Samples = {}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(ROUNDS):
            for name, start in contenders(Path(folder)).items():
                with start() as door:
                    for case in cases_of(name):
                        samples.setdefault(case, []).append(load(door, case))
            console.print(f"round {number + 1} of {ROUNDS} done", style="dim")
    Report(samples).show()


class Report:
    def __init__(self, samples: Samples) -> None:
        self.samples = samples
        self.names = list(dict.fromkeys(case.name for case in samples))

    def show(self) -> None:
        self._rates("64 actions outstanding: deliveries per second (× the FastAPI loop)", SATURATED)
        self._times("64 actions outstanding: until the writer has its echo", SATURATED)
        self._costs(
            "64 actions outstanding: processor time of the server per action, in µs", SATURATED
        )
        self._rates("One in flight: deliveries per second (× the FastAPI loop)", LONE)
        self._times("One in flight: until the last subscriber has it", LONE)
        self._goals()
        self._stalls()

    def _figure(self, case: Case, key: str = "deliveries") -> float:
        return median(sample[key] for sample in self.samples[case])

    def _table(self, title: str) -> Table:
        table = Table(title=title, title_justify="left")
        table.add_column("subscribers")
        for name in self.names:
            table.add_column(name, justify="right")
        return table

    def _rates(self, title: str, window: int) -> None:
        table = self._table(title)
        for number in SUBSCRIBERS:
            base = self._figure(Case(FASTAPI, number, window))
            rates = [self._figure(Case(name, number, window)) for name in self.names]
            table.add_row(str(number), *(f"{rate:,.0f} ×{rate / base:.1f}" for rate in rates))
        console.print(table)

    def _times(self, title: str, window: int) -> None:
        table = self._table(f"{title}: p50 / p99 in µs")
        for number in SUBSCRIBERS:
            cases = [Case(name, number, window) for name in self.names]
            cells = [
                f"{self._figure(c, 'p50'):,.0f} / {self._figure(c, 'p99'):,.0f}" for c in cases
            ]
            table.add_row(str(number), *cells)
        console.print(table)

    def _costs(self, title: str, window: int) -> None:
        """The fairest figure on a machine that has something else to do."""
        table = self._table(title)
        for number in SUBSCRIBERS:
            costs = [self._figure(Case(name, number, window), "cpu") for name in self.names]
            table.add_row(str(number), *(f"{cost:,.0f}" for cost in costs))
        console.print(table)

    def _goals(self) -> None:
        ours = self._figure(Case(SQLITE, 100, SATURATED))
        for name, wanted in WANTED.items():
            if name in self.names:
                ratio = ours / self._figure(Case(name, 100, SATURATED))
                verdict = "reached" if ratio >= wanted else "missed"
                console.print(
                    f"100 subscribers, saturated, SQLite: ×{ratio:.1f} {name} "
                    f"(goal ×{wanted}: {verdict})"
                )

    def _stalls(self) -> None:
        for name in self.names:
            free, beside = (Case(name, 100, SATURATED, n, STALL_SECONDS) for n in (0, 1))
            if beside in self.samples:
                ratio = self._figure(beside) / self._figure(free)
                let_go = self._figure(beside, "let_go") > 0
                console.print(
                    f"{name}: one stalled subscriber beside 100, for {STALL_SECONDS:.0f} s: "
                    f"×{ratio:.2f} the rate without; it was {'let go' if let_go else 'kept'}"
                )


main()
