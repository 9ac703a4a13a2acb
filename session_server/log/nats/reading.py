"""Reading entries and snapshots: the index says which messages, the servers have their bodies."""

import asyncio
from collections.abc import Callable, Collection, Iterator
from itertools import accumulate
from typing import Any, TypeVar

from session_server.log.nats.index import Chosen, Indexed, IndexedBatch, IndexedSnapshot
from session_server.log.nats.messages import (
    StoredBatch,
    StoredMessage,
    content_of,
    entry_checksum,
    snapshot_of,
    token_of,
)
from session_server.log.nats.servers import LostError
from session_server.log.nats.tail import Tail
from session_server.log.protocol import Entry, FailedError, RefusedBecause, StoredSnapshot
from session_server.schemas.wire import Uri

READING_SECONDS = 20.0

Item = TypeVar("Item", bound=Indexed)
Wanted = TypeVar("Wanted")


async def read_entries(tail: Tail, choose: Callable[[], Chosen], *, is_sparse: bool) -> list[Entry]:
    """With `is_sparse` each channel is read by its own subject, so that no others are read."""
    found = await _read(tail, tail.subjects.entries, choose, is_sparse=is_sparse)
    return [entry for batch in found for entry in _entries_of(*batch)]


async def read_snapshots(tail: Tail, channels: Collection[Uri] | None) -> list[StoredSnapshot]:
    def choose() -> list[tuple[IndexedSnapshot, None]]:
        uris = tuple(tail.index.channels) if channels is None else frozenset(channels)
        known = (tail.index.channel(uri).snapshot for uri in uris)
        return [(at, None) for at in known if at is not None]

    prefix, is_sparse = tail.subjects.snapshots, channels is not None
    found = await _read(tail, prefix, choose, is_sparse=is_sparse)
    return [snapshot_of(at.channel, saved, data) for at, _, saved, data in found]


async def _read(
    tail: Tail, prefix: str, choose: Callable[[], list[tuple[Item, Wanted]]], *, is_sparse: bool
) -> list[tuple[Item, Wanted, Any, bytes]]:
    """What is chosen, each with its record and its data. If a message is missing, another node has
    deleted it or the server is behind: after the index has caught up, `choose` is called again."""
    loop = asyncio.get_running_loop()
    until = loop.time() + READING_SECONDS
    messages: dict[int, StoredMessage] = {}
    while True:
        chosen = choose()
        wanted: dict[str, list[int]] = {}
        for item, _ in chosen:
            token = token_of(item.channel) if is_sparse else "*"
            wanted.setdefault(prefix + token, []).extend(item.numbers)
        try:
            for subject, numbers in wanted.items():
                await tail.collect(subject, sorted(numbers), messages)
            if all(number in messages for numbers in wanted.values() for number in numbers):
                break
            await tail.barrier()
        except LostError:
            if loop.time() > until:
                raise
        if loop.time() > until:
            raise FailedError(RefusedBecause.BROKEN, "JetStream does not have all entries.")
    found: list[tuple[Item, Wanted, Any, bytes]] = []
    for item, which in chosen:
        *parts, last = (messages[number].body for number in item.numbers)
        record, data = content_of(last)
        found.append((item, which, record, b"".join((*parts, data))))
    return found


def _entries_of(
    batch: IndexedBatch, places: list[int], stored: StoredBatch, data: bytes
) -> Iterator[Entry]:
    ends = tuple(accumulate(stored.sizes))
    for place in places:
        piece = data[ends[place] - stored.sizes[place] : ends[place]]
        entry_id, checksum = batch.ids[place], stored.checksums[place]
        is_intact = entry_checksum(batch.channel, entry_id, piece) == checksum
        piece = piece if is_intact else b""
        yield Entry(batch.seqs[place], batch.channel, entry_id, piece, is_intact)
