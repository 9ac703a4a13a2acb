"""One channel: actions are judged on its head, made durable by the log, and only then seen.

`head` is ahead by what is still being written; `committed` is what the log has, and what snapshots
show. One batch is in flight at a time; what comes meanwhile makes the next one.
"""

import logging
from collections.abc import Callable, Sequence
from math import inf
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from session_server.host.append_order import InDoubt, NotStored, Settled, Verdict
from session_server.host.channel_kinds import (
    Kind,
    Logged,
    LoggedAction,
    SessionOpened,
    decode_logged,
)
from session_server.host.delivery import Message, Outbox, deliver
from session_server.host.history import EnvelopeMemory, History
from session_server.host.metrics import Counts
from session_server.host.state_size import StateMemory, StateSize
from session_server.log import (
    Batch,
    Durable,
    Entry,
    NewEntry,
    Refused,
    RefusedBecause,
    StoredSnapshot,
)
from session_server.reducers.state.record import is_decision
from session_server.schemas.ahp.envelopes import ActionEnvelope, ActionOrigin, EnvelopeMeta
from session_server.schemas.codec import encode
from session_server.schemas.errors import DecodingError, Refusal
from session_server.schemas.limits import DECISION_LIFETIME_MS
from session_server.schemas.principals import Author, Provenance, Stamp
from session_server.schemas.wire import Uri

logger = logging.getLogger("session_server.host")

R = TypeVar("R", bound=msgspec.Struct)

ENTRIES_PER_BATCH = 512
TRIES = 3
"""How often in a row a batch may turn out not to be stored before its senders are told."""

NOTHING_SHOWN = (None, b"null")

_BEFORE_ENVELOPE = b'{"jsonrpc":"2.0","method":"action","params":'

Plan = Callable[[Any, Stamp], Sequence[LoggedAction] | Refusal]
"""What to write, given the record that it will follow; asked again if that record changes."""


def _nothing(*_: object) -> None:
    pass


def in_doubt(words: str) -> str:
    return f"It is not known yet whether this was saved; if it was, it will show. {words}"


class UnreadableError(Exception):
    """What the log holds of a channel cannot be folded. The text says what is damaged, and how."""


def _lasts_until(logged: Logged) -> int:
    """Decisions stay in the log for longer than what people typed on the way to them."""
    return logged.stamp.at + DECISION_LIFETIME_MS if is_decision(logged.action) else 0


class Submission(msgspec.Struct, frozen=True):
    """Something that wants to change a channel, and whom to tell what became of it.

    `own` is the type of the sender's action: of all that it brings, only this carries its origin.
    `is_exempt`: the host's own bookkeeping, which a full session takes too.
    `doubted` is told when nobody knows for long whether it is written; `done` or `failed` follows.
    """

    plan: Plan
    by: Author | None
    via: Provenance = Provenance.PERSON
    origin: ActionOrigin | None = None
    own: type | None = None
    done: Callable[[], None] = _nothing
    refused: Callable[[Refusal], None] = _nothing
    failed: Callable[[str], None] = _nothing
    is_exempt: bool = False
    doubted: Callable[[str], None] = _nothing


class Step(msgspec.Struct, Generic[R], frozen=True):
    """A submission that was judged: a refusal, or entries that lead from one record to another."""

    submission: Submission
    before: R | None
    after: R | None
    logged: Sequence[Logged] = ()
    entries: Sequence[NewEntry] = ()
    refusal: Refusal | None = None


class World(Protocol):
    """What a channel needs from outside: time, names, and someone who can wait."""

    @property
    def counts(self) -> Counts: ...

    @property
    def envelopes(self) -> EnvelopeMemory: ...

    @property
    def states(self) -> StateMemory: ...

    def now(self) -> int: ...

    def new_id(self) -> str: ...

    def reached(self, seq: int) -> None:
        """Everything up to this seq has been handed to its subscribers."""
        ...

    def append(self, batch: Batch, settled: Settled) -> None:
        """Hands the batch to the log; the verdict comes in the order of all channels."""
        ...

    def catch_up(self, channel: "Channel[Any]") -> None:
        """Reads what others wrote, then calls `channel.absorb`."""
        ...

    def committed(
        self, channel: "Channel[Any]", before: Any, action: LoggedAction, after: Any
    ) -> None:
        """A step became durable: its effects are due."""
        ...

    def overdue(self, channel: "Channel[Any]") -> None:
        """The time has come for something in it, and what is due is to be submitted first."""
        ...

    def written(self, channel: "Channel[Any]") -> None:
        """A batch is through, with all that follows from it."""
        ...


