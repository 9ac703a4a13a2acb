"""One channel: actions are judged on its head, made durable by the log, and only then seen.

`head` is ahead by what is still being written; `committed` is what the log has, and what snapshots
show. One batch is in flight at a time; what comes meanwhile makes the next one.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import Generic, TypeVar

import msgspec

from session_server.host.channels.ahp1_views import Views
from session_server.host.channels.changes import Change, ReadChange
from session_server.host.channels.channel_host import ChannelHost, InDoubt, NotStored, Verdict
from session_server.host.channels.channel_kinds import Kind
from session_server.host.channels.publisher import Publisher
from session_server.host.channels.state_size import StateSize
from session_server.log import (
    Batch,
    Durable,
    Entry,
    NewEntry,
    Refused,
    RefusedBecause,
    StoredSnapshot,
)
from session_server.reducers.state.record import DECISIONS
from session_server.schemas.codec import decode_logged, encode
from session_server.schemas.errors import DecodingError, Refusal, SessionServerError
from session_server.schemas.limits import DECISION_LIFETIME_MS
from session_server.schemas.log_entries import Logged, LoggedAction
from session_server.schemas.principals import Stamp
from session_server.schemas.record import Outline
from session_server.schemas.wire import Seq, Uri

logger = logging.getLogger("session_server.host")

R = TypeVar("R", bound=msgspec.Struct)

ENTRIES_PER_BATCH = 512
ENTRIES_BETWEEN_SNAPSHOTS = 1_000
TRIES = 3
"""How often in a row a batch may turn out not to be stored before its senders are told."""

NOT_JUDGED = "Something went wrong here."
GONE = "This session was removed or replaced."


class UnreadableError(SessionServerError):
    """What the log holds of a channel cannot be replayed. The text says what is damaged and how."""

    code = "unreadable"


class Channel(Generic[R]):
    """`due_at`: the earliest deadline. From then on `overdue` runs before a change is judged.

    `outline` is what is left of it while it is not in memory; then there is no record.
    `outlined_at` is the seq of its stored snapshot, if that has an outline too.

    What becomes of a change that comes in, by the first of these that is set:

    `_closed`, `_doubted`  it fails for this reason: the session is gone, or nobody knows whether
                           the last batch is stored. Both can end: `reopen`, or a verdict.
    `_parked`              it waits in this list until the record is in memory, or has caught up
                           with what others wrote; then it is judged (`_rejudge`).
    `_in_flight`           it is judged, and waits in `_waiting` until this batch is stored and
                           its listeners have been told (the list is empty meanwhile).
    none of them           it is judged, and is in flight at the end of the turn; one that adds
                           nothing to the log is reported at once.
    """

    def __init__(self, uri: Uri, kind: Kind[R], host: ChannelHost) -> None:
        self.uri = uri
        self.kind = kind
        self.head: R | None = kind.empty
        self.committed: R | None = kind.empty
        self.last_seq = 0
        self.publisher = Publisher(uri, kind, host.envelopes, host.counts)
        self.size = StateSize(host.states)
        self.entries_since_snapshot = 0
        self.outlined_at: Seq = 0
        self.outline: Outline | None = None
        self.due_at: float = inf
        self._host = host
        self._writer = host.writer
        self._in_flight: list[Change] | None = None
        self._waiting: list[Change] = []
        self._parked: list[Change] | None = None
        self._expected: Seq = 0
        self._closed: str | None = None
        self._doubted: str | None = None
        self._tries = 0

    # Coming in

    def submit(self, change: Change) -> None:
        """Judges it on the head. What comes in one turn of the event loop is appended together."""
        stopped = self._closed or self._doubted
        if stopped is not None:
            self._notify(change.failed, stopped)
            return
        if self._parked is not None:
            self._parked.append(change)
            if self.outline is not None:
                self._host.loaded.load(self)
            return
        now = self._host.now()
        if now >= self.due_at:
            self._host.overdue(self)
        self._judge(change, now)
        if change.entries or self._in_flight is not None or self._waiting:
            self._waiting.append(change)
            if self._in_flight is None and len(self._waiting) == 1:
                self._writer.append_soon(self)
        else:
            self._report(change)

    def _judge(self, change: Change, now: int) -> None:
        """A refusal, or entries that lead from the head to a new one."""
        stamp = change.stamp = Stamp(at=now, by=change.by, via=change.via)
        before = after = self.head
        planned = change.plan(before, stamp)
        if isinstance(planned, Refusal):
            change.set_refusal(before, planned)
            return
        all_logged: list[Logged] = []
        entries: list[NewEntry] = []
        growth = 0
        for action in planned:
            after = self.kind.reduce(after, action, now)
            action_type = type(action)
            origin = change.origin if action_type is change.origin_type else None
            logged = Logged(action=action, stamp=stamp, origin=origin)
            data = encode(logged)
            # Decisions stay in the log for longer than what people typed on the way to them.
            lasts_until = now + DECISION_LIFETIME_MS if action_type in DECISIONS else 0
            all_logged.append(logged)
            entries.append(NewEntry(self._host.new_id(), data, lasts_until))
            growth += len(data)
        if self.size.add(growth) and not change.is_exempt:
            refusal = self._refusal_of_growth(before, planned, growth, now)
            if refusal is not None:
                change.set_refusal(before, refusal)
                return
        self.head = after
        change.before, change.after = before, after
        change.actions, change.logged = planned, all_logged
        change.entries, change.refusal = entries, None

    def _refusal_of_growth(
        self, before: R | None, planned: Sequence[LoggedAction], growth: int, now: int
    ) -> Refusal | None:
        """Of a change that makes the channel grow so much, which is counted already."""
        if self.kind.makes_room is None:
            return None
        self.size.add(-growth)
        refusal = self.size.refusal(growth, lambda: len(encode(before)), now)
        if refusal is not None and not self.kind.makes_room(before, planned):
            return refusal
        self.size.add(growth)
        return None

    def measure(self) -> bytes:
        """Puts the estimate of its size right; returns what is committed, as a snapshot holds it.

        What is being written counts in addition, as it did before.
        """
        data = encode(self.committed)
        self.size.set(len(data) + _size_of((*(self._in_flight or ()), *self._waiting)))
        return data

    def close(self, reason: str) -> None:
        """Takes nothing more. What is being written is still reported; what waits has failed."""
        self._closed = reason
        waiting, self._waiting = self._waiting, []
        self._uncount(waiting)
        self.head = self._in_flight[-1].after if self._in_flight else self.committed
        for change in (*waiting, *(self._parked or ())):
            self._notify(change.failed, reason)
        self._parked = None if self._parked is None else []

    def reopen(self) -> None:
        self._closed = None

    @property
    def is_closed(self) -> bool:
        return self._closed is not None

    # Becoming durable

    def next_batch(self) -> Batch | None:
        """For the log, unless a batch is in flight. A change that adds nothing is reported."""
        if self._in_flight is not None:
            return None
        while self._waiting:
            if len(self._waiting) == 1:
                in_flight, self._waiting = self._waiting, []
                entries = tuple(in_flight[0].entries)
            else:
                in_flight, entries = self._take_waiting()
            if entries:
                self._in_flight = in_flight
                self._expected = self.last_seq
                return Batch(self.uri, self.last_seq, entries)
            for change in in_flight:
                self._report(change)
        return None

    def _take_waiting(self) -> tuple[list[Change], tuple[NewEntry, ...]]:
        """Whole changes, up to a number of entries."""
        waiting = self._waiting
        taken: list[Change] = []
        entries: list[NewEntry] = []
        for change in waiting:
            if taken and len(entries) + len(change.entries) > ENTRIES_PER_BATCH:
                break
            taken.append(change)
            entries += change.entries
        del waiting[: len(taken)]
        return taken, tuple(entries)

    def settled(self, verdict: Verdict) -> None:
        in_flight = self._in_flight
        assert in_flight is not None
        if isinstance(verdict, Durable):
            self._commit(in_flight, verdict.seqs)
        elif isinstance(verdict, InDoubt):
            self._mark_in_doubt(in_flight, verdict.reason)
        else:
            self._fall_back(in_flight, verdict)

    def _commit(self, in_flight: list[Change], seqs: Sequence[Seq]) -> None:
        """Everything is delivered before anything that follows from it is begun."""
        self._doubted, self._tries = None, 0
        publisher = self.publisher
        place = projected = 0
        accepted: list[Change] = []
        for change in in_flight:
            if change.refusal is not None:  # everything that it was judged on is sent first
                publisher.project(accepted, seqs[projected:place], _size_of(accepted))
                accepted, projected = [], place
                self._report(change)
                continue
            for logged in change.logged:
                self.last_seq = seqs[place]
                publisher.publish(self.last_seq, logged)
                place += 1
            self.committed = change.after
            accepted.append(change)
        if publisher.views is not None:
            publisher.project(accepted, seqs[projected:place], _size_of(accepted))
        self.entries_since_snapshot += len(seqs)
        self._host.counts.entries += len(seqs)
        self._flush()
        self._in_flight = []  # nothing is being written, and the next batch waits for the listeners
        for change in in_flight:
            if change.refusal is None:
                self._conclude(change)
        if self.entries_since_snapshot >= ENTRIES_BETWEEN_SNAPSHOTS:
            self._notify(self._host.maintenance.take_snapshot, self)
        self._in_flight = None
        if self._waiting:  # together with what those send who were just delivered to
            self._writer.append_soon(self)

    def _conclude(self, change: Change) -> None:
        """A listener that fails keeps neither the channel nor anyone else from going on."""
        try:
            if change.actions:
                self._host.committed(self, change)
        except Exception:
            logger.exception("the effects of a change of %s failed", self.uri)
        try:
            change.done()
        except Exception:
            logger.exception("a listener of %s failed", self.uri)
        change.forget()

    def _mark_in_doubt(self, in_flight: list[Change], reason: str) -> None:
        """Nobody waits any longer. What writes nothing of its own was only judged on the rest."""
        self._doubted = reason
        self._in_flight = [change for change in in_flight if change.entries]
        waiting, self._waiting = self._waiting, []
        self._uncount(waiting)
        self.head = in_flight[-1].after
        for change in self._in_flight:
            self._notify(change.doubted, reason)
        for change in (*(change for change in in_flight if not change.entries), *waiting):
            self._notify(change.failed, reason)

    def _fall_back(self, in_flight: list[Change], verdict: Refused | NotStored) -> None:
        """Nothing of it happened: judge again on what is really there, or report the failure."""
        changes = [*in_flight, *self._waiting]
        was_doubted = self._doubted is not None
        self._uncount(changes)
        self._in_flight, self._waiting, self.head = None, [], self.committed
        self._doubted = None
        self._tries += 1
        is_conflict = isinstance(verdict, Refused) and verdict.because is RefusedBecause.CONFLICT
        may_try_again = isinstance(verdict, NotStored) and self._tries < TRIES
        if was_doubted or not (is_conflict or may_try_again):
            self._tries = 0
            for change in changes:
                self._notify(change.failed, verdict.reason)
            changes = []
        parked, self._parked = self._parked or [], None
        if is_conflict:
            self._parked = [*changes, *parked]
            self._writer.catch_up(self)
        else:
            self._resubmit([*changes, *parked])

    def _uncount(self, changes: Sequence[Change]) -> None:
        """What does not become part of the record does not count as a part of it."""
        self.size.add(-_size_of(changes))

    def _resubmit(self, changes: Sequence[Change]) -> None:
        """One that cannot be judged any more keeps no other from it."""
        for change in changes:
            try:
                self.submit(change)
            except Exception:
                logger.exception("a change of %s could not be judged again", self.uri)
                self._notify(change.failed, NOT_JUDGED)

    def apply_missed(self, entries: Sequence[Entry]) -> None:
        """Others wrote to this channel: apply and deliver that, then go on."""
        if not entries:
            self.close("The log no longer agrees with what was read from it.")
        for entry in entries:
            self._apply(entry, is_new=True)
        self._rejudge()

    def apply_foreign(self, entry: Entry) -> None:
        """Another node wrote this, and its turn has come. What was judged before is judged again.

        What is being written will be refused, as it expects another end of the channel.
        """
        is_waiting = self._parked is not None
        if self._parked is None:  # what follows from it is judged after it
            self._parked = []
        self._apply(entry, is_new=True)
        if self._in_flight is None and not is_waiting:
            self._rejudge()

    def resume(self) -> None:
        """After a conflict, when what others wrote has been taken in."""
        if self.last_seq == self._expected:
            self.close(GONE)  # nobody wrote to it: it was dropped
        self._rejudge()

    def _rejudge(self) -> None:
        waiting, self._waiting = self._waiting, []
        self._uncount(waiting)
        self.head = self.committed
        parked, self._parked = self._parked or [], None
        self._resubmit([*waiting, *parked])

    # Reporting

    def _flush(self) -> None:
        """What a commit publishes leaves together, and before anybody is told of what follows."""
        self._host.reached(self.last_seq)
        self.publisher.flush()

    def _report(self, change: Change) -> None:
        if change.refusal is not None:
            self._host.counts.refusals[change.refusal.code] += 1
            self._flush()
            self._notify(change.refused, change.refusal)
        else:
            self._notify(change.done)

    def _notify(self, listener: Callable[..., None], *about: object) -> None:
        """A listener that fails keeps neither the channel nor anyone else from going on."""
        try:
            listener(*about)
        except Exception:
            logger.exception("a listener of %s failed", self.uri)

    def snapshot(self) -> bytes:
        """The committed state as clients get it."""
        assert self.committed is not None
        return self.publisher.snapshot(self.committed)

    def ahp1_views(self) -> Views:
        return self.publisher.ahp1_views(self.last_seq)

    # Leaving memory, and coming back

    @property
    def overview(self) -> R | None:
        """The record; while it is not in memory, the part of it that lists show."""
        return self.committed if self.outline is None else self.outline.record  # type: ignore[return-value]

    @property
    def is_idle(self) -> bool:
        """Nobody watches it, nothing is on its way into it, and nothing is due."""
        return (
            self.committed is not None
            and not self.publisher.is_watched
            and self._in_flight is None
            and not self._waiting
            and self._parked is None
            and self._doubted is None
            and not self.is_closed
            and self.due_at == inf
        )

    def evict(self, outline: Outline) -> None:
        """Only the outline stays. What is submitted from now on waits until it is loaded."""
        self.outline = outline
        self.head = self.committed = None
        self._parked = []
        self.publisher.free()
        self.size.evict()

    def loaded(self, read: "Channel[R]") -> None:
        """Becomes what was read. What has waited for it is judged now."""
        history = read.publisher.history
        history.inherit(self.publisher.history)
        self.size.remove()
        self.publisher.history, self.size, self.last_seq = history, read.size, read.last_seq
        self.entries_since_snapshot, self.outlined_at = (
            read.entries_since_snapshot,
            read.outlined_at,
        )
        self.committed, self.outline = read.committed, None
        self._rejudge()

    def not_loaded(self, reason: str) -> None:
        """It stays as it is; what waits has failed."""
        waiting, self._parked = self._parked or [], []
        for change in waiting:
            self._notify(change.failed, reason)

    # Starting from what is stored

    def begin_evicted(self, seq: Seq, outline: Outline) -> None:
        """It is not needed yet: the stored snapshot at this position has all of it."""
        self.last_seq = self.outlined_at = seq
        self.publisher.history.resume(seq, self._host.now())
        self.size.set(outline.size)
        self.evict(outline)

    def restore(self, stored: StoredSnapshot) -> None:
        """Raises `UnreadableError`, and then has changed nothing."""
        if not stored.is_intact:
            raise UnreadableError(f"its snapshot at {stored.seq} does not match its checksum")
        try:
            self.head = self.committed = self.kind.decode(stored.data)
        except DecodingError as error:
            reason = f"its snapshot at {stored.seq} cannot be decoded: {error}"
            raise UnreadableError(reason) from error
        self.last_seq = stored.seq
        self.outlined_at = stored.seq if stored.outline else 0
        self.entries_since_snapshot = 0
        self.publisher.history.let_go()
        self.publisher.history.resume(stored.seq, self._host.now())
        self.size.set(len(stored.data))

    def replay(self, entry: Entry) -> None:
        self.entries_since_snapshot += 1
        self._apply(entry, is_new=False)
        self.head = self.committed

    def begin_again(self, floor: int) -> None:
        """As if nothing had been written yet; positions up to `floor` cannot be replayed."""
        self.head = self.committed = self.kind.empty
        self.last_seq = 0
        self.publisher.history.let_go()
        self.publisher.history.begin(floor)
        self.size.set(0)

    def forget(self) -> None:
        """It is gone, or cannot be used: the memory that it counts for is free."""
        self.publisher.free()
        self.size.remove()

    def _apply(self, entry: Entry, *, is_new: bool) -> None:
        """Raises `UnreadableError`, and then has changed nothing."""
        change = self._read(entry)
        self.committed, self.last_seq = change.after, entry.seq
        self.size.add(len(entry.data))
        self.publisher.publish(entry.seq, change.logged[0])
        self.publisher.project((change,), (entry.seq,), len(entry.data))
        if is_new:
            self._flush()
            self._conclude(change)

    def _read(self, entry: Entry) -> ReadChange:
        if not entry.is_intact:
            raise UnreadableError(f"its entry {entry.seq} does not match its checksum")
        before = self.committed
        try:
            logged = decode_logged(entry.data)
            after = self.kind.reduce(before, logged.action, logged.stamp.at)
        except Exception as error:
            reason = f"its entry {entry.seq} cannot be read: {str(error) or type(error).__name__}"
            raise UnreadableError(reason) from error
        return ReadChange(before, logged, after)


def _size_of(changes: Iterable[Change]) -> int:
    return sum([len(entry.data) for change in changes for entry in change.entries])
