"""The log over JetStream: appending, and what the other modules here do for the `Log` protocol.

A batch is `Durable` when the servers have acknowledged it and it is applied to the index, as the
batches of other nodes are: all in the order of the stream. Operations on a channel run one after
the other; channels do not wait for each other.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from session_server.log.nats.claim import Membership
from session_server.log.nats.messages import (
    SEQS_PER_MESSAGE,
    Fence,
    batch_bodies,
    body_of,
    token_of,
)
from session_server.log.nats.reading import read_entries, read_snapshots
from session_server.log.nats.retention import MARKER_LIFETIME, Retention
from session_server.log.nats.servers import LostError, WrongLastError
from session_server.log.nats.stream_config import Address, address_of
from session_server.log.nats.tail import Tail
from session_server.log.progress import Progress, follow, refuse_closed, settle
from session_server.log.protocol import (
    CLOSED,
    KNOWN_ID,
    AppendResult,
    Batch,
    Durable,
    Entry,
    Epoch,
    FailedError,
    OnAppended,
    OpenError,
    Refused,
    RefusedBecause,
    StoredSnapshot,
    Unknown,
    conflict,
)
from session_server.log.shared_loss_detection import LogPosition, Witness
from session_server.schemas.wire import Millis, Seq, Uri

MESSAGES_SUBJECT = "session-server-messages"

CLOSING_SECONDS = 10.0
"""How long closing waits for servers that do not answer; what is in flight is then unknown."""

T = TypeVar("T")

TAKEN_OVER = Refused(RefusedBecause.BROKEN, "Another session-server has taken this log over.")
RESTARTED = Refused(
    RefusedBecause.BROKEN, "The log has begun a new epoch: restart the host to go on in it."
)


class NatsLog:
    """With `is_exclusive` no other process has the log open at the same time."""

    progress: Progress

    def __init__(self, address: Address, *, is_exclusive: bool, witness: Witness | None) -> None:
        self._address = address
        self._witness = witness
        self._is_exclusive = is_exclusive
        self._loop = asyncio.get_running_loop()
        self._tail = Tail(address, self._on_applied)
        self._servers, self._subjects = self._tail.servers, self._tail.subjects
        self._index = self._tail.index
        self._membership = Membership(address, self._tail)
        self.is_first = self.is_joined = True
        self._retention = Retention(address.stream, self._tail)
        self._doubts: dict[Uri, frozenset[str]] = {}
        self._locks: WeakValueDictionary[Uri, asyncio.Lock] = WeakValueDictionary()
        self._tasks: dict[asyncio.Task[Any], None] = {}
        """In the order in which they began, which is that in which they are cancelled."""
        self._appends: set[asyncio.Task[None]] = set()
        self._closing: asyncio.Task[None] | None = None
        self._epochs = 0
        self._messages_subject = f"{MESSAGES_SUBJECT}.{address.stream}"
        self._heard: Callable[[str], None] | None = None

    @classmethod
    async def open(
        cls, url: str, *, is_exclusive: bool = True, witness: Witness | None = None
    ) -> "NatsLog":
        """Raises an `OpenError` with the reason."""
        log = cls(address_of(url), is_exclusive=is_exclusive, witness=witness)
        try:
            await log._tail.open(log._membership.name)
            if is_exclusive:
                await log._membership.claim()
            else:
                log.is_first, log.is_joined = await log._membership.join()
                await log._servers.subscribe(log._messages_subject, log._on_message)
            await log._check_kept()
        except BaseException as error:
            await log._tail.close()
            if isinstance(error, FailedError | NatsError | OSError):
                text = str(error) or type(error).__name__
                raise OpenError(f"{log._address.shown} cannot be opened: {text}") from error
            raise
        log.progress = Progress(log._index.last_seq)
        log._epochs = len(log._index.epochs)
        if witness is not None:
            witness.watch(lambda: LogPosition(log.epoch, log.last_seq))
        return log

    async def _check_kept(self) -> None:
        """Begins a new epoch if the stream ends before what was seen of it: it was restored."""
        seen = self._witness.seen() if self._witness else None
        if seen is not None and LogPosition(self.epoch, self._index.last_seq).has_lost(seen):
            await self._tail.begin_epoch(max(self._index.last_seq, seen.last_seq))

    def _on_applied(self) -> None:
        if self._epochs:
            self.progress.reach(self._index.last_seq)
            if self._is_exclusive and not self._membership.has_claim:
                self._tail.fault = TAKEN_OVER
            elif len(self._index.epochs) > self._epochs and self._tail.fault is None:
                self._tail.fault = RESTARTED

    @property
    def epoch(self) -> Epoch:
        return self._index.epochs[-1][1]

    @property
    def last_seq(self) -> Seq:
        return self.progress.last_seq

    # Appending

    def append(self, batches: Sequence[Batch], settled: OnAppended) -> None:
        if self._closing is not None:
            refuse_closed(self._loop, batches, settled)
            return
        for batch in batches:
            task = self._spawn(self._append(self._lock(batch.channel), batch, settled))
            self._appends.add(task)
            task.add_done_callback(self._appends.discard)

    async def _append(self, lock: asyncio.Lock, batch: Batch, settled: OnAppended) -> None:
        outcome: AppendResult = CLOSED
        try:
            async with lock:
                outcome = Unknown("The log was closed before NATS answered.")
                outcome = await self._outcome(batch)
        finally:
            settle(self._loop, settled, [(batch, outcome)])

    async def _outcome(self, batch: Batch) -> AppendResult:
        if refused := self._refusal(batch):
            return refused
        if not batch.entries:
            return Durable(())
        bodies = batch_bodies(batch.channel, batch.entries, (), self._servers.largest)
        subject = self._subjects.entries + token_of(batch.channel)
        end = self._index.channel(batch.channel).end

        def is_as_expected() -> bool:
            return self._index.channel(batch.channel).last == batch.expected

        ids = frozenset(entry.id for entry in batch.entries)
        try:
            number = await self._tail.publish_parts(subject, bodies, end, is_as_expected)
        except LostError as error:
            self._doubts[batch.channel] = ids
            return Unknown(error.reason)
        except WrongLastError:
            seqs = self._index.seqs
            if ids.isdisjoint(seqs):
                return conflict(batch, self._index.channel(batch.channel).last)
            # It was sent again after a leader had stored it and was replaced before it said so.
            return Durable(tuple(seqs[entry.id] for entry in batch.entries))
        except FailedError as error:
            return Refused(error.because, error.reason)
        if ids.isdisjoint(self._index.seqs):  # another node has dropped the channel since
            self._doubts[batch.channel] = ids
            return Unknown("The entries were stored, and have been deleted since.")
        return Durable(tuple(self._index.seqs_at(number, len(bodies), len(batch.entries))))

    def _refusal(self, batch: Batch) -> Refused | None:
        if self._tail.fault is not None:
            return self._tail.fault
        if batch.channel in self._doubts:
            text = f"It is not known whether the last batch of {batch.channel} is stored"
            return Refused(RefusedBecause.CONFLICT, f"{text}: call `find` first.")
        last = self._index.channel(batch.channel).last
        if last != batch.expected:
            return conflict(batch, last)
        ids = {entry.id for entry in batch.entries}
        if len(ids) < len(batch.entries) or not ids.isdisjoint(self._index.seqs):
            return KNOWN_ID
        return None

    async def find(self, ids: Collection[str]) -> dict[str, Seq]:
        self._check_open()
        if self._appends:
            await asyncio.wait(tuple(self._appends))
        for channel, doubted in tuple(self._doubts.items()):
            if not doubted.isdisjoint(ids):
                await self._fence(channel, doubted)
                self._doubts.pop(channel, None)
        return {id_: self._index.seqs[id_] for id_ in ids if id_ in self._index.seqs}

    async def _fence(self, uri: Uri, doubted: frozenset[str]) -> None:
        """Stores a message on the subject, so that the server refuses a batch still on its way.

        If the batch was stored before that, the index has it when this returns.
        """

        def is_missing() -> bool:
            return doubted.isdisjoint(self._index.seqs)

        channel = self._index.channel(uri)
        subject = self._subjects.entries + token_of(uri)
        headers = {} if channel.last else MARKER_LIFETIME
        if is_missing():
            with suppress(WrongLastError):
                bodies = [body_of(Fence())]
                await self._tail.publish_parts(subject, bodies, channel.end, is_missing, headers)

    # Reading

    async def read(
        self, *, after: Seq, limit: int, channels: Collection[Uri] | None = None
    ) -> Sequence[Entry]:
        self._check_open()
        return await read_entries(
            self._tail,
            lambda: self._index.after(after, limit, channels),
            is_sparse=channels is not None,
        )

    async def read_uncovered(self, *, after: Seq, limit: int) -> Sequence[Entry]:
        self._check_open()
        return await read_entries(
            self._tail, lambda: self._index.uncovered(after, limit), is_sparse=False
        )

    async def refresh(self) -> None:
        """Stores something to find the end, since a server may be behind the others."""
        self._check_open()
        await self._tail.barrier()

    def broadcast(self, message: str) -> None:
        if self._closing is None:
            self._spawn(self._servers.send(self._messages_subject, message.encode()))

    def listen(self, heard: Callable[[str], None]) -> None:
        self._heard = heard

    async def _on_message(self, message: Msg) -> None:
        if self._heard is not None:
            self._heard(message.data.decode())

    def follow(self, after: Seq) -> AsyncIterator[Sequence[Entry]]:
        return follow(self, self.progress, after)

    async def snapshots(self, channels: Collection[Uri] | None = None) -> Sequence[StoredSnapshot]:
        self._check_open()
        return await read_snapshots(self._tail, channels)

    async def outlines(self) -> Sequence[StoredSnapshot]:
        self._check_open()
        known = ((uri, channel.snapshot) for uri, channel in self._index.channels.items())
        return [
            StoredSnapshot(uri, at.seq, b"", outline=at.outline)
            for uri, at in known
            if at is not None
        ]

    async def floors(self) -> dict[Uri, Seq]:
        self._check_open()
        return {uri: known.floor for uri, known in self._index.channels.items() if known.floor}

    # Snapshots and trimming

    async def save_snapshot(self, snapshot: StoredSnapshot) -> None:
        await self._run(snapshot.channel, lambda: self._retention.save(snapshot))

    async def trim(self, channel: Uri, up_to: Seq, now: Millis = 0) -> None:
        await self._run(channel, lambda: self._retention.trim(channel, up_to, now))

    async def drop(self, channel: Uri) -> Seq:
        return await self._run(channel, lambda: self._retention.drop(channel))

    # Copying from and to another backend

    async def lasting(self) -> dict[Seq, Millis]:
        self._check_open()
        channels = self._index.channels.values()
        return {seq: kept.until for channel in channels for seq, kept in channel.lasting.items()}

    async def adopt(self, entries: Sequence[tuple[Entry, Millis]]) -> None:
        for uri, run in groupby(entries, key=lambda pair: pair[0].channel):
            pairs = list(run)
            for start in range(0, len(pairs), SEQS_PER_MESSAGE):
                some = pairs[start : start + SEQS_PER_MESSAGE]
                await self._run(uri, partial(self._retention.adopt, uri, some))

    async def adopt_floors(self, floors: dict[Uri, Seq]) -> None:
        for uri, floor in floors.items():
            await self._run(uri, partial(self._retention.adopt_floor, uri, floor))

    async def forget_epoch(self) -> None:
        self._check_open()
        await self._tail.begin_epoch(self._index.last_seq)

    # Tasks

    def _lock(self, channel: Uri) -> asyncio.Lock:
        """It is fair: those who wait for it get it in the order in which they came."""
        return self._locks.setdefault(channel, asyncio.Lock())

    def _spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Runs it in a task that closing waits for."""
        task = self._loop.create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)
        return task

    async def _run(self, channel: Uri, operation: Callable[[], Awaitable[T]]) -> T:
        """Waits for its turn and its end. Raises a `FailedError`."""
        self._check_open()
        task = self._spawn(self._in_turn(self._lock(channel), operation))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise FailedError(*CLOSED) from None
            raise

    async def _in_turn(self, lock: asyncio.Lock, operation: Callable[[], Awaitable[T]]) -> T:
        async with lock:
            if self._tail.fault is not None:
                raise FailedError(*self._tail.fault)
            return await operation()

    def _check_open(self) -> None:
        if self._closing is not None:
            raise FailedError(*CLOSED)

    async def close(self) -> None:
        if self._closing is None:
            self.progress.end()
            if self._witness is not None:
                self._witness.end(LogPosition(self.epoch, self.last_seq))
            self._closing = self._loop.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        """What is running may end by itself for a while; then it is cancelled."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSING_SECONDS)
        self._tail.fault = CLOSED
        if tasks := tuple(self._tasks):
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        await self._tail.close()
