"""What was measured: numbers by table, row and column, and the machine that they are from."""

import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import sleep

import msgspec


class Figure(msgspec.Struct, kw_only=True):
    """The same thing measured several times."""

    table: str
    row: str
    column: str
    samples: list[float]

    @property
    def median(self) -> float:
        return median(self.samples)

    @property
    def spread(self) -> float:
        """Half of the distance between the least and the greatest, as a part of the median."""
        middle = self.median
        return (max(self.samples) - min(self.samples)) / 2 / middle if middle else 0.0


def busy_processors(seconds: float = 2.0) -> float:
    """Averages of the system's load remember minutes, and so the benchmark before this one."""
    before = _processor_ticks()
    sleep(seconds)
    idle, whole = (after - past for after, past in zip(_processor_ticks(), before, strict=True))
    return (1 - idle / whole) * (os.cpu_count() or 1)


def _processor_ticks() -> tuple[int, int]:
    """Idle ones, and all."""
    first, *_ = Path("/proc/stat").read_text().splitlines()
    ticks = [int(count) for count in first.split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


class Results(msgspec.Struct, kw_only=True):
    date: str = ""
    machine: str = ""
    load: float = 0.0
    """How many processors were busy when the run began: with the work of others."""
    figures: list[Figure] = []

    @classmethod
    def begun(cls) -> "Results":
        date = datetime.now(UTC).strftime("%Y-%m-%d")
        return cls(date=date, machine=machine(), load=busy_processors())

    def add(self, table: str, row: str, column: str, value: float) -> None:
        figure = self.find(table, row, column)
        if figure is None:
            figure = Figure(table=table, row=row, column=column, samples=[])
            self.figures.append(figure)
        figure.samples.append(value)

    def find(self, table: str, row: str, column: str) -> Figure | None:
        wanted = (table, row, column)
        return next((f for f in self.figures if (f.table, f.row, f.column) == wanted), None)

    def rows(self, table: str) -> list[str]:
        return list(dict.fromkeys(f.row for f in self.figures if f.table == table))

    def columns(self, table: str) -> list[str]:
        return list(dict.fromkeys(f.column for f in self.figures if f.table == table))

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self)))

    @classmethod
    def load_from(cls, path: Path) -> "Results":
        return msgspec.json.decode(path.read_bytes(), type=cls)


def machine() -> str:
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else model
    python, linux = platform.python_version(), platform.release()
    return f"{os.cpu_count()} cores of {model}, {platform.system()} {linux}, Python {python}"
