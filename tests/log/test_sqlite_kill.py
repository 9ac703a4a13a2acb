"""What a killed process had reported is in the log when it starts again, whole and once."""

import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from session_server.log import Entry
from tests.log.logs import Sqlite, everything

ROOT = Path(__file__).resolve().parents[2]
KILLS = 25
BOUND = 60


def killed_while_appending(path: Path, lines: int) -> tuple[dict[str, int], set[str]]:
    """What the process had reported as durable, and what it had asked for beyond that."""
    durable: dict[str, int] = {}
    asked: set[str] = set()
    command = [sys.executable, "-m", "tests.log.appending", str(path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for number, line in enumerate(process.stdout):
            if number == lines:
                process.send_signal(signal.SIGKILL)
            # A line without an end was cut off by the kill, so nobody can have read it.
            word, *said = line.split() if line.endswith("\n") else [""]
            if word == "asked":
                asked.update(said)
            elif word == "durable":
                durable |= {id_: int(seq) for seq, id_ in (pair.split(":") for pair in said)}
        assert process.wait(BOUND) == -signal.SIGKILL
    return durable, asked - durable.keys()


def assert_whole(found: list[Entry]) -> None:
    """Every batch has all its parts, as neighbours in its channel, after what it had expected."""
    for channel in {entry.channel for entry in found}:
        last = 0
        parts = iter([entry for entry in found if entry.channel == channel])
        for first in parts:
            size = int(first.id.rpartition("/")[2])
            batch = [first, *(next(parts) for _ in range(size - 1))]
            assert [e.id for e in batch] == [f"{channel}/{last}/{n}/{size}" for n in range(size)]
            assert all(entry.data == entry.id.encode() * 20 for entry in batch)
            last = batch[-1].seq


@pytest.mark.slow
@pytest.mark.proves("design.log.kill", "design.log.all-or-nothing", "design.log.epoch")
async def test_a_kill_at_any_time_loses_nothing_that_was_reported(
    tmp_path: Path, record_property: Any
) -> None:
    backend = Sqlite(tmp_path)
    async with backend.opened() as log:
        epoch = log.epoch
    chance = random.Random(20260728)
    reported: dict[str, int] = {}
    kept_unreported = 0
    for _ in range(KILLS):
        durable, in_flight = killed_while_appending(backend.path, chance.randrange(1, 3_000))
        reported |= durable
        async with backend.opened() as log:
            found = await everything(log)
            assert log.epoch == epoch
            assert log.last_seq == found[-1].seq
        there = {entry.id: entry.seq for entry in found}
        assert max(Counter(entry.id for entry in found).values()) == 1
        assert reported.items() <= there.items()
        assert there.keys() <= reported.keys() | in_flight
        kept_unreported += len(there.keys() - reported.keys())
        reported = there
        assert_whole(found)
    assert len(reported) > KILLS
    record_property("kept_between_a_commit_and_its_report", kept_unreported)
