"""Reading channels from the log: the stored snapshot, and the entries that follow it.

Other nodes may store a newer snapshot at any time, and then trim what it covers. So the entries are
read first, or it is checked afterwards that the snapshots are the same as before.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from session_server.host.channels.channel import Channel, UnreadableError
from session_server.log import Entry, Log
from session_server.schemas.wire import Seq, Uri

logger = logging.getLogger("session_server.host")

READ_AT_ONCE = 5_000
MISSING = "its snapshot is missing"


class Replay:
    """Replays what the log holds into the channels that `channel_of` returns.

    `unreadable` are the channels that cannot be read, each with the reason. What was replayed
    of them before the damage is not to be used.
    """

    def __init__(self, log: Log, channel_of: Callable[[Uri], Channel[Any]]) -> None:
        self.unreadable: dict[Uri, str] = {}
        self._log = log
        self._channel_of = channel_of

    async def channels(self, channels: Mapping[Uri, Seq]) -> None:
        """All that the log holds of these channels; each with a seq that its snapshot covers."""
        entries: list[Entry] = []
        after, names = min(channels.values(), default=0), tuple(channels)
        while piece := await self._log.read(after=after, limit=READ_AT_ONCE, channels=names):
            entries += piece
            after = piece[-1].seq
        restored = await self._restore(names)
        await self._read_whole(set(channels) - restored.keys())
        self._apply(entries)

    async def everything(self, outlined: Mapping[Uri, Seq] | None = None) -> set[Uri]:
        """All that the log holds, but for the `outlined` channels with nothing after the snapshot.

        Returns those.
        """
        known = dict(outlined or {})
        stored = await self._snapshot_seqs()
        floors = await self._log.floors()
        restored = await self._restore(stored.keys() - known.keys(), floors)
        for uri in floors.keys() - stored.keys():
            self.unreadable[uri] = MISSING
        await self._read_whole(stored.keys() - known.keys() - restored.keys())
        after = 0
        while entries := await self._log.read_uncovered(after=after, limit=READ_AT_ONCE):
            await self._read_after_all(known, {entry.channel for entry in entries})
            self._apply(entries)
            after = entries[-1].seq
        before = restored | known
        now = await self._snapshot_seqs()
        newer = {uri: seq for uri, seq in before.items() if now.get(uri, seq) > seq}
        await self._read_after_all(known, newer.keys() & known.keys())
        await self.channels({uri: newer[uri] for uri in newer.keys() & restored.keys()})
        return set(known)

    async def _snapshot_seqs(self) -> dict[Uri, Seq]:
        return {stored.channel: stored.seq for stored in await self._log.outlines()}

    async def _read_after_all(self, known: dict[Uri, Seq], changed: Collection[Uri]) -> None:
        needed = {uri: known.pop(uri) for uri in changed if uri in known}
        if needed:
            await self.channels(needed)

    async def _read_whole(self, channels: Collection[Uri]) -> None:
        """The channels without an intact snapshot of which no entry was trimmed."""
        readable = tuple(uri for uri in channels if uri not in self.unreadable)
        if readable:
            await self._replay(partial(self._log.read, channels=readable))

    async def _restore(
        self, channels: Collection[Uri], floors: Mapping[Uri, Seq] | None = None
    ) -> dict[Uri, Seq]:
        """The channels that have an intact snapshot, and its seq. Without one, all entries have to
        be there.
        """
        restored: dict[Uri, Seq] = {}
        damage: dict[Uri, str] = {}
        if not channels:
            return restored
        for stored in await self._log.snapshots(channels):
            try:
                self._channel_of(stored.channel).restore(stored)
                restored[stored.channel] = stored.seq
            except UnreadableError as error:
                damage[stored.channel] = str(error)
        if len(restored) < len(channels):
            floors = await self._log.floors() if floors is None else floors
            for uri in channels:
                if uri not in restored and uri in floors:
                    self.unreadable[uri] = damage.get(uri, MISSING)
                elif uri in damage:
                    logger.warning("%s: %s; its entries are read instead", uri, damage[uri])
        return restored

    async def _replay(self, read: Callable[..., Awaitable[Sequence[Entry]]]) -> None:
        after = 0
        while entries := await read(after=after, limit=READ_AT_ONCE):
            self._apply(entries)
            after = entries[-1].seq

    def _apply(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if entry.channel not in self.unreadable:
                channel = self._channel_of(entry.channel)
                if entry.seq > channel.last_seq:
                    try:
                        channel.replay(entry)
                    except UnreadableError as error:
                        self.unreadable[entry.channel] = str(error)
