"""The host's side of the log: what is appended, in which order outcomes arrive, what is read.

Outcomes reach their channels in the order of the log. A batch whose fate is unknown may turn out to
be stored, and then its place is before those of batches that settled after it; so these wait until
it is known. Otherwise a client's one position could be beyond something that it has not seen. But
nobody waits for ever: after a while everyone is told, and until the log answers, new batches are
refused at once.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

import msgspec

from session_server.backoff import Backoff
from session_server.host.channels.channel import Channel, UnreadableError
from session_server.host.channels.channel_host import Appender, InDoubt, NotStored, Verdict
from session_server.host.metrics import Histogram
from session_server.host.persistence.log_status import NOT_THE_DISK, UNKNOWN, LogStatus
from session_server.host.persistence.replay import READ_AT_ONCE
from session_server.host.timers import Clock, Handle, Tasks
from session_server.log import (
    AppendResult,
    Batch,
    Durable,
    Entry,
    Log,
    Refused,
    RefusedBecause,
    Unknown,
)
from session_server.log.protocol import LogError
from session_server.schemas.wire import Seq

if TYPE_CHECKING:
    from session_server.host.follower import Follower

logger = logging.getLogger("session_server.host")

T = TypeVar("T")

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 5.0
LONGEST_DOUBT = 1.0
"""Seconds between two questions to a log that does not answer: everything waits for it."""


class Pending(msgspec.Struct, eq=False):
    """A batch without a verdict; `seen` are those of its entries that the log was read up to."""

    batch: Batch
    appender: Appender
    begun: float
    seen: tuple[Seq, ...] = ()
    is_doubted: bool = False


class LogWriter:
    """`patience` is how long a batch may wait for its verdict, in seconds."""

    def __init__(
        self,
        log: Log,
        tasks: Tasks,
        log_status: LogStatus,
        append_seconds: Histogram,
        patience: float,
        clock: Clock,
    ) -> None:
        self._log = log
        self._tasks = tasks
        self._log_status = log_status
        self._append_seconds = append_seconds
        self._patience = patience
        self._clock = clock
        self._appenders: list[Appender] = []
        """They are asked for their batches at the end of this turn."""
        self._pending: dict[Batch, Pending] = {}
        self._held: list[tuple[Pending, Durable | Refused | NotStored]] = []
        self._timer: Handle | None = None
        self._is_stuck = False
        self.follower: Follower | None = None
        """Where other nodes write too: it knows what stands ahead of a batch."""
        self._own: dict[str, Pending] = {}

    # Appending

    def append_soon(self, appender: Appender) -> None:
        """At the end of this turn of the event loop, so that what comes together is one commit."""
        if not self._appenders:
            asyncio.get_running_loop().call_soon(self._append_group)
        self._appenders.append(appender)

    def _append_group(self) -> None:
        appenders, self._appenders = self._appenders, []
        begun, group = self._clock.monotonic(), list[Batch]()
        for appender in appenders:
            try:
                batch = appender.next_batch()
            except Exception:
                logger.exception("changes could not be handed to the log")
                continue
            if batch is None:
                continue
            if self._is_stuck:
                refused = Refused(RefusedBecause.BROKEN, self._reason)
                asyncio.get_running_loop().call_soon(appender.settled, refused)
                continue
            pending = self._pending[batch] = Pending(batch, appender, begun)
            if self.follower is not None:
                self._own.update((entry.id, pending) for entry in batch.entries)
            group.append(batch)
        if group:
            if self._timer is None:
                self._timer = self._clock.call_later(self._patience, self._check_patience)
            self._log.append(group, partial(self._appended, begun))

    def _appended(self, begun: float, results: Sequence[tuple[Batch, AppendResult]]) -> None:
        log_status = self._log_status
        self._append_seconds.observe(self._clock.monotonic() - begun, len(results))
        for batch, outcome in results:
            if log_status.reason is not None and isinstance(outcome, Durable):
                log_status.worked()
            pending = self._pending.get(batch)
            if pending is None:
                continue  # the follower has read it, and so it is settled
            if isinstance(outcome, Durable):
                if self.follower is not None:
                    self._settle_if_next(self.follower, pending, outcome)
                    continue
            elif isinstance(outcome, Unknown):
                log_status.in_doubt += 1
                log_status.failed(UNKNOWN, outcome.reason)
                self._tasks.spawn(self._find_out(pending))
                continue
            elif outcome.because not in NOT_THE_DISK:
                log_status.failed(outcome.because, outcome.reason)
            if not log_status.in_doubt:
                self._settle(pending, outcome)
                continue
            self._held.append((pending, outcome))
            if self._is_stuck:
                self._refuse_held()

    def _settle_if_next(self, follower: "Follower", pending: Pending, outcome: Durable) -> None:
        """Settles a batch that directly follows what this node has applied. Any other one is
        settled when the follower reads its entries: `settle_own`.
        """
        if outcome.seqs[0] == follower.position + 1:
            self._settle(pending, outcome)
            follower.advance(outcome.seqs[-1])

    def settle_own(self, entry: Entry) -> bool:
        """Whether the entry is this node's; with the last of its entries a batch is settled."""
        pending = self._own.get(entry.id)
        if pending is None:
            return False
        pending.seen += (entry.seq,)
        if len(pending.seen) == len(pending.batch.entries):
            self._settle(pending, Durable(pending.seen))
        return True

    def is_pending(self, entry: Entry) -> bool:
        """Whether it belongs to a batch of this node that is not settled yet."""
        return entry.id in self._own

    def _settle(self, pending: Pending, verdict: Verdict) -> None:
        del self._pending[pending.batch]
        if not self._log_status.in_doubt:
            self._is_stuck = False
        if self.follower is not None:
            for entry in pending.batch.entries:
                self._own.pop(entry.id, None)
        self._report(pending, verdict)

    def _report(self, pending: Pending, verdict: Verdict) -> None:
        """A listener that fails keeps no other batch from its verdict."""
        try:
            pending.appender.settled(verdict)
        except Exception:
            logger.exception("a listener for a batch of %s failed", pending.batch.channel)

    async def _find_out(self, pending: Pending) -> None:
        """Looks for the entries of a batch: all of it is stored, or none of it."""
        ids = tuple(entry.id for entry in pending.batch.entries)
        found = await self._retry_until_answered(lambda: self._log.find(ids))
        is_stored = all(entry_id in found for entry_id in ids)
        if is_stored and self.follower is not None:
            pass  # it is settled when its turn comes, or was by now
        elif is_stored:
            self._held.append((pending, Durable(tuple(found[entry_id] for entry_id in ids))))
        else:
            self._held.append((pending, NotStored(self._reason)))
        self._log_status.in_doubt -= 1
        if not self._log_status.in_doubt:
            self._release()

    def _release(self) -> None:
        """What the log refused meanwhile, it refused because of the same failure."""
        self._is_stuck = False
        self._log_status.worked()
        held, self._held = sorted(self._held, key=_seq_of), []
        for pending, verdict in held:
            self._settle(pending, NotStored(verdict.reason) if _is_failure(verdict) else verdict)

    @property
    def _reason(self) -> str:
        silent = f"The log's disk has not answered for {self._patience:g} seconds."
        return self._log_status.reason or silent

    def _check_patience(self) -> None:
        """Whether the oldest has waited for too long. Each batch is in doubt once."""
        self._timer = None
        waiting = [pending for pending in self._pending.values() if not pending.is_doubted]
        if not waiting:
            return
        left = waiting[0].begun + self._patience - self._clock.monotonic()
        if left > 0:
            self._timer = self._clock.call_later(left, self._check_patience)
            return
        if self._log_status.reason is None:
            self._log_status.failed(UNKNOWN, self._reason)
        self._is_stuck = True
        self._refuse_held()
        for pending in waiting:
            if pending.batch in self._pending:
                pending.is_doubted = True
                self._report(pending, InDoubt(self._reason))

    def _refuse_held(self) -> None:
        """What is surely not stored need not wait for what is in doubt."""
        refused = [(pending, verdict) for pending, verdict in self._held if _is_failure(verdict)]
        self._held = [held for held in self._held if held not in refused]
        for pending, verdict in refused:
            self._settle(pending, verdict)

    # Reading

    def catch_up(self, channel: Channel[Any]) -> None:
        """Reads what others wrote to it, and lets it take that in."""

        async def read() -> None:
            if self.follower is not None:
                await self._see_others(self.follower, channel)
                return
            channels = (channel.uri,)
            entries = await self._retry_until_answered(
                lambda: self._log.read(
                    after=channel.last_seq, limit=READ_AT_ONCE, channels=channels
                )
            )
            try:
                channel.apply_missed(entries)
            except UnreadableError as error:
                logger.exception("%s stops", channel.uri)
                channel.close(f"This session cannot continue: {error}.")

        self._tasks.spawn(read())

    async def _see_others(self, follower: "Follower", channel: Channel[Any]) -> None:
        """Waits until what others wrote to it has been applied."""
        entries = await self._retry_until_answered(
            lambda: self._log.read(
                after=channel.last_seq, limit=READ_AT_ONCE, channels=(channel.uri,)
            )
        )
        if entries:
            await follower.reached(entries[-1].seq)
        channel.resume()

    async def _retry_until_answered(self, question: Callable[[], Awaitable[T]]) -> T:
        """Asks the log until it answers: a channel that does not know cannot go on.

        The operator knows of the failure: the write that led to the question has failed.
        """
        backoff = Backoff(FIRST_PAUSE, LONGEST_DOUBT)
        while True:
            try:
                return await question()
            except LogError:
                await self._clock.sleep(backoff.pause())


def _is_failure(verdict: Verdict) -> TypeGuard[Refused]:
    return isinstance(verdict, Refused) and verdict.because not in NOT_THE_DISK


def _seq_of(held: tuple[Pending, Verdict]) -> int:
    verdict = held[1]
    return verdict.seqs[0] if isinstance(verdict, Durable) and verdict.seqs else 0
