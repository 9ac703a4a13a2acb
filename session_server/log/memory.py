"""The reference: a log that lives and dies with its process."""

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from itertools import takewhile
from operator import attrgetter

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
    StoredSnapshot,
    ahead,
    conflict,
)
from session_server.schemas.limits import DECISION_BYTES_KEPT, DECISIONS_KEPT
from session_server.schemas.wire import Millis, Seq, Uri

entry_seq = attrgetter("seq")


class MemoryLog:
    """What is appended in one turn of the event loop is settled together in the next.

    Several hosts in one process can share it.
    """

    is_first = is_joined = True

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._epoch = Epoch.after(0)
        self._reached = self._epoch.first
        self._progress = Progress(self._reached)
        self._entries: dict[str, Entry] = {}
        """By id, in the order of their seqs."""
        self._channels: dict[Uri, list[Entry]] = {}
        self._lasts: dict[Uri, Seq] = {}
        self._snapshots: dict[Uri, StoredSnapshot] = {}
        self._floors: dict[Uri, Seq] = {}
        self._lasting: dict[Seq, Millis] = {}
        self._waiting: list[tuple[Sequence[Batch], OnAppended]] = []
        self._listeners: list[Callable[[str], None]] = []

    @property
    def epoch(self) -> Epoch:
        return self._epoch

    @property
    def last_seq(self) -> Seq:
        return self._progress.last_seq

    def append(self, batches: Sequence[Batch], settled: OnAppended) -> None:
        if self._progress.is_over:
            refuse_closed(self._loop, batches, settled)
            return
        if not self._waiting:
            self._loop.call_soon(self._commit)
        self._waiting.append((batches, settled))

    def _commit(self) -> None:
        waiting, self._waiting = self._waiting, []
        results = [
            (settled, [(batch, self._outcome(batch)) for batch in batches])
            for batches, settled in waiting
        ]
        self._progress.reach(self._reached)
        for settled, of_batches in results:
            settle(self._loop, settled, of_batches)

    def _outcome(self, batch: Batch) -> AppendResult:
        channel, known = batch.channel, self._entries
        last = self._lasts.get(channel, 0)
        if last != batch.expected:
            return conflict(batch, last)
        own = self._channels.get(channel)
        if own is None:
            own = self._channels[channel] = []
        size, before = len(own), self._reached
        end = before + len(batch.entries)
        for seq, entry in enumerate(batch.entries, before + 1):
            if entry.id in known:
                self._forget(own[size:])
                del own[size:]
                return KNOWN_ID
            new = known[entry.id] = Entry(seq, channel, entry.id, entry.data)
            own.append(new)
            if entry.lasts_until:
                self._lasting[seq] = entry.lasts_until
        if end > before:
            self._lasts[channel] = self._reached = end
        return Durable(tuple(range(before + 1, end + 1)))

    async def read(
        self, *, after: Seq, limit: int, channels: Collection[Uri] | None = None
    ) -> Sequence[Entry]:
        self._check_open()
        if channels is None:
            newer = takewhile(lambda entry: entry.seq > after, reversed(self._entries.values()))
            return [*newer][::-1][:limit]
        found: list[Entry] = []
        for channel in frozenset(channels):
            entries = self._channels.get(channel, [])
            found += entries[bisect_right(entries, after, key=entry_seq) :][:limit]
        return sorted(found, key=entry_seq)[:limit]

    async def refresh(self) -> None:
        self._catch_up()

    def broadcast(self, message: str) -> None:
        for heard in self._listeners:
            self._loop.call_soon(heard, message)

    def listen(self, heard: Callable[[str], None]) -> None:
        self._listeners.append(heard)

    async def read_uncovered(self, *, after: Seq, limit: int) -> Sequence[Entry]:
        covered = {uri: snapshot.seq for uri, snapshot in self._snapshots.items()}
        entries = await self.read(after=after, limit=len(self._entries))
        return [entry for entry in entries if entry.seq > covered.get(entry.channel, 0)][:limit]

    async def find(self, ids: Collection[str]) -> dict[str, Seq]:
        self._catch_up()
        return {id_: self._entries[id_].seq for id_ in ids if id_ in self._entries}

    def follow(self, after: Seq) -> AsyncIterator[Sequence[Entry]]:
        return follow(self, self._progress, after)

    async def save_snapshot(self, snapshot: StoredSnapshot) -> None:
        self._catch_up()
        last = self._lasts.get(snapshot.channel, 0)
        if snapshot.seq > last:
            raise ahead(snapshot, last)
        older = self._snapshots.get(snapshot.channel)
        if older is None or older.seq <= snapshot.seq:
            self._snapshots[snapshot.channel] = snapshot

    async def snapshots(self, channels: Collection[Uri] | None = None) -> Sequence[StoredSnapshot]:
        self._check_open()
        wanted = self._snapshots if channels is None else frozenset(channels)
        return [stored for uri, stored in self._snapshots.items() if uri in wanted]

    async def outlines(self) -> Sequence[StoredSnapshot]:
        return [stored._replace(data=b"") for stored in await self.snapshots()]

    async def trim(self, channel: Uri, up_to: Seq, now: Millis = 0) -> None:
        self._catch_up()
        snapshot = self._snapshots.get(channel)
        floor = self._floors.get(channel, 0)
        covered = min(max(up_to, floor), snapshot.seq) if snapshot else 0
        entries = self._channels.get(channel, [])
        lasting = self._still_lasting(entries, now)
        gone = [e for e in entries if e.seq <= covered and e.seq not in lasting]
        if gone:
            self._channels[channel] = [e for e in entries if e.seq > covered or e.seq in lasting]
            self._forget(gone)
            self._floors[channel] = max(floor, gone[-1].seq)

    def _still_lasting(self, entries: Sequence[Entry], now: Millis) -> set[Seq]:
        lasting: set[Seq] = set()
        size = 0
        for entry in reversed(entries):
            if self._lasting.get(entry.seq, 0) > now and len(lasting) < DECISIONS_KEPT:
                size += len(entry.data)
                if size > DECISION_BYTES_KEPT:
                    break
                lasting.add(entry.seq)
        return lasting

    async def floors(self) -> dict[Uri, Seq]:
        self._check_open()
        return dict(self._floors)

    async def drop(self, channel: Uri) -> Seq:
        self._catch_up()
        self._forget(self._channels.pop(channel, []))
        for known in (self._lasts, self._snapshots, self._floors):
            known.pop(channel, None)
        return self._reached

    def _forget(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            del self._entries[entry.id]
            self._lasting.pop(entry.seq, None)

    async def close(self) -> None:
        if not self._progress.is_over:
            self._progress.end()
            self._commit()

    def _catch_up(self) -> None:
        """What is asked for takes effect after what was appended before it."""
        self._check_open()
        self._commit()

    def _check_open(self) -> None:
        if self._progress.is_over:
            raise FailedError(*CLOSED)
