"""Snapshots, trimming and dropping of channels, and adopting entries of another backend.

`jetstream_log` runs these one after the other per channel.
"""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress

from session_server.log.nats.index import IndexedBatch
from session_server.log.nats.messages import (
    Dropped,
    Ended,
    Floor,
    Reached,
    batch_bodies,
    body_of,
    snapshot_bodies,
    token_of,
)
from session_server.log.nats.servers import Publication, WrongLastError
from session_server.log.nats.tail import ROLLUP, Tail
from session_server.log.protocol import Entry, FailedError, NewEntry, StoredSnapshot, ahead
from session_server.schemas.wire import Millis, Seq, Uri

DELETED_AT_ONCE = 64

MARKER_LIFETIME = {"Nats-TTL": "24h"}
"""How long a dropped channel leaves a marker, by which nodes that are behind notice it."""


class Retention:
    def __init__(self, stream: str, tail: Tail) -> None:
        self._stream = stream
        self._tail = tail
        self._servers, self._subjects, self._index = tail.servers, tail.subjects, tail.index

    async def save(self, snapshot: StoredSnapshot) -> None:
        """Replaces an older snapshot of the channel."""
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

    async def trim(self, uri: Uri, up_to: Seq, now: Millis) -> None:
        """Stores the new floor first: what is then not deleted is hidden by it."""
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
        """Keeps the last message even if all its entries are trimmed: appends expect it.

        What cannot be deleted now, because the servers are away, is deleted by a later trim.
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
        stream = self._stream
        with suppress(FailedError):
            purge = {"filter": subject, "seq": first}
            await self._servers.api(f"STREAM.PURGE.{stream}", purge)
            for start in range(0, len(gone), DELETED_AT_ONCE):
                some = gone[start : start + DELETED_AT_ONCE]
                deletions = (self._servers.api(f"STREAM.MSG.DELETE.{stream}", one) for one in some)
                await asyncio.gather(*deletions)

    async def drop(self, uri: Uri) -> Seq:
        """Deletes the whole channel at once; a marker stays for nodes that are behind."""
        if uri not in self._index.channels:
            return self._index.last_seq
        reached = body_of(Reached(self._index.reached))
        headers = {**ROLLUP, **MARKER_LIFETIME}
        subjects = (prefix + token_of(uri) for prefix in self._subjects.per_channel)
        markers = [Publication(subject, body_of(Dropped()), headers) for subject in subjects]
        records = [Publication(self._subjects.reached, reached, ROLLUP), *markers]
        number = await self._tail.publish(records)
        return self._index.seqs_at(number, 1, 1)[0]

    async def adopt(self, uri: Uri, pairs: Sequence[tuple[Entry, Millis]]) -> None:
        new = [NewEntry(entry.id, entry.data, until) for entry, until in pairs]
        seqs = [entry.seq for entry, _ in pairs]
        bodies = batch_bodies(uri, new, seqs, self._servers.largest)
        subject, end = self._subjects.entries + token_of(uri), self._index.channel(uri).end
        await self._tail.publish_parts(subject, bodies, end, lambda: False)

    async def adopt_floor(self, uri: Uri, floor: Seq) -> None:
        channel, token = self._index.channel(uri), token_of(uri)
        kept = [seq for b in channel.batches.values() for seq in b.seqs if seq <= floor]
        record = body_of(Floor(floor, tuple(kept)))
        records = [Publication(self._subjects.floors + token, record)]
        if floor > channel.last:
            records.insert(0, Publication(self._subjects.entries + token, body_of(Ended(floor))))
        await self._tail.publish(records)
