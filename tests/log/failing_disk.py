"""A process whose disk fails in the middle of a commit: files may not grow beyond a limit.

`python -m tests.log.failing_disk DATABASE`: prints what became of each step, as JSON.
"""

import asyncio
import json
import resource
import sys
from pathlib import Path
from typing import Any

from session_server.log import Batch, NewEntry
from session_server.log.sqlite import SqliteLog
from tests.log.logs import BOUND, asked, end_of_wal, wal_of

LARGE = b"x" * 1_000_000


def limit_files(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


async def main(path: Path) -> dict[str, Any]:
    log = await SqliteLog.open(path)
    said: dict[str, Any] = {}

    async def append(name: str, channel: str, expected: int, data: bytes = b"x") -> None:
        entries = (NewEntry(name, data), NewEntry(f"{name}+", data))
        outcome = await asyncio.wait_for(asked(log, Batch(channel, expected, entries)), BOUND)
        said[name] = [type(outcome).__name__, getattr(outcome, "because", None)]

    await append("before", "a", 0)
    end_of_a = log.last_seq
    limit_files(end_of_wal(wal_of(path)) + 100_000)
    await append("fails", "a", end_of_a, LARGE)
    await append("too soon", "a", end_of_a)
    await append("elsewhere", "b", 0)
    said["found"] = await log.find(["before", "before+", "fails", "fails+"])
    await append("after", "a", end_of_a)
    limit_files(resource.RLIM_INFINITY)
    await append("large after all", "c", 0, LARGE)
    said["stored"] = [[e.seq, e.id] for e in await log.read(after=0, limit=100)]
    await log.close()
    return said


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(main(Path(sys.argv[1])))))
