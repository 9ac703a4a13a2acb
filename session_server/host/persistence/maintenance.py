"""Keeping the log and the memory small, and the next start short.

Snapshots are taken, and history that they cover goes with time: by number and age first what
people typed, and after a longer time what they decided. A channel in which nothing happens gets its
snapshot too, and keeps no envelopes at hand.
"""

import asyncio
import ctypes
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from session_server.host.channels.channel import Channel
from session_server.host.persistence.log_status import LogStatus
from session_server.host.timers import Clock, Tasks
from session_server.log import Log, StoredSnapshot
from session_server.log.protocol import LogError
from session_server.reducers.state.opening import is_recording
from session_server.schemas.codec import encode
from session_server.schemas.limits import HISTORY_IDLE_MS, HISTORY_LIFETIME_MS
from session_server.schemas.wire import Millis, Uri

AGING_SECONDS = 600.0
TRIMMED_EVERY_MS = 24 * 3_600_000
GIVING_BACK_SECONDS = 30.0
QUIET_AT_STOP_MS = 10 * 60_000
STOPPING_SECONDS = 2.0
SAVED_AT_ONCE = 256


class Maintenance:
    def __init__(self, log: Log, tasks: Tasks, log_status: LogStatus, clock: Clock) -> None:
        self._log = log
        self._tasks = tasks
        self._log_status = log_status
        self._clock = clock
        self._now = clock.now
        self._is_giving_back = False

    def take_snapshot(self, channel: Channel[Any]) -> None:
        self._tasks.spawn(self._tried(channel))

    def disposed(self, _: Uri) -> None:
        self.release_memory()

    def release_memory(self) -> None:
        """Some time later, once for many calls, since it blocks the event loop for a moment."""
        if not self._is_giving_back:
            self._is_giving_back = True
            self._tasks.spawn(self._release())

    async def _release(self) -> None:
        await self._clock.sleep(GIVING_BACK_SECONDS)
        self._is_giving_back = False
        await asyncio.to_thread(trim_heap)

    async def age(self, channels: Callable[[], Iterable[Channel[Any]]]) -> None:
        """Once in a while, channel by channel; what cannot be saved now is tried the next time.

        Once a day every channel is trimmed, for the decisions that have become too old.
        """
        unsaved: set[Channel[Any]] = set()
        trimmed_at = 0
        while True:
            await self._clock.sleep(AGING_SECONDS)
            before, unsaved = unsaved, set()
            is_new_day = self._now() - trimmed_at >= TRIMMED_EVERY_MS
            if is_new_day:
                trimmed_at = self._now()
            for channel in tuple(channels()):
                is_due = _is_due(channel, self._now()) or channel in before
                if channel.is_closed:
                    continue
                if is_due and channel.outline is None and not await self.is_saved(channel):
                    unsaved.add(channel)
                elif is_new_day or (is_due and channel.outline is not None):
                    with suppress(LogError):  # it is tried again the next day
                        await self._log_status.watched(self._trim(channel))
            self.release_memory()

    async def finish(self, channels: Iterable[Channel[Any]]) -> None:
        """Before the host stops: snapshots of what has been quiet, so that the next start is short.

        What was active a moment ago gets none: its clients come back, and are sent what they missed
        instead of a snapshot.
        """
        quiet = self._now() - QUIET_AT_STOP_MS
        due = [
            c for c in channels if c.entries_since_snapshot and c.publisher.history.is_quiet(quiet)
        ]
        with suppress(TimeoutError):
            async with asyncio.timeout(STOPPING_SECONDS):
                for first in range(0, len(due), SAVED_AT_ONCE):
                    await asyncio.gather(*map(self.is_saved, due[first : first + SAVED_AT_ONCE]))

    async def _tried(self, channel: Channel[Any]) -> None:
        """What could not be saved now is due again with the channel's next batch."""
        entries = channel.entries_since_snapshot
        if not await self.is_saved(channel):
            channel.entries_since_snapshot += entries

    async def is_saved(self, channel: Channel[Any]) -> bool:
        """Whether a snapshot of it was stored."""
        try:
            await self._log_status.watched(self._saved(channel, self._snapshot(channel)))
        except LogError:
            return False
        return True

    def _snapshot(self, channel: Channel[Any]) -> StoredSnapshot:
        channel.entries_since_snapshot = 0
        data = channel.measure()
        outline = channel.kind.outline(channel.committed, len(data))
        kept = b"" if outline is None else encode(outline)
        return StoredSnapshot(channel.uri, channel.last_seq, data, outline=kept)

    async def _saved(self, channel: Channel[Any], snapshot: StoredSnapshot) -> None:
        await self._log.save_snapshot(snapshot)
        channel.outlined_at = snapshot.seq if snapshot.outline else 0
        await self._trim(channel)

    async def _trim(self, channel: Channel[Any]) -> None:
        if not is_recording(channel.overview):  # what was played back stays as it was
            await self._log.trim(channel.uri, channel.publisher.history.outlived, self._now())


def _is_due(channel: Channel[Any], now: Millis) -> bool:
    """Whether something grew old in it, or it has become quiet since its last snapshot."""
    has_outlived = channel.publisher.history.forget(now - HISTORY_LIFETIME_MS)
    is_quiet = channel.publisher.free_idle(now - HISTORY_IDLE_MS)
    return has_outlived or (is_quiet and channel.entries_since_snapshot > 0)


def trim_heap() -> None:
    """Returns freed memory to the system, which glibc otherwise keeps.

    Other C libraries do this by themselves, or have no such function.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
