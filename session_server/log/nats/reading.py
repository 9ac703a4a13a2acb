"""Reading entries and snapshots: the index says which messages, the servers have their bodies."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import TypeAlias

from session_server.log.nats.index import IndexedBatch, IndexedSnapshot
from session_server.log.nats.messages import (
    SavedSnapshot,
    StoredBatch,
    StoredMessage,
    content_of,
    entry_datas,
    joined,
    snapshot_of,
    token_of,
)
from session_server.log.nats.servers import LostError
from session_server.log.nats.tail import Tail
from session_server.log.protocol import Entry, FailedError, RefusedBecause, StoredSnapshot
from session_server.schemas.wire import Uri

READING_SECONDS = 20.0

Chosen: TypeAlias = list[tuple[IndexedBatch, list[int]]]
"""Batches, each with the positions of the entries that are wanted."""

Numbers: TypeAlias = dict[str, list[int]]
"""Of messages, by their subject."""


async def read_entries(tail: Tail, choose: Callable[[], Chosen], *, is_sparse: bool) -> list[Entry]:
    """With `is_sparse` each channel is read by its own subject, so that no others are read."""
    chosen: Chosen = []

    def numbers() -> Numbers:
        chosen[:] = choose()
        wanted: Numbers = {}
        for batch, _ in chosen:
            token = token_of(batch.channel) if is_sparse else "*"
            wanted.setdefault(tail.subjects.entries + token, []).extend(batch.numbers)
        return wanted

    messages = await _read_messages(tail, numbers)
    return [entry for batch, places in chosen for entry in _entries_of(batch, places, messages)]


async def read_snapshots(tail: Tail, channels: Collection[Uri] | None) -> list[StoredSnapshot]:
    known: dict[Uri, IndexedSnapshot] = {}

    def numbers() -> Numbers:
        known.clear()
        wanted: Numbers = {}
        for uri in tuple(tail.index.channels) if channels is None else frozenset(channels):
            if (at := tail.index.channel(uri).snapshot) is not None:
                known[uri] = at
                token = "*" if channels is None else token_of(uri)
                wanted.setdefault(tail.subjects.snapshots + token, []).extend(at.numbers)
        return {subject: sorted(of) for subject, of in wanted.items()}

    messages = await _read_messages(tail, numbers)
    found: list[StoredSnapshot] = []
    for uri, at in known.items():
        content = content_of(messages[at.stream_seq].body)
        assert isinstance(content.record, SavedSnapshot)
        data = joined((messages[number].body for number in at.numbers[:-1]), content)
        found.append(snapshot_of(uri, content.record, data))
    return found


async def _read_messages(tail: Tail, choose: Callable[[], Numbers]) -> dict[int, StoredMessage]:
    """The chosen messages. If one is missing, another node has deleted it or the server is behind:
    after the index has caught up, `choose` is called again."""
    loop = asyncio.get_running_loop()
    until = loop.time() + READING_SECONDS
    found: dict[int, StoredMessage] = {}
    while True:
        wanted = choose()
        try:
            for subject, numbers in wanted.items():
                await tail.collect(subject, numbers, found)
            if all(number in found for numbers in wanted.values() for number in numbers):
                return found
            await tail.barrier()
        except LostError:
            if loop.time() > until:
                raise
        if loop.time() > until:
            raise FailedError(RefusedBecause.BROKEN, "JetStream does not have all entries.")


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
