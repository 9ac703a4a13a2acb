"""Progress of a server, as people see it: not more often than they can read."""

import asyncio
from typing import Any, Protocol

from session_server.host.channel import Plan
from session_server.reducers import rounds
from session_server.reducers.batches import Batch
from session_server.schemas.principals import Stamp
from session_server.schemas.record import SessionRecord
from session_server.schemas.wire import Uri

EVERY_SECONDS = 0.5


class Writer(Protocol):
    async def record(self, uri: Uri, plan: Plan) -> None: ...

    def spawn(self, work: Any) -> asyncio.Task[None]: ...


class Reporter:
    """Writes the first report at once and of those that follow the latest, with pauses."""

    def __init__(self, writer: Writer, uri: Uri, call_id: str, leg: int) -> None:
        self._writer = writer
        self._uri = uri
        self._call_id = call_id
        self._leg = leg
        self._latest: str | None = None
        self._task: asyncio.Task[None] | None = None

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        self._latest = words_of(progress, total, message)
        if self._task is None or self._task.done():
            self._task = self._writer.spawn(self._report())

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _report(self) -> None:
        while self._latest is not None:
            words, self._latest = self._latest, None

            def plan(record: SessionRecord, _: Stamp, words: str = words) -> Batch:
                return rounds.progress(record, self._call_id, self._leg, words)

            await self._writer.record(self._uri, plan)
            await asyncio.sleep(EVERY_SECONDS)


def words_of(progress: float, total: float | None, message: str | None) -> str:
    done = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
    return f"{done}: {message}" if message else done
