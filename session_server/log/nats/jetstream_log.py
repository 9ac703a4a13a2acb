"""The log over JetStream, as the event loop sees it.

A batch is `Durable` when the servers have acknowledged it and it is applied to the index, as the
batches of other nodes are: all in the order of the stream.
"""

import asyncio
import os
import secrets
import socket
from collections import deque
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Sequence,
)
from contextlib import suppress
from functools import partial
from itertools import groupby
from typing import TypeAlias

from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from session_server.log.loss_detection import Standing, Witness
from session_server.log.nats.index import IndexedBatch, IndexedSnapshot
from session_server.log.nats.messages import (
    SEQS_PER_MESSAGE,
    Claim,
    Dropped,
    Ended,
    Fence,
    Floor,
    Reached,
    SavedSnapshot,
    StoredBatch,
    StoredMessage,
    batch_bodies,
    body_of,
    content_of,
    entry_datas,
    joined,
    snapshot_bodies,
    snapshot_of,
    token_of,
)
from session_server.log.nats.servers import (
    PATIENCE_SECONDS,
    PAUSE_SECONDS,
    LostError,
    Publication,
    WrongLastError,
)
from session_server.log.nats.stream_config import Address, address_of
from session_server.log.nats.tail import EXPECTED, ROLLUP, Tail
from session_server.log.progress import Progress, Settled, follow, settle
from session_server.log.protocol import (
    CLOSED,
    KNOWN_ID,
    AppendResult,
    Batch,
    Durable,
    Entry,
    Epoch,
    FailedError,
    InUseError,
    LogError,
    NewEntry,
    OpenError,
    Refused,
    RefusedBecause,
    StoredSnapshot,
    Unknown,
    ahead,
    conflict,
)
from session_server.schemas.wire import Millis, Seq, Uri

CLOSING_SECONDS = 10.0
"""How long closing waits for servers that do not answer; what is in flight is then unknown."""

READING_SECONDS = 20.0
CLAIMED_SECONDS = 5.0
CLAIM_SUBJECT = "session-server-claim"
NODE_SUBJECT = "session-server-node"
MESSAGES_SUBJECT = "session-server-messages"
DELETED_AT_ONCE = 64

FORGOTTEN_AFTER = {"Nats-TTL": "24h"}
"""How long a dropped channel leaves a trace, by which nodes that are behind notice it."""

TAKEN_OVER = Refused(RefusedBecause.BROKEN, "Another session-server has taken this log over.")
RESTARTED = Refused(
    RefusedBecause.BROKEN, "The log has begun a new epoch: restart the host to go on in it."
)

Work: TypeAlias = Callable[[], Awaitable[None]]
Chosen: TypeAlias = list[tuple[IndexedBatch, list[int]]]
Numbers: TypeAlias = dict[str, list[int]]
"""Of messages, by their subject."""


