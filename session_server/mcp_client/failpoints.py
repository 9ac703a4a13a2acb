"""Places where a test can have the process die, as by `kill -9`, or see that it came by.

For tests alone. Off, and then no more than one comparison per message of a call, unless
`SESSION_SERVER_FAILPOINTS` is set when the host opens its log, which it says aloud: `name#n` to die
when a place is reached for the n-th time, `trace=path` to have every place written to a file; `;`
between.
"""

import logging
import os
import re
import signal
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from session_server.log.protocol import AppendResult, Batch, Log, OnAppended

logger = logging.getLogger("session_server.calls")

VARIABLE = "SESSION_SERVER_FAILPOINTS"
LOGGED = re.compile(rb'^.{0,51}"private/(call[^"]*|outcomeRecorded)"')
"""`callSent` of `{"action":{"type":"private/callSent",…`."""


class Failpoints:
    active: "ClassVar[Failpoints | None]" = None

    def __init__(self, setting: str) -> None:
        self._deadly: set[str] = set()
        self._trace: Path | None = None
        self._reached: Counter[str] = Counter()
        for part in filter(None, setting.split(";")):
            if part.startswith("trace="):
                self._trace = Path(part.removeprefix("trace="))
            else:
                self._deadly.add(part)

    def hit(self, name: str) -> None:
        self._reached[name] += 1
        place = f"{name}#{self._reached[name]}"
        if self._trace is not None:
            with self._trace.open("a") as file:
                file.write(f"{place}\n")
        if place in self._deadly:
            os.kill(os.getpid(), signal.SIGKILL)


def hit(name: str) -> None:
    if Failpoints.active is not None:
        Failpoints.active.hit(name)


def guarded(log: Log) -> Log:
    """The log, with places before and after every append that tells of a call."""
    setting = os.environ.get(VARIABLE)
    if not setting:
        Failpoints.active = None
        return log
    logger.warning("%s is set: this process is under test, and may die on purpose", VARIABLE)
    Failpoints.active = Failpoints(setting)
    return _GuardedLog(log)  # type: ignore[return-value]


class _GuardedLog:
    def __init__(self, log: Log) -> None:
        self._log = log

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)

    def append(self, batches: Sequence[Batch], settled: OnAppended) -> None:
        for name in _names(batches):
            hit(f"append.{name}")

        def reported(results: Sequence[tuple[Batch, AppendResult]]) -> None:
            for name in _names([batch for batch, _ in results]):
                hit(f"appended.{name}")
            settled(results)

        self._log.append(batches, reported)


def _names(batches: Sequence[Batch]) -> list[str]:
    """Of the entries that tell of a call."""
    found = [LOGGED.search(entry.data, 0, 128) for batch in batches for entry in batch.entries]
    return [one[1].decode() for one in found if one is not None]
