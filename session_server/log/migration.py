"""Copies a log to another backend: every entry at its place, then compared entry by entry.

Seqs stay as they are, since records refer to them. The copy begins an epoch of its own, so clients
that come back get snapshots.
"""

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple, Protocol, TypeAlias

from session_server.log.opening import open_log, redacted
from session_server.log.protocol import (
    DamagedError,
    Entry,
    FailedError,
    Log,
    LogError,
    OpenError,
    UrlError,
)
from session_server.schemas.wire import Millis, Seq, Uri

READ_AT_ONCE = 2_000

Lasting: TypeAlias = dict[Seq, Millis]


class Copyable(Log, Protocol):
    """What a backend offers next to `Log`, so that it can be copied from and to."""

    async def lasting(self) -> Lasting:
        """Entries that trimming leaves, and until when."""
        ...

    async def adopt(self, entries: Sequence[tuple[Entry, Millis]]) -> None:
        """Stores entries of another log under their own seqs, in order; `Millis` as `lasting`."""
        ...

    async def adopt_floors(self, floors: dict[Uri, Seq]) -> None:
        """After the entries."""
        ...

    async def forget_epoch(self) -> None:
        """The next time it is opened, it begins a new epoch beyond all its seqs."""
        ...


class Migrated(NamedTuple):
    entries: int
    channels: int
    snapshots: int


class UnlikeError(LogError):
    """The copy is not what was copied."""

    code = "unlike"


async def migrate(source_url: str, target_url: str) -> Migrated:
    """Raises a `LogError`; then the target is not to be used. No host may have either open."""
    source = await _opened(source_url)
    try:
        target = await _opened(target_url)
        try:
            await _check_empty(target, redacted(target_url))
            await _copy(source, target)
        finally:
            await target.close()
        target = await _opened(target_url)
        try:
            return await _compared(source, target)
        finally:
            await target.close()
    finally:
        await source.close()


async def _opened(url: str) -> Copyable:
    if url.lower().startswith("memory:"):
        raise UrlError("A log in memory is gone with its process: it cannot be copied.")
    return await open_log(url)  # type: ignore[return-value]  # all that store something are


async def _check_empty(target: Copyable, shown: str) -> None:
    if await target.read(after=0, limit=1) or await target.snapshots() or await target.floors():
        raise OpenError(f"{shown} is not empty: name a store that is new, or remove what it has.")


async def _pieces(log: Log) -> AsyncIterator[Sequence[Entry]]:
    after = 0
    while entries := await log.read(after=after, limit=READ_AT_ONCE):
        yield entries
        after = entries[-1].seq


async def _copy(source: Copyable, target: Copyable) -> None:
    lasting = await source.lasting()
    async for entries in _pieces(source):
        for entry in entries:
            if not entry.is_intact:
                raise _damaged(entry.channel, f"its entry {entry.seq}")
        await target.adopt([(entry, lasting.get(entry.seq, 0)) for entry in entries])
    await target.adopt_floors(await source.floors())
    for snapshot in await source.snapshots():
        if not snapshot.is_intact:
            raise _damaged(snapshot.channel, "its snapshot")
        try:
            await target.save_snapshot(snapshot)
        except FailedError as error:
            raise UnlikeError(error.reason) from error
    await target.forget_epoch()


def _damaged(channel: Uri, what: str) -> DamagedError:
    advice = "Remove it with `session-server doctor --remove`, or restore a backup"
    return DamagedError(f"{channel} is damaged: {what} does not match its checksum. {advice}.")


async def _compared(source: Copyable, target: Copyable) -> Migrated:
    """Everything that was copied, read back by the usual ways."""
    count, channels = 0, set[Uri]()
    theirs = _pieces(target)
    async for ours in _pieces(source):
        piece: Sequence[Entry] | None = await anext(theirs, None)
        if list(ours) != list(piece or ()):
            raise UnlikeError(f"The copy differs after entry {ours[0].seq - 1}.")
        count += len(ours)
        channels.update(entry.channel for entry in ours)
    if await anext(theirs, None):
        raise UnlikeError("The copy has entries that the original has not.")
    snapshots = sorted(await source.snapshots())
    same = (
        snapshots == sorted(await target.snapshots()),
        await source.floors() == await target.floors(),
        await source.lasting() == await target.lasting(),
        target.epoch.first > source.last_seq,
    )
    if not all(same):
        raise UnlikeError("The copy differs in snapshots, in what was trimmed, or in its epoch.")
    channels.update(snapshot.channel for snapshot in snapshots)
    return Migrated(count, len(channels), len(snapshots))
