"""Which sessions are in memory: those that are active or watched.

A session that has been idle for a while leaves memory, or earlier if all of them together are
larger than they may be. Its snapshot is stored first, with the outline that stays. It is read again
when it is needed: concurrent needs of one session are one load, and what is asked together is read
together.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from session_server.backoff import Backoff
from session_server.host.channels.channel import Channel
from session_server.host.channels.channel_kinds import SESSION
from session_server.host.persistence.replay import Replay
from session_server.log.protocol import LogError
from session_server.reducers.outlines import is_at_rest, outline_of
from session_server.schemas.record import SessionRecord
from session_server.schemas.wire import Seq, Uri

if TYPE_CHECKING:
    from session_server.host.host import Host

logger = logging.getLogger("session_server.host")

SessionChannel = Channel[SessionRecord]

SWEEP_SECONDS = 30.0
"""Idle sessions are searched at least this often, and four times per idle period."""

SWEPT_AT_ONCE = 500
EVICTED_AT_ONCE = 64
READ_AGAIN = (0.05, 1.0)


class Idle(NamedTuple):
    """Since when, by the monotonic clock; anything that happens has another `seq`."""

    since: float
    seq: Seq


class LoadedSessions:
    """`limit` is in bytes of states as JSON, `seconds` how long one may be idle; 0 is no limit."""

    def __init__(self, host: "Host", limit: int, seconds: float) -> None:
        self._host = host
        self._limit = limit
        self._seconds = seconds
        self._idle: dict[Uri, Idle] = {}
        self._pins: Counter[Uri] = Counter()
        self._waiting: dict[Uri, list[Callable[[], None]]] = {}
        self._unread: dict[Uri, SessionChannel] = {}
        self._is_reading = False
        self._failures: dict[Uri, LogError] = {}
        self.on_loaded: list[Callable[[SessionChannel, SessionRecord], None]] = []
        """Called with the outline that there was of it before."""

    # Loading

    def is_evicted(self, uri: Uri) -> bool:
        channel = self._host.sessions.get(uri)
        return channel is not None and channel.outline is not None

    def load(self, channel: SessionChannel, then: Callable[[], None] | None = None) -> None:
        """Calls back once it is in memory, or could not be read; then it still is evicted."""
        uri = channel.uri
        if uri not in self._waiting:
            self._waiting[uri] = []
            self._unread[uri] = channel
            self._failures.pop(uri, None)
            if not self._is_reading:
                self._is_reading = True
                self._host.spawn(self._read_all())
        if then is not None:
            self._waiting[uri].append(then)

    def when_loaded(self, uris: Collection[Uri], then: Callable[[], None]) -> None:
        """Calls back once all of these that there are were loaded; maybe at once."""
        known = (self._host.sessions.get(uri) for uri in uris)
        evicted = {c.uri: c for c in known if c is not None and c.outline is not None}
        if not evicted:
            then()
            return
        self._pins.update(uris)

        def one() -> None:
            del evicted[next(iter(evicted))]
            if not evicted:
                try:
                    then()
                finally:
                    self._unpin(uris)

        for channel in tuple(evicted.values()):
            self.load(channel, one)

    async def loaded(self, uri: Uri) -> SessionChannel | None:
        """The session's channel, in memory; raises a `LogError` if it cannot be read now."""
        while (channel := self._host.sessions.get(uri)) is not None and channel.outline is not None:
            done = asyncio.get_running_loop().create_future()
            self.load(channel, partial(_finish, done))
            await done
            if self.is_evicted(uri) and uri in self._failures:
                raise self._failures[uri]
        return channel

    async def all_of(self, uris: Collection[Uri]) -> None:
        """Returns when all of these that there are, are in memory."""
        while evicted := [uri for uri in uris if self.is_evicted(uri)]:
            await asyncio.gather(*map(self.loaded, evicted))

    @contextmanager
    def pinned(self, uri: Uri) -> Generator[None]:
        """While the block runs, the session does not leave memory."""
        self._pins[uri] += 1
        try:
            yield
        finally:
            self._unpin((uri,))

    def _unpin(self, uris: Collection[Uri]) -> None:
        for uri in uris:
            self._pins[uri] -= 1
            if self._pins[uri] <= 0:
                del self._pins[uri]

    async def _read_all(self) -> None:
        try:
            while self._unread:
                wanted, self._unread = self._unread, {}
                await self._read(wanted)
        finally:
            self._is_reading = False

    async def _read(self, wanted: dict[Uri, SessionChannel]) -> None:
        read: dict[Uri, SessionChannel] = {}
        unreadable: dict[Uri, str] = {}
        failure: LogError | None = None
        try:
            unreadable = await self._replayed(wanted, read)
        except LogError as error:
            failure = error
        for uri, channel in wanted.items():
            if failure is not None:
                self._failures[uri] = failure
                channel.not_loaded(failure.reason)
            elif self._host.sessions.get(uri) is channel:  # or it was disposed of
                back = read.get(uri)
                if back is not None and back.committed is not None and uri not in unreadable:
                    self._came_back(channel, read.pop(uri))
                elif channel.is_closed:
                    continue  # it is being disposed of, and the log has forgotten it already
                else:
                    self._host.set_aside(channel, unreadable.get(uri, "it is not in the log"))
            self._call_waiting(uri)
        for unused in read.values():
            unused.forget()

    async def _replayed(
        self, wanted: dict[Uri, SessionChannel], read: dict[Uri, SessionChannel]
    ) -> dict[Uri, str]:
        """Into new channels. Returns those that are damaged; tries for a while to read at all."""
        clock, backoff = self._host.clock, Backoff(*READ_AGAIN)
        until = clock.monotonic() + self._host.limits.store_seconds

        def channel_of(uri: Uri) -> SessionChannel:
            if uri not in read:
                read[uri] = Channel(uri, SESSION, self._host)
            return read[uri]

        while True:
            replay = Replay(self._host.log, channel_of)
            try:
                await replay.channels({uri: one.last_seq for uri, one in wanted.items()})
            except LogError:
                for channel in read.values():
                    channel.forget()
                read.clear()
                if clock.monotonic() >= until:
                    raise
                await clock.sleep(backoff.pause())
            else:
                return replay.unreadable

    def _came_back(self, channel: SessionChannel, read: SessionChannel) -> None:
        self._host.counts.loads += 1
        if read.last_seq > self._host.position:
            # Another node wrote it, and the rest of what it wrote is yet to come here.
            read.publisher.history.begin(read.last_seq)
        before = channel.overview
        assert before is not None
        channel.loaded(read)
        for hook in self.on_loaded:
            hook(channel, before)

    def disposed(self, uri: Uri) -> None:
        self._idle.pop(uri, None)
        self._failures.pop(uri, None)
        asyncio.get_running_loop().call_soon(self._call_waiting, uri)

    def _call_waiting(self, uri: Uri) -> None:
        for then in self._waiting.pop(uri, ()):
            try:
                then()
            except Exception:
                logger.exception("what waited for %s failed", uri)

    # Evicting

    def is_evictable(self, channel: SessionChannel) -> bool:
        record = channel.committed
        is_free = record is not None and channel.is_idle and channel.uri not in self._pins
        return is_free and record is not None and is_at_rest(record)

    async def evict(self, channel: SessionChannel) -> bool:
        """Whether it has left memory: not if it is needed, or its snapshot cannot be stored."""
        record = channel.committed
        if record is None or not self.is_evictable(channel):
            return False
        if channel.outlined_at != channel.last_seq:
            is_saved = await self._host.maintenance.is_saved(channel)
            if not is_saved or channel.committed is not record or not self.is_evictable(channel):
                return False
        self._host.counts.evictions += 1
        self._idle.pop(channel.uri, None)
        channel.evict(outline_of(record, channel.size.bytes))
        return True

    async def sweep(self) -> None:
        """For as long as the host runs."""
        pause = min(SWEEP_SECONDS, self._seconds / 4) if self._seconds else SWEEP_SECONDS
        while True:
            await self._host.clock.sleep(pause)
            if self._host.log_status.reason is not None:
                continue  # no snapshot can be stored
            await self._look()
            due = self._due()
            for first in range(0, len(due), EVICTED_AT_ONCE):
                await asyncio.gather(*map(self.evict, due[first : first + EVICTED_AT_ONCE]))
            if due:
                self._host.maintenance.release_memory()

    async def _look(self) -> None:
        """Notes since when each session is idle; in pieces, as there may be many."""
        before, self._idle = self._idle, {}
        now = self._host.clock.monotonic()
        for number, (uri, channel) in enumerate(tuple(self._host.sessions.items())):
            if self.is_evictable(channel):
                known = before.get(uri)
                is_same = known is not None and known.seq == channel.last_seq
                self._idle[uri] = known if known and is_same else Idle(now, channel.last_seq)
            if number % SWEPT_AT_ONCE == SWEPT_AT_ONCE - 1:
                await asyncio.sleep(0)

    def _due(self) -> list[SessionChannel]:
        """Sessions that have been idle for long; then others until the rest is within the limit."""
        now = self._host.clock.monotonic()
        surplus = self._host.states.loaded_bytes - self._limit if self._limit else 0
        due: list[SessionChannel] = []
        for uri, idle in sorted(self._idle.items(), key=lambda item: item[1].since):
            channel = self._host.sessions.get(uri)
            is_old = bool(self._seconds) and now - idle.since >= self._seconds
            is_beyond = surplus > 0 and now > idle.since
            if channel is not None and (is_old or is_beyond):
                surplus -= channel.size.bytes
                due.append(channel)
        return due


def _finish(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
