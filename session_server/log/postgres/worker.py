"""Tasks with a connection of their own: a worker does what it is asked for, one thing after the
other, and a listener notices what other nodes wrote.

Batches that wait together go into one transaction, in one round trip; while it is under way, the
next ones gather. The queue needs no bound of its own: a channel has at most one batch in flight,
and those who ask for anything else wait for it.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar

import psycopg

from session_server.log.postgres.faults import (
    READ_ONLY,
    REPLACED,
    bug,
    described,
    failure,
    is_lost,
    refusal,
)
from session_server.log.postgres.link import LONGEST_PAUSE, Link
from session_server.log.postgres.queries import MESSAGE_MARK
from session_server.log.postgres.schema import Connection, in_schema, one
from session_server.log.progress import Progress, settle
from session_server.log.protocol import (
    CLOSED,
    AppendResult,
    Batch,
    FailedError,
    LogError,
    Refused,
    RefusedBecause,
    Unknown,
)
from session_server.schemas.wire import Uri

ENTRIES_PER_GROUP = 4_096
BYTES_PER_GROUP = 8 * 2**20
"""Once that many are together, the rest waits for the next transaction."""

CLOSING_SECONDS = 10.0
"""How long closing waits for a server that does not answer; what is in flight is then unknown."""

POLL_SECONDS = 5.0
"""How often the end of the log is looked up, if no notification comes."""

T = TypeVar("T")
Operation: TypeAlias = Callable[[Connection], Awaitable[Any]]
Request: TypeAlias = tuple[Batch | Operation, Callable[[Any], None]]
Append: TypeAlias = Callable[[Connection, Sequence[Batch]], Awaitable[list[AppendResult]]]


class Worker:
    """`groups` counts the transactions that stored batches.

    `is_repeatable`: what it is asked may be asked again when the connection was lost meanwhile.
    A channel is in doubt while its last batch may be stored or not: until `find` is called for it.
    """

    def __init__(self, link: Link, append: Append, *, is_repeatable: bool = False) -> None:
        self._link = link
        self._append = append
        self._is_repeatable = is_repeatable
        self._loop = asyncio.get_running_loop()
        self._requests: deque[Request] = deque()
        self._asked = asyncio.Event()
        self._is_stopping = False
        self._in_flight: Sequence[Request] = ()
        self._doubts: dict[Uri, list[frozenset[str]]] = {}
        self.groups = 0
        self._task = self._loop.create_task(self._run(), name="session-server log")

    def ask(self, subject: Batch | Operation, settled: Callable[[Any], None]) -> None:
        """Returns at once; `settled` is called from the task, in the order of asking."""
        self._requests.append((subject, settled))
        self._asked.set()

    async def answer(self, operation: Callable[[Connection], Awaitable[T]]) -> T:
        """What an operation returned; raises a `FailedError`."""
        answer: asyncio.Future[T] = self._loop.create_future()

        def settled(result: Any) -> None:
            if answer.done():
                return
            if isinstance(result, FailedError):
                answer.set_exception(result)
            else:
                answer.set_result(result)

        self.ask(operation, settled)
        return await answer

    def settle_doubts(self, asked: Collection[str]) -> None:
        """A batch is stored whole or not at all, so one of its ids stands for all."""
        for channel, batches in tuple(self._doubts.items()):
            self._doubts[channel] = [ids for ids in batches if ids.isdisjoint(asked)]
            if not self._doubts[channel]:
                del self._doubts[channel]

    def stop(self) -> None:
        """Once all that was asked before is settled."""
        self._is_stopping = True
        self._asked.set()

    async def stopped(self) -> None:
        await asyncio.wait({self._task}, timeout=CLOSING_SECONDS)
        if not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _run(self) -> None:
        try:
            while self._requests or not self._is_stopping:
                self._asked.clear()
                while self._requests:
                    self._in_flight = group = self._gathered()
                    results = await self._results([subject for subject, _ in group])
                    self._in_flight = ()
                    self._settle(group, results)
                if not self._is_stopping:
                    await self._asked.wait()
        except asyncio.CancelledError:
            self._cancel_waiting()
            raise
        finally:
            await self._link.close()

    def _settle(self, group: Sequence[Request], results: Sequence[Any]) -> None:
        for (_, settled), result in zip(group, results, strict=True):
            settle(self._loop, settled, result)

    def _cancel_waiting(self) -> None:
        """The server does not answer: all that wait get an unknown result."""
        error = TimeoutError("PostgreSQL did not answer before the log was closed")
        flying, self._in_flight = self._in_flight, ()
        self._settle(flying, self._to_each([subject for subject, _ in flying], error))
        waiting = tuple(self._requests)
        self._requests.clear()
        refused = [CLOSED if isinstance(s, Batch) else FailedError(*CLOSED) for s, _ in waiting]
        self._settle(waiting, refused)

    def _gathered(self) -> list[Request]:
        """Batches of different channels, as many as wait; or one operation."""
        requests = self._requests
        group: list[Request] = []
        channels: set[Uri] = set()
        entries = size = 0
        while requests and entries < ENTRIES_PER_GROUP and size < BYTES_PER_GROUP:
            subject = requests[0][0]
            if not isinstance(subject, Batch):
                return group or [requests.popleft()]
            if subject.channel in channels:
                break
            channels.add(subject.channel)
            entries += len(subject.entries)
            size += sum(len(entry.data) for entry in subject.entries)
            group.append(requests.popleft())
        return group

    async def _results(self, subjects: Sequence[Batch | Operation]) -> list[Any]:
        """What became of each: an outcome, what an operation returned, or a `FailedError`."""
        try:
            connection = await self._link.connection()
        except Exception as error:  # noqa: BLE001  # a task that ends would leave all waiting
            return self._to_each(subjects, error if isinstance(error, FailedError) else bug(error))
        try:
            return await self._done(connection, subjects)
        except (psycopg.Error, OSError, FailedError) as error:
            return await self._failed(subjects, error)
        except Exception as error:  # noqa: BLE001
            return await self._failed(subjects, bug(error))

    async def _done(
        self, connection: Connection, subjects: Sequence[Batch | Operation]
    ) -> list[Any]:
        if len(subjects) == 1 and not isinstance(subjects[0], Batch):
            return [await subjects[0](connection)]
        batches = [subject for subject in subjects if isinstance(subject, Batch)]
        sure = [batch for batch in batches if batch.channel not in self._doubts]
        outcomes = iter(await self._append(connection, sure) if sure else ())
        self.groups += 1
        return [
            _doubted(batch) if batch.channel in self._doubts else next(outcomes)
            for batch in batches
        ]

    async def _failed(self, subjects: Sequence[Batch | Operation], error: Exception) -> list[Any]:
        """Nothing is stored, or it is not known. If one batch caused it, the others are retried."""
        state = getattr(error, "sqlstate", None)
        is_elsewhere = state == READ_ONLY and self._link.has_alternatives
        if is_lost(error) or state == REPLACED or is_elsewhere:
            await self._link.lose(error)
            if self._is_repeatable:
                self._is_repeatable = False
                try:
                    return await self._results(subjects)
                finally:
                    self._is_repeatable = True
        elif len(subjects) > 1:
            return [result for subject in subjects for result in await self._results([subject])]
        return self._to_each(subjects, error)

    def _to_each(self, subjects: Iterable[Batch | Operation], error: Exception) -> list[Any]:
        """An outcome for batches, and an error for other operations."""
        results: list[Any] = []
        for subject in subjects:
            if not isinstance(subject, Batch):
                results.append(failure(error))
            elif is_lost(error):
                if subject.entries:
                    ids = frozenset(entry.id for entry in subject.entries)
                    self._doubts.setdefault(subject.channel, []).append(ids)
                results.append(Unknown(described(error)))
            else:
                results.append(refusal(error))
        return results


def _doubted(batch: Batch) -> Refused:
    text = f"It is not known whether the last batch of {batch.channel} is stored"
    return Refused(RefusedBecause.CONFLICT, f"{text}: call `find` first.")


class Listener:
    """Notices what other nodes wrote, on a connection of its own.

    A notification only wakes readers up, and they read by position. So one that is lost costs time
    and nothing else; and once in a while the end of the log is looked up without one.
    """

    def __init__(self, link: Link, schema: str, progress: Progress) -> None:
        self.link = link
        self._schema = schema
        self._progress = progress
        self.heard: Callable[[str], None] | None = None
        self._task = asyncio.get_running_loop().create_task(self._run(), name="log listener")

    async def _run(self) -> None:
        try:
            while True:
                try:
                    await self._listen(await self.link.connection())
                except (psycopg.Error, OSError, LogError) as error:
                    if is_lost(error):
                        await self.link.lose(error)
                    await asyncio.sleep(LONGEST_PAUSE)
        finally:
            await self.link.close()

    async def _listen(self, connection: Connection) -> None:
        """What was written before it listened is looked up too."""
        await connection.execute(in_schema("LISTEN {s}", self._schema))
        end = in_schema("SELECT last_seq FROM {s}.counter", self._schema)
        self._progress.reach(await one(connection, end))
        async for notification in connection.notifies(timeout=POLL_SECONDS):
            payload = notification.payload
            if not payload.startswith(MESSAGE_MARK):
                self._progress.reach(int(payload))
            elif self.heard is not None:
                self.heard(payload.removeprefix(MESSAGE_MARK))

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.wait({self._task})