class Channel(Generic[R]):
    """`due_at`: something may happen by itself then, and goes before whatever comes later."""

    def __init__(self, uri: Uri, kind: Kind[R], world: World) -> None:
        self.uri = uri
        self.kind = kind
        self.head: R | None = kind.empty
        self.committed: R | None = kind.empty
        self.last_seq = 0
        self.history = History(world.envelopes)
        self.size = StateSize(world.states)
        self.entries_since_snapshot = 0
        self.due_at: float = inf
        self.subscribers: dict[Outbox, None] = {}
        self._leaving: list[Message] = []
        self._world = world
        self._flying: list[Step[R]] | None = None
        self._next: list[Step[R]] = []
        self._parked: list[Submission] | None = None
        self._closed: str | None = None
        self._doubted: str | None = None
        self._tries = 0
        self._shown: tuple[R | None, bytes] = NOTHING_SHOWN

    # Coming in

    def submit(self, submission: Submission) -> None:
        stopped = self._closed or self._doubted
        if stopped is not None:
            self._tell(submission.failed, stopped)
            return
        if self._parked is not None:
            self._parked.append(submission)
            return
        if self._world.now() >= self.due_at:
            self._world.overdue(self)
        step = self._judged(submission)
        if not step.entries and self._flying is None and not self._next:
            self._report(step)
            return
        self._next.append(step)
        self._launch()

    def _judged(self, submission: Submission) -> Step[R]:
        stamp = Stamp(at=self._world.now(), by=submission.by, via=submission.via)
        before = after = self.head
        planned = submission.plan(before, stamp)
        if isinstance(planned, Refusal):
            return Step(submission, before, before, refusal=planned)
        logged: list[Logged] = []
        for action in planned:
            after = self.kind.reduce(after, action, stamp.at)
            origin = submission.origin if type(action) is submission.own else None
            logged.append(Logged(action=action, stamp=stamp, origin=origin))
        new_id = self._world.new_id
        entries = [NewEntry(new_id(), encode(entry), _lasts_until(entry)) for entry in logged]
        growth = sum([len(entry.data) for entry in entries])
        if self.size.is_reached(growth) and not submission.is_exempt:
            refusal = self._refusal_of_growth(before, planned, growth, stamp.at)
            if refusal is not None:
                return Step(submission, before, before, refusal=refusal)
        self.size.add(growth)
        self.head = after
        return Step(submission, before, after, logged, entries)

    def _refusal_of_growth(
        self, before: R | None, planned: Sequence[LoggedAction], growth: int, now: int
    ) -> Refusal | None:
        if self.kind.makes_room is None:
            return None
        refusal = self.size.refusal(growth, lambda: len(encode(before)), now)
        return None if refusal is None or self.kind.makes_room(before, planned) else refusal

    def measure(self) -> None:
        """Puts the estimate of its size right; takes as long as a snapshot."""
        self.size.set(len(encode(self.committed)))

    def close(self, words: str) -> None:
        """Takes nothing more. What is being written is still reported; what waits has failed."""
        self._closed = words
        waiting, self._next = self._next, []
        self._give_back(waiting)
        self.head = self._flying[-1].after if self._flying else self.committed
        for submission in (*(step.submission for step in waiting), *(self._parked or ())):
            self._tell(submission.failed, words)
        self._parked = None if self._parked is None else []

    def reopen(self) -> None:
        self._closed = None

    @property
    def is_closed(self) -> bool:
        return self._closed is not None

    # Becoming durable

    def _launch(self) -> None:
        if self._flying is not None:
            return
        while self._next:
            flying, entries = self._taken()
            if entries:
                self._flying = flying
                self._world.append(Batch(self.uri, self.last_seq, entries), self._settled)
                return
            for step in flying:
                self._report(step)

    def _taken(self) -> tuple[list[Step[R]], tuple[NewEntry, ...]]:
        """The next batch: whole steps, up to a number of entries."""
        taken: list[Step[R]] = []
        entries: list[NewEntry] = []
        for step in self._next:
            if taken and len(entries) + len(step.entries) > ENTRIES_PER_BATCH:
                break
            taken.append(step)
            entries += step.entries
        del self._next[: len(taken)]
        return taken, tuple(entries)

    def _settled(self, verdict: Verdict) -> None:
        flying = self._flying
        assert flying is not None
        if isinstance(verdict, Durable):
            self._commit(flying, verdict.seqs)
        elif isinstance(verdict, InDoubt):
            self._doubt(flying, verdict.words)
        else:
            self._fall_back(flying, verdict)

    def _commit(self, flying: list[Step[R]], seqs: tuple[int, ...]) -> None:
        """Everything is delivered before anything that follows from it is begun."""
        self._doubted, self._tries = None, 0
        places = iter(seqs)
        for step in flying:
            for logged in step.logged:
                self._publish(next(places), logged)
            if step.refusal is not None:
                self._report(step)
            else:
                self.committed = step.after
        self._shown = NOTHING_SHOWN  # as large as the state itself, and of no use any more
        self.entries_since_snapshot += len(seqs)
        self._world.counts.entries += len(seqs)
        self._hand_over()
        for step in flying:
            if step.refusal is None:
                self._conclude(step)
        self._tell(self._world.written, self)
        self._flying = None
        self._launch()

    def _conclude(self, step: Step[R]) -> None:
        if step.logged:
            last = step.logged[-1].action
            self._tell(self._world.committed, self, step.before, last, step.after)
        self._tell(step.submission.done)

    def _doubt(self, flying: list[Step[R]], words: str) -> None:
        """Nobody waits any longer. What writes nothing of its own was only judged on the rest."""
        self._doubted = words
        self._flying = [step for step in flying if step.entries]
        waiting, self._next = self._next, []
        self._give_back(waiting)
        self.head = flying[-1].after
        for step in self._flying:
            self._tell(step.submission.doubted, words)
        for step in (*(step for step in flying if not step.entries), *waiting):
            self._tell(step.submission.failed, words)

    def _fall_back(self, flying: list[Step[R]], verdict: Refused | NotStored) -> None:
        """Nothing of it happened: judge again on what is really there, or say that it failed."""
        submissions = [step.submission for step in (*flying, *self._next)]
        was_doubted = self._doubted is not None
        self._give_back((*flying, *self._next))
        self._flying, self._next, self.head = None, [], self.committed
        self._doubted = None
        self._tries += 1
        is_conflict = isinstance(verdict, Refused) and verdict.because is RefusedBecause.CONFLICT
        may_try_again = isinstance(verdict, NotStored) and self._tries < TRIES
        if was_doubted or not (is_conflict or may_try_again):
            self._tries = 0
            for submission in submissions:
                self._tell(submission.failed, verdict.words)
            submissions = []
        if is_conflict:
            self._parked = submissions
            self._world.catch_up(self)
        else:
            self._resubmit(submissions)

    def _give_back(self, steps: Sequence[Step[R]]) -> None:
        """What does not become part of the record does not count as a part of it."""
        self.size.add(-sum([len(entry.data) for step in steps for entry in step.entries]))

    def _resubmit(self, submissions: Sequence[Submission]) -> None:
        for submission in submissions:
            self.submit(submission)

    def absorb(self, entries: Sequence[Entry]) -> None:
        """Others wrote to this channel: fold and deliver that, then go on."""
        if not entries:
            self.close("The log no longer agrees with what was read from it.")
        for entry in entries:
            self._take(entry, deliver=True)
        self.head = self.committed
        parked, self._parked = self._parked or [], None
        self._resubmit(parked)

    # Being seen

    def _publish(self, seq: int, logged: Logged) -> None:
        self.last_seq = seq
        if not self.kind.is_public(logged.action):
            if not self.kind.is_watched:
                self.history.skip(seq)
            elif isinstance(logged.action, SessionOpened):
                self.history.begin(seq)
            return
        envelope = ActionEnvelope(
            channel=self.uri,
            action=logged.action,  # type: ignore[arg-type]  # public ones are just these
            server_seq=seq,
            origin=logged.origin,
            meta=EnvelopeMeta(at=logged.stamp.at, by=logged.stamp.by),
        )
        text = encode(envelope)
        self.history.keep(seq, logged.stamp.at, text)
        if self.subscribers:
            self._leaving.append(Message(b"%b%b}" % (_BEFORE_ENVELOPE, text)))

    def _hand_over(self) -> None:
        """What a commit publishes leaves together, and before anybody is told of what follows."""
        self._world.reached(self.last_seq)
        if self._leaving:
            leaving, self._leaving = self._leaving, []
            self._world.counts.deliveries += len(leaving) * len(self.subscribers)
            deliver(leaving, self.subscribers)

    def _report(self, step: Step[R]) -> None:
        if step.refusal is not None:
            self._world.counts.refusals[step.refusal.code] += 1
            self._hand_over()
            self._tell(step.submission.refused, step.refusal)
        else:
            self._tell(step.submission.done)

    def _tell(self, listener: Callable[..., None], *about: object) -> None:
        """Whoever fails to listen keeps neither the channel nor anyone else from going on."""
        try:
            listener(*about)
        except Exception:
            logger.exception("a listener of %s failed", self.uri)

    def shown(self) -> bytes:
        """What a snapshot holds, encoded once per state."""
        record = self.committed
        assert record is not None
        if self._shown[0] is not record:
            self._shown = (record, self.kind.shown(record))
        return self._shown[1]

    def rest(self, before: int) -> bool:
        """Lets go of what can be made again, if nothing has happened since; whether so."""
        if not self.history.rest(before):
            return False
        self._shown = NOTHING_SHOWN
        return True

    # Starting from what is stored

    def restore(self, stored: StoredSnapshot) -> None:
        """Raises `UnreadableError`, and then has changed nothing."""
        if not stored.is_intact:
            raise UnreadableError(f"its snapshot at {stored.seq} does not match its checksum")
        try:
            self.head = self.committed = self.kind.decode(stored.data)
        except DecodingError as error:
            words = f"its snapshot at {stored.seq} cannot be decoded: {error}"
            raise UnreadableError(words) from error
        self.last_seq = stored.seq
        self.history.resume(stored.seq, self._world.now())
        self.size.set(len(stored.data))

    def replay(self, entry: Entry) -> None:
        self.entries_since_snapshot += 1
        self._take(entry, deliver=False)
        self.head = self.committed

    def begin_again(self, floor: int) -> None:
        """As if nothing had been written yet; positions up to `floor` cannot be replayed."""
        self.head = self.committed = self.kind.empty
        self.last_seq = 0
        self.history.let_go()
        self.history.begin(floor)
        self.size.set(0)

    def forget(self) -> None:
        """It is gone, or cannot be used: the memory that it counts for is free."""
        self.history.let_go()
        self.size.remove()

    def _take(self, entry: Entry, *, deliver: bool) -> None:
        """Raises `UnreadableError`, and then has changed nothing."""
        before = self.committed
        logged, self.committed = self._folded(before, entry)
        self.size.add(len(entry.data))
        self._publish(entry.seq, logged)
        self._hand_over()
        if deliver:
            self._tell(self._world.committed, self, before, logged.action, self.committed)

    def _folded(self, record: R | None, entry: Entry) -> tuple[Logged, R]:
        if not entry.is_intact:
            raise UnreadableError(f"its entry {entry.seq} does not match its checksum")
        try:
            logged = decode_logged(entry.data)
            return logged, self.kind.reduce(record, logged.action, logged.stamp.at)
        except Exception as error:
            words = f"its entry {entry.seq} cannot be read: {str(error) or type(error).__name__}"
            raise UnreadableError(words) from error
