"""Following a log: entries written during a read, failures, and the end."""

from collections.abc import Sequence
from typing import Any

import pytest

from session_server.log import Entry, RefusedBecause
from session_server.log.memory import MemoryLog
from session_server.log.progress import Progress, follow
from session_server.log.protocol import FailedError
from tests.log.logs import stored

A = "ahp-session:/a"


class SlowToAnswer:
    """Something is written after a read has looked, and before its answer is there."""

    def __init__(self, log: MemoryLog) -> None:
        self.log = log

    async def read(self, **options: Any) -> Sequence[Entry]:
        found = await self.log.read(**options)
        if self.log.last_seq == self.log.epoch.first:
            await stored(self.log, A, 0, b"meanwhile")
        return found


async def test_what_is_written_while_a_read_is_answered_is_not_passed_over() -> None:
    log = MemoryLog()
    stream = follow(SlowToAnswer(log), log._progress, 0)
    assert [e.data for e in await anext(stream)] == [b"meanwhile"]
    await log.close()


class FailsToAnswer:
    def __init__(self, because: RefusedBecause) -> None:
        self.because = because

    async def read(self, **_: Any) -> Sequence[Entry]:
        raise FailedError(self.because, "in a test")


async def test_a_follower_gets_a_failure_but_ends_quietly_with_the_log() -> None:
    broken = FailsToAnswer(RefusedBecause.BROKEN)
    with pytest.raises(FailedError):
        await anext(follow(broken, Progress(0), 0))
    closed = FailsToAnswer(RefusedBecause.CLOSED)
    assert [entries async for entries in follow(closed, Progress(0), 0)] == []
