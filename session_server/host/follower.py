"""What other nodes write to the same log, applied here in the log's order.

A client has one position for all its channels. So entries are delivered in the log's order: a batch
of this node waits until what other nodes wrote before it has been read.
"""

import asyncio
import heapq
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from session_server.backoff import Backoff
from session_server.host.persistence.log_status import NOT_THE_DISK, UNKNOWN
from session_server.log import Entry
from session_server.log.progress import PAGE
from session_server.log.protocol import FailedError, LogError, SharedLog
from session_server.schemas.wire import Seq

if TYPE_CHECKING:
    from session_server.host.host import Host

logger = logging.getLogger("session_server.host")

READ_AGAIN = (0.05, 2.0)
"""The first and the longest pause, in seconds, when the log cannot be read."""

LATE_SECONDS = 30.0
CATCH_UP_SECONDS = 2.0
"""How long a caller waits at most for entries of other nodes."""

FELL_BEHIND = "This node fell behind further than the log keeps entries: restart it."
NOT_APPLIED = "This node could not apply what another one wrote: restart it."


class Follower:
    """Everything up to `position` has been read. What is applied and delivered to this node's
    subscribers is the host's position: the same, but for a batch of its own that is half read.
    """

    def __init__(self, host: "Host", log: SharedLog) -> None:
        self._host = host
        self._log = log
        self.position: Seq = 0
        self._waiting: list[tuple[Seq, int, asyncio.Future[None]]] = []
        self._one_at_a_time = asyncio.Lock()
        self._next_look: asyncio.Task[None] | None = None
        self._is_current = True
        self.failure: str | None = None

    @property
    def is_behind(self) -> bool:
        return self.position < self._log.last_seq

    async def caught_up(self) -> bool:
        """Whether all that was durable when this was called is applied here, by any node.

        Bounded: when the log does not answer in time, this node continues with what it has. All
        who come while the log is being asked share the next question.
        """
        if self._next_look is None:
            self._next_look = self._host.spawn(self._look())
        done, _ = await asyncio.wait({self._next_look}, timeout=CATCH_UP_SECONDS)
        return bool(done) and self._is_current and self.failure is None

    async def _look(self) -> None:
        async with self._one_at_a_time:
            self._next_look = None
            is_current = False
            patience = self._host.limits.store_seconds
            try:
                async with asyncio.timeout(patience):
                    await self._log.refresh()
                await self._read_on(self._log.last_seq)
                is_current = True
            except TimeoutError:
                reason = f"The log has not answered for {patience:g} seconds."
                self._host.log_status.failed(UNKNOWN, reason)
            except FailedError as error:
                if error.because not in NOT_THE_DISK:
                    self._host.log_status.failed(error.because, error.reason)
            finally:
                self._is_current = is_current

    async def _read_on(self, end: Seq) -> None:
        while self.position < end and self.failure is None:
            entries = await self._log.read(after=self.position, limit=PAGE)
            if len(entries) >= PAGE or not entries:
                await self._check_kept()
            await self._apply(entries)
            if not entries:  # those entries were dropped, or an epoch begins there
                self.advance(end)

    async def run(self, after: Seq) -> None:
        """Until the log is closed, or this node cannot catch up any more."""
        self.advance(after)
        backoff = Backoff(*READ_AGAIN)
        while self.failure is None:
            try:
                await self._follow()
            except LogError as error:
                logger.debug("what other nodes write cannot be read: %s", error)
                await backoff.sleep()
            else:
                return

    async def _follow(self) -> None:
        clock = self._host.clock
        looked_at = clock.monotonic()
        async for entries in self._log.follow(self.position):
            now = clock.monotonic()
            if len(entries) >= PAGE or now - looked_at > LATE_SECONDS:
                await self._check_kept()
            looked_at = now
            await self._apply(entries)
            if self.failure is not None:
                return

    async def _check_kept(self) -> None:
        """Whether other nodes have trimmed entries that were not read here."""
        for uri, floor in (await self._log.floors()).items():
            channel = self._host.stored(uri)
            if channel is None or channel.outline is not None:
                continue  # it is read from its snapshot when it is needed
            if self.position < floor and channel.last_seq < floor:
                logger.error(
                    "%s (%s is at %d, and trimmed up to %d)",
                    FELL_BEHIND,
                    uri,
                    channel.last_seq,
                    floor,
                )
                self.failure = FELL_BEHIND
                return

    async def _apply(self, entries: Sequence[Entry]) -> None:
        """In the order of the log, with the sessions concerned in memory."""
        await self._host.loaded.all_of({entry.channel for entry in entries})
        for entry in entries:
            if self.failure is None and entry.seq > self.position:
                try:
                    if not self._host.writer.settle_own(entry):
                        self._host.apply(entry)
                except Exception:
                    logger.exception("%s (%s, %d)", NOT_APPLIED, entry.channel, entry.seq)
                    self.failure = NOT_APPLIED
                    return
                self.advance(entry.seq, is_delivered=not self._host.writer.is_pending(entry))

    def advance(self, seq: Seq, *, is_delivered: bool = True) -> None:
        """A batch of this node is delivered as a whole: no position inside it is ever sent."""
        self.position = max(self.position, seq)
        if is_delivered:
            self._host.reached(self.position)
        while self._waiting and self._waiting[0][0] <= self.position:
            future = heapq.heappop(self._waiting)[2]
            if not future.done():
                future.set_result(None)

    async def reached(self, seq: Seq) -> None:
        if self.position < seq:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            heapq.heappush(self._waiting, (seq, id(future), future))
            await future
