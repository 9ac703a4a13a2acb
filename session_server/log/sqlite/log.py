"""The log over SQLite, as the event loop sees it: what it asks, and where the answer comes from."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from sqlite3 import Connection
from typing import Any, TypeVar

from session_server.log.progress import follow, refuse_closed
from session_server.log.protocol import (
    CLOSED,
    Batch,
    Entry,
    Epoch,
    FailedError,
    OnAppended,
    OpenError,
    StoredSnapshot,
    Sync,
)
from session_server.log.sqlite import reading
from session_server.log.sqlite.database import Database
from session_server.log.sqlite.store import Operation
from session_server.log.sqlite.writer import Writer
from session_server.schemas.wire import Millis, Seq, Uri

T = TypeVar("T")


class SqliteLog:
    """Writes through one thread and reads through another; the loop waits for neither."""

    def __init__(self, database: Database, loop: asyncio.AbstractEventLoop) -> None:
        self._database = database
        self._loop = loop
        self._writer = Writer(database, loop)
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="session-server log reader")
        self._is_closed = False

    @classmethod
    async def open(
        cls, path: Path, *, sync: Sync = Sync.FULL, accept_data_loss: bool = False
    ) -> "SqliteLog":
        """Raises an `OpenError` that says what stands in the way."""
        loop = asyncio.get_running_loop()
        opened = partial(Database, path, sync, accept_data_loss=accept_data_loss)
        opening = loop.run_in_executor(None, opened)
        try:
            return cls(await asyncio.shield(opening), loop)
        except asyncio.CancelledError:  # its thread goes on, and nobody else would close the file
            with suppress(OpenError):
                await loop.run_in_executor(None, (await opening).close)
            raise

    @property
    def epoch(self) -> Epoch:
        return self._database.epoch

    @property
    def last_seq(self) -> Seq:
        return self._writer.progress.last_seq

    @property
    def commits(self) -> int:
        """How many transactions there were; with the number of batches, how many share one."""
        return self._writer.commits

    def append(self, batches: Sequence[Batch], settled: OnAppended) -> None:
        if self._is_closed:
            refuse_closed(self._loop, batches, settled)
        else:
            self._writer.ask(batches, settled)

    async def read(
        self, *, after: Seq, limit: int, channels: Collection[Uri] | None = None
    ) -> Sequence[Entry]:
        return await self._ask_reader(lambda c: reading.read(c, after, limit, channels))

    async def read_uncovered(self, *, after: Seq, limit: int) -> Sequence[Entry]:
        return await self._ask_reader(lambda c: reading.read_uncovered(c, after, limit))

    async def find(self, ids: Collection[str]) -> dict[str, Seq]:
        """Asks the writer: it alone can tell, after what was appended before, and settle doubts."""
        found: dict[str, Seq] = await self._ask_writer(lambda store: store.find(ids))
        return found

    def follow(self, after: Seq) -> AsyncIterator[Sequence[Entry]]:
        return follow(self, self._writer.progress, after)

    async def save_snapshot(self, snapshot: StoredSnapshot) -> None:
        await self._ask_writer(lambda store: store.save_snapshot(snapshot))

    async def snapshots(self, channels: Collection[Uri] | None = None) -> Sequence[StoredSnapshot]:
        return await self._ask_reader(lambda c: reading.snapshots(c, channels))

    async def outlines(self) -> Sequence[StoredSnapshot]:
        return await self._ask_reader(reading.outlines)

    async def trim(self, channel: Uri, up_to: Seq, now: Millis = 0) -> None:
        """In pieces, so that a long history holds no append up."""
        while await self._ask_writer(lambda store: store.trim(channel, up_to, now)):
            pass

    async def floors(self) -> dict[Uri, Seq]:
        return await self._ask_reader(reading.floors)

    async def drop(self, channel: Uri) -> Seq:
        await self._ask_writer(lambda store: store.drop(channel))
        return self.last_seq

    async def lasting(self) -> dict[Seq, Millis]:
        found: dict[Seq, Millis] = await self._ask_writer(lambda store: store.lasting())
        return found

    async def adopt(self, entries: Sequence[tuple[Entry, Millis]]) -> None:
        await self._ask_writer(lambda store: store.adopt(entries))

    async def adopt_floors(self, floors: dict[Uri, Seq]) -> None:
        await self._ask_writer(lambda store: store.adopt_floors(floors))

    async def forget_epoch(self) -> None:
        await self._ask_writer(lambda store: store.forget_epoch())

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._writer.progress.end()
            self._writer.stop()
        await asyncio.shield(self._writer.stopped)
        self._reader.shutdown()

    async def _ask_writer(self, operation: Operation) -> Any:
        if self._is_closed:
            raise FailedError(*CLOSED)
        answer: asyncio.Future[Any] = self._loop.create_future()

        def settled(results: Sequence[tuple[Operation, object]]) -> None:
            ((_, result),) = results
            if answer.done():
                return
            if isinstance(result, FailedError):
                answer.set_exception(result)
            else:
                answer.set_result(result)

        self._writer.ask((operation,), settled)
        return await answer

    async def _ask_reader(self, question: Callable[[Connection], T]) -> T:
        """After a failure the writer is asked first: only it can open the file again."""
        if self._is_closed:
            raise FailedError(*CLOSED)
        if not self._database.is_readable:
            await self._ask_writer(lambda _: None)
        return await self._loop.run_in_executor(self._reader, self._database.read, question)