class NatsLog:
    """With `is_exclusive` no other process has the log open at the same time."""

    progress: Progress

    def __init__(self, address: Address, *, is_exclusive: bool, witness: Witness | None) -> None:
        self._address = address
        self._witness = witness
        self._is_exclusive = is_exclusive
        self._name = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._loop = asyncio.get_running_loop()
        self._tail = Tail(address, self._on_applied)
        self._servers, self._subjects = self._tail.servers, self._tail.subjects
        self._index = self._tail.index
        self._lanes: dict[Uri, deque[Work]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._doubts: dict[Uri, frozenset[str]] = {}
        self._unsettled: set[asyncio.Future[None]] = set()
        self._closing: asyncio.Task[None] | None = None
        self._epochs = 0
        self.is_first = self.is_joined = True
        self._messages_subject = f"{MESSAGES_SUBJECT}.{address.stream}"
        self._heard: Callable[[str], None] | None = None

    @classmethod
    async def open(
        cls, url: str, *, is_exclusive: bool = True, witness: Witness | None = None
    ) -> "NatsLog":
        """Raises an `OpenError` that says what stands in the way."""
        log = cls(address_of(url), is_exclusive=is_exclusive, witness=witness)
        try:
            await log._tail.open(log._name)
            await (log._claim() if is_exclusive else log._join())
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
            witness.watch(lambda: Standing(log.epoch, log.last_seq))
        return log

    async def _check_kept(self) -> None:
        """A stream that ends before what was seen of it was restored, and begins a new epoch."""
        seen = self._witness.seen() if self._witness else None
        if seen is not None and Standing(self.epoch, self._index.last_seq).has_lost(seen):
            await self._tail.begin_epoch(max(self._index.last_seq, seen.last_seq))

    async def _claim(self) -> None:
        """Takes the place of a process that is gone: its name has no subscription any more."""
        await self._servers.subscribe(f"{CLAIM_SUBJECT}.{self._name}", self._servers.confirm)
        while self._index.claim[1] != self._name:
            claimed_at, name = self._index.claim
            if name and await self._is_there(name):
                text = f"{self._address.shown} is in use by {name.rpartition('-')[0]}"
                raise InUseError(f"{text}; only one can have it open.", None)
            headers = {EXPECTED: str(claimed_at), **ROLLUP}
            claim = Publication(self._subjects.claims, body_of(Claim(self._name)), headers)
            try:
                await self._tail.publish([claim])
            except WrongLastError:
                await self._tail.barrier()

    async def _join(self) -> None:
        """A host that has it for itself answers to its claim, and other nodes to the stream."""
        name = self._index.claim[1]
        self.is_joined = not name or not await self._is_there(name)
        subject = f"{NODE_SUBJECT}.{self._address.stream}"
        (answer,) = await self._servers.ask([Publication(subject, b"")])
        self.is_first = (answer.headers or {}).get("Status") == "503"
        await self._servers.subscribe(subject, self._servers.confirm)
        await self._servers.subscribe(self._messages_subject, self._on_message)

    async def _is_there(self, name: str) -> bool:
        """A host that was killed leaves its connection for a moment; one that is paused stays."""
        until = self._loop.time() + CLAIMED_SECONDS
        question = Publication(f"{CLAIM_SUBJECT}.{name}", b"")
        while self._loop.time() < until:
            with suppress(LostError):
                (answer,) = await self._servers.ask([question], seconds=PATIENCE_SECONDS)
                if (answer.headers or {}).get("Status") == "503":
                    return False
            await asyncio.sleep(PAUSE_SECONDS)
        return True

    def _on_applied(self) -> None:
        if self._epochs:
            self.progress.reach(self._index.last_seq)
            if self._is_exclusive and self._index.claim[1] != self._name:
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

    def append(self, batch: Batch, settled: Settled) -> None:
        if self._closing is not None:
            self._loop.call_soon(settle, self._loop, [(settled, CLOSED)])
            return
        done: asyncio.Future[None] = self._loop.create_future()
        self._unsettled.add(done)
        self._in_lane(batch.channel, partial(self._settle, batch, settled, done))

    async def _settle(self, batch: Batch, settled: Settled, done: asyncio.Future[None]) -> None:
        outcome: AppendResult = Unknown("The log was closed before NATS answered.")
        try:
            outcome = await self._outcome(batch)
        finally:
            self._unsettled.discard(done)
            done.set_result(None)
            settle(self._loop, [(settled, outcome)])

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
            return conflict(batch, self._index.channel(batch.channel).last)
        except FailedError as error:
            return Refused(error.because, error.reason)
        if ids.isdisjoint(self._index.seqs):  # another node has dropped the channel since
            self._doubts[batch.channel] = ids
            return Unknown("The entries were stored, and are not there any more.")
        return Durable(tuple(self._index.seqs_at(number, len(bodies), len(batch.entries))))

    def _refusal(self, batch: Batch) -> Refused | None:
        if self._tail.fault is not None:
            return self._tail.fault
        if batch.channel in self._doubts:
            text = f"Whether the last batch of {batch.channel} is stored is not known"
            return Refused(RefusedBecause.CONFLICT, f"{text}: find out first.")
        last = self._index.channel(batch.channel).last
        if last != batch.expected:
            return conflict(batch, last)
        ids = {entry.id for entry in batch.entries}
        if len(ids) < len(batch.entries) or not ids.isdisjoint(self._index.seqs):
            return KNOWN_ID
        return None

    async def find(self, ids: Collection[str]) -> dict[str, Seq]:
        self._check_open()
        if self._unsettled:
            await asyncio.wait(tuple(self._unsettled))
        for channel, doubted in tuple(self._doubts.items()):
            if not doubted.isdisjoint(ids):
                await self._fence(channel, doubted)
                self._doubts.pop(channel, None)
        return {id_: self._index.seqs[id_] for id_ in ids if id_ in self._index.seqs}

    async def _fence(self, uri: Uri, doubted: frozenset[str]) -> None:
        """Ends the subject with a message of its own: what is still on its way expects another end.

        If the batch is stored already, the index has it then.
        """

        def is_open() -> bool:
            return doubted.isdisjoint(self._index.seqs)

        channel = self._index.channel(uri)
        subject = self._subjects.entries + token_of(uri)
        headers = {} if channel.last else FORGOTTEN_AFTER
        if is_open():
            with suppress(WrongLastError):
                bodies = [body_of(Fence())]
                await self._tail.publish_parts(subject, bodies, channel.end, is_open, headers)

    # Reading

    async def read(
        self, *, after: Seq, limit: int, channels: Collection[Uri] | None = None
    ) -> Sequence[Entry]:
        def chosen() -> Chosen:
            return self._index.after(after, limit, channels)

        return await self._entries(chosen, is_sparse=channels is not None)

    async def read_uncovered(self, *, after: Seq, limit: int) -> Sequence[Entry]:
        return await self._entries(lambda: self._index.uncovered(after, limit), is_sparse=False)

    async def _entries(self, choose: Callable[[], Chosen], *, is_sparse: bool) -> list[Entry]:
        chosen: Chosen = []

        def numbers() -> Numbers:
            """Of a few channels each by its own subject: others would be read in vain."""
            chosen[:] = choose()
            wanted: Numbers = {}
            for batch, _ in chosen:
                token = token_of(batch.channel) if is_sparse else "*"
                wanted.setdefault(self._subjects.entries + token, []).extend(batch.numbers)
            return wanted

        messages = await self._messages(numbers)
        return [entry for batch, places in chosen for entry in _entries_of(batch, places, messages)]

    async def _messages(
        self, choose: Callable[[], dict[str, list[int]]]
    ) -> dict[int, StoredMessage]:
        """By subject, those that are wanted. One that is not there was forgotten by another node,
        or the server is behind: so when the index has caught up, it is chosen again."""
        self._check_open()
        until = self._loop.time() + READING_SECONDS
        found: dict[int, StoredMessage] = {}
        while True:
            wanted = choose()
            try:
                for subject, numbers in wanted.items():
                    await self._tail.collect(subject, numbers, found)
                if all(number in found for numbers in wanted.values() for number in numbers):
                    return found
                await self._tail.barrier()
            except LostError:
                if self._loop.time() > until:
                    raise
            if self._loop.time() > until:
                raise FailedError(RefusedBecause.BROKEN, "JetStream does not have all entries.")

    async def refresh(self) -> None:
        """A server may be behind the others, so that something is stored to find the end."""
        self._check_open()
        await self._tail.barrier()

    def tell(self, message: str) -> None:
        if self._closing is None:
            told = self._servers.tell(self._messages_subject, message.encode())
            task = self._loop.create_task(told)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def listen(self, heard: Callable[[str], None]) -> None:
        self._heard = heard

    async def _on_message(self, message: Msg) -> None:
        if self._heard is not None:
            self._heard(message.data.decode())

    def follow(self, after: Seq) -> AsyncIterator[Sequence[Entry]]:
        return follow(self, self.progress, after)

    async def snapshots(self, channels: Collection[Uri] | None = None) -> Sequence[StoredSnapshot]:
        known: dict[Uri, IndexedSnapshot] = {}

        def numbers() -> Numbers:
            """Of a few channels each by its own subject: others would be read in vain."""
            known.clear()
            wanted: Numbers = {}
            for uri in tuple(self._index.channels) if channels is None else frozenset(channels):
                if (at := self._index.channel(uri).snapshot) is not None:
                    known[uri] = at
                    token = "*" if channels is None else token_of(uri)
                    wanted.setdefault(self._subjects.snapshots + token, []).extend(at.numbers)
            return {subject: sorted(of) for subject, of in wanted.items()}

        messages = await self._messages(numbers)
        found: list[StoredSnapshot] = []
        for uri, at in known.items():
            content = content_of(messages[at.stream_seq].body)
            assert isinstance(content.record, SavedSnapshot)
            data = joined((messages[number].body for number in at.numbers[:-1]), content)
            found.append(snapshot_of(uri, content.record, data))
        return found

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

    # Snapshots and forgetting

    async def save_snapshot(self, snapshot: StoredSnapshot) -> None:
        await self._ask(snapshot.channel, lambda: self._save(snapshot))

    async def _save(self, snapshot: StoredSnapshot) -> None:
        uri = snapshot.channel

        def is_newest() -> bool:
            channel = self._index.channel(uri)
            if snapshot.seq > channel.last:
                raise ahead(snapshot, channel.last)
            return channel.snapshot is None or channel.snapshot.seq <= snapshot.seq

        if is_newest():
            older = self._index.channel(uri).snapshot
            end = older.stream_seq if older else 0
            bodies = snapshot_bodies(snapshot, self._servers.largest)
            subject = self._subjects.snapshots + token_of(uri)
            with suppress(WrongLastError):  # another node has saved a newer one
                await self._tail.publish_parts(subject, bodies, end, is_newest, ROLLUP)

    async def trim(self, channel: Uri, up_to: Seq, now: Millis = 0) -> None:
        await self._ask(channel, lambda: self._trim(channel, up_to, now))

    async def _trim(self, uri: Uri, up_to: Seq, now: Millis) -> None:
        token = token_of(uri)
        while floor := self._index.trimmed(uri, up_to, now):
            channel = self._index.channel(uri)
            before = tuple(channel.batches.values())

            def is_same(floor: Floor = floor) -> bool:
                return self._index.trimmed(uri, up_to, now) == floor

            with suppress(WrongLastError):
                subject, bodies = self._subjects.floors + token, [body_of(floor)]
                end = channel.floor_at
                await self._tail.publish_parts(subject, bodies, end, is_same, ROLLUP)
                await self._delete(self._subjects.entries + token, uri, before)
                return

    async def _delete(self, subject: str, uri: Uri, before: Iterable[IndexedBatch]) -> None:
        """The last message stays, though all its entries are forgotten: it is where others append.

        What is not deleted now, because the servers are away, goes with a later trim.
        """
        channel = self._index.channel(uri)
        first = min((batch.numbers[0] for batch in channel.batches.values()), default=channel.end)
        first = min(first, channel.end)
        gone = [
            {"seq": number, "no_erase": True}
            for batch in before
            if batch.stream_seq not in channel.batches
            for number in batch.numbers
            if first < number != channel.end
        ]
        stream = self._address.stream
        with suppress(FailedError):
            purge = {"filter": subject, "seq": first}
            await self._servers.api(f"STREAM.PURGE.{stream}", purge)
            for start in range(0, len(gone), DELETED_AT_ONCE):
                some = gone[start : start + DELETED_AT_ONCE]
                deletions = (self._servers.api(f"STREAM.MSG.DELETE.{stream}", one) for one in some)
                await asyncio.gather(*deletions)

    async def drop(self, channel: Uri) -> Seq:
        reached: list[Seq] = []

        async def drop() -> None:
            reached.append(await self._drop(channel))

        await self._ask(channel, drop)
        return reached[0]

    async def _drop(self, uri: Uri) -> Seq:
        """Everything about it goes at once, and leaves for a while that it has gone."""
        if uri not in self._index.channels:
            return self._index.last_seq
        reached = body_of(Reached(self._index.reached))
        prefixes = (self._subjects.entries, self._subjects.snapshots, self._subjects.floors)
        headers = {**ROLLUP, **FORGOTTEN_AFTER}
        number = await self._tail.publish(
            [
                Publication(self._subjects.reached, reached, ROLLUP),
                *(Publication(p + token_of(uri), body_of(Dropped()), headers) for p in prefixes),
            ]
        )
        return self._index.seqs_at(number, 1, 1)[0]

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
                await self._ask(uri, partial(self._adopt, uri, some))

    async def _adopt(self, uri: Uri, pairs: Sequence[tuple[Entry, Millis]]) -> None:
        new = [NewEntry(entry.id, entry.data, until) for entry, until in pairs]
        seqs = [entry.seq for entry, _ in pairs]
        bodies = batch_bodies(uri, new, seqs, self._servers.largest)
        subject, end = self._subjects.entries + token_of(uri), self._index.channel(uri).end
        await self._tail.publish_parts(subject, bodies, end, lambda: False)

    async def adopt_floors(self, floors: dict[Uri, Seq]) -> None:
        for uri, floor in floors.items():
            await self._ask(uri, partial(self._adopt_floor, uri, floor))

    async def _adopt_floor(self, uri: Uri, floor: Seq) -> None:
        channel, token = self._index.channel(uri), token_of(uri)
        kept = [seq for b in channel.batches.values() for seq in b.seqs if seq <= floor]
        record = body_of(Floor(floor, tuple(kept)))
        records = [Publication(self._subjects.floors + token, record)]
        if floor > channel.last:
            records.insert(0, Publication(self._subjects.entries + token, body_of(Ended(floor))))
        await self._tail.publish(records)

    async def forget_epoch(self) -> None:
        self._check_open()
        await self._tail.begin_epoch(self._index.last_seq)

    # Its own life

    def _in_lane(self, channel: Uri, work: Work) -> None:
        """What is asked of a channel is done one after the other; channels do not wait."""
        lane = self._lanes.get(channel)
        if lane is not None:
            lane.append(work)
            return
        self._lanes[channel] = deque([work])
        task = self._loop.create_task(self._run_lane(channel))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run_lane(self, channel: Uri) -> None:
        lane = self._lanes[channel]
        while lane:
            with suppress(asyncio.CancelledError):  # nobody waits for it any longer
                await lane.popleft()()
        del self._lanes[channel]

    async def _ask(self, channel: Uri, operation: Work) -> None:
        """Raises a `FailedError`."""
        self._check_open()
        answer: asyncio.Future[None] = self._loop.create_future()

        async def work() -> None:
            error = await self._failure_of(operation)
            if not answer.done() and error is not None:
                answer.set_exception(error)
            elif not answer.done():
                answer.set_result(None)

        self._in_lane(channel, work)
        await answer

    async def _failure_of(self, operation: Work) -> LogError | None:
        if self._tail.fault is not None:
            return FailedError(*self._tail.fault)
        try:
            await operation()
        except LogError as error:
            return error
        except asyncio.CancelledError:
            return FailedError(*CLOSED)
        return None

    def _check_open(self) -> None:
        if self._closing is not None:
            raise FailedError(*CLOSED)

    async def close(self) -> None:
        if self._closing is None:
            self.progress.end()
            if self._witness is not None:
                self._witness.end(Standing(self.epoch, self.last_seq))
            self._closing = self._loop.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSING_SECONDS)
        self._tail.fault = CLOSED
        lanes = tuple(self._tasks)
        for task in lanes:
            task.cancel()
        if lanes:
            await asyncio.wait(lanes)
        await self._tail.close()


def _entries_of(
    batch: IndexedBatch, places: Sequence[int], messages: dict[int, StoredMessage]
) -> list[Entry]:
    content = content_of(messages[batch.stream_seq].body)
    assert isinstance(content.record, StoredBatch)
    data = joined((messages[number].body for number in batch.numbers[:-1]), content)
    datas = entry_datas(batch.channel, content.record, data)
    found: list[Entry] = []
    for place in places:
        piece = datas[place]
        is_intact = piece is not None
        found.append(
            Entry(batch.seqs[place], batch.channel, batch.ids[place], piece or b"", is_intact)
        )
    return found
