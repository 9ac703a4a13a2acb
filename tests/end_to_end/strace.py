"""What a process asked of the kernel, in order, as `strace` sees it."""

import re
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

CALLS = "fsync,fdatasync,sendto,sendmsg,write,writev,pwrite64,pwritev"
TEXT = 1_000_000
FOLLOWING = ("-D", "-f", "--seccomp-bpf")
"""Calls that are not asked for are not stopped at: there are many when a server is imported."""

_LINE = re.compile(r"(?P<thread>\d+)\s+(?P<rest>.*)", re.DOTALL)
_RESUMED = re.compile(r"<\.\.\. (?P<name>\w+) resumed>(?P<rest>.*)", re.DOTALL)
_UNFINISHED = " <unfinished ...>"


class Call(NamedTuple):
    """`start` and `end` are places in the trace: nothing of another thread is hidden between."""

    start: int
    end: int
    text: str

    @property
    def name(self) -> str:
        return self.text.partition("(")[0]


@cache
def why_not() -> str | None:
    """Why nothing can be traced here, if so."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    command = ["strace", *FOLLOWING, "true"]
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    return None if tried.returncode == 0 else f"strace cannot trace: {tried.stderr[:200]}"


def tracing(trace: Path) -> tuple[str, ...]:
    """In front of a command. The traced process stays our child, and strace ends with it."""
    options = (*FOLLOWING, "-yy", "-s", str(TEXT), "-e", f"trace={CALLS}", "-e", "signal=none")
    return ("strace", *options, "-o", str(trace))


def read(trace: Path) -> list[Call]:
    calls: list[Call] = []
    begun: dict[str, tuple[int, str]] = {}
    for place, line in enumerate(trace.read_text(errors="replace").splitlines()):
        found = _LINE.match(line)
        if found is None:
            continue
        thread, rest = found["thread"], found["rest"]
        resumed = _RESUMED.match(rest)
        if resumed is not None:
            start, begin = begun.pop(thread)
            calls.append(Call(start, place, begin + resumed["rest"]))
        elif rest.endswith(_UNFINISHED):
            begun[thread] = (place, rest.removesuffix(_UNFINISHED))
        else:
            calls.append(Call(place, place, rest))
    return sorted(calls)


def is_wal_write(call: Call) -> bool:
    return "write" in call.name and "-wal>" in call.text.partition(",")[0]


def is_wal_sync(call: Call) -> bool:
    return (
        call.name in ("fsync", "fdatasync") and "-wal>" in call.text and call.text.endswith("= 0")
    )


def is_send(call: Call) -> bool:
    return "<TCP:" in call.text.partition(",")[0]


def first(calls: list[Call], fits: Callable[[Call], bool]) -> Call:
    return next(call for call in calls if fits(call))


def commit_of(calls: list[Call], token: str) -> int:
    """Where the sync of what holds this is in the trace."""
    written = first(calls, lambda c: is_wal_write(c) and token in c.text)
    return first(calls, lambda c: is_wal_sync(c) and c.start > written.end).start


def check_synced(calls: list[Call], token: str) -> None:
    """What holds this was written, then synced, and only then sent."""
    sent = first(calls, lambda c: is_send(c) and token in c.text)
    written = first(calls, lambda c: is_wal_write(c) and token in c.text)
    synced = next((c for c in calls if is_wal_sync(c) and c.start > written.end), None)
    assert synced is not None, f"{token} was never synced"
    assert written.end < synced.start <= synced.end < sent.start, f"{token} was sent too early"
