"""Keeping the log small: snapshots are taken, and history that they cover goes with time."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from session_server.host.channel import Channel
from session_server.host.sessions import is_recording
from session_server.host.tasks import Tasks
from session_server.log import Log, StoredSnapshot
from session_server.schemas.codec import encode
from session_server.schemas.limits import HISTORY_LIFETIME_MS

ENTRIES_BETWEEN_SNAPSHOTS = 1_000
AGING_SECONDS = 600.0


class Upkeep:
    def __init__(self, log: Log, tasks: Tasks) -> None:
        self._log = log
        self._tasks = tasks

    def written(self, channel: Channel[Any]) -> None:
        if channel.entries_since_snapshot >= ENTRIES_BETWEEN_SNAPSHOTS:
            self.take_snapshot(channel)

    async def age(
        self, channels: Callable[[], Iterable[Channel[Any]]], now: Callable[[], int]
    ) -> None:
        """Once in a while, what is too old is forgotten, here and in the log."""
        while True:
            await asyncio.sleep(AGING_SECONDS)
            too_old = now() - HISTORY_LIFETIME_MS
            for channel in channels():
                if channel.history.forget(too_old):
                    self.take_snapshot(channel)

    def take_snapshot(self, channel: Channel[Any]) -> None:
        channel.entries_since_snapshot = 0
        if is_recording(channel.committed):
            return  # what was played back stays as it was
        stored = StoredSnapshot(channel.uri, channel.last_seq, encode(channel.committed))

        async def save() -> None:
            await self._log.save_snapshot(stored)
            await self._log.trim(channel.uri, channel.history.floor)

        self._tasks.spawn(save())
