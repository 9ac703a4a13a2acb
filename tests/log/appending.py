"""A process that appends until it is killed, saying before each append and after each outcome.

`python -m tests.log.appending DATABASE`: lines are `asked ID…` and `durable SEQ:ID…`.
"""

import asyncio
import os
import sys
from pathlib import Path

from session_server.log import AppendResult, Batch, Durable, NewEntry
from session_server.log.sqlite import SqliteLog
from tests.log.one_by_one import append_one

CHANNELS = 16


async def main(path: Path) -> None:
    log = await SqliteLog.open(path)
    lasts: dict[str, int] = {}
    for entry in await log.read(after=0, limit=10**9):
        lasts[entry.channel] = entry.seq
    for number in range(CHANNELS):
        go_on(log, f"c{number}", lasts.get(f"c{number}", 0), 1 + number % 4)
    await asyncio.Event().wait()


def go_on(log: SqliteLog, channel: str, last: int, size: int) -> None:
    """The next batch of a channel. An id says how large its batch is, and which part it is."""
    ids = [f"{channel}/{last}/{part}/{size}" for part in range(size)]

    def settled(outcome: AppendResult) -> None:
        assert isinstance(outcome, Durable), outcome
        pairs = zip(outcome.seqs, ids, strict=True)
        say("durable", *(f"{seq}:{id_}" for seq, id_ in pairs))
        go_on(log, channel, outcome.seqs[-1], size)

    say("asked", *ids)
    entries = tuple(NewEntry(id_, id_.encode() * 20) for id_ in ids)
    append_one(log, Batch(channel, last, entries), settled)


def say(*reason: str) -> None:
    os.write(sys.stdout.fileno(), (" ".join(reason) + "\n").encode())


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
