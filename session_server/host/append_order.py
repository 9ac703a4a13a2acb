"""One order over all channels: outcomes reach their channels in the order of the log.

A batch whose fate is in doubt may turn out to be stored, and then its place is before those of
batches that settled after it. So these wait until the doubt is gone; otherwise a client's one
position could be beyond something that it has not seen. But nobody waits for ever: after a while
everyone is told how it stands, and until the log answers, what comes is refused at once.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeAlias, TypeGuard

from session_server.host.storage import NOT_THE_DISK, UNKNOWN, Storage
from session_server.log import Batch, Durable, Log, Outcome, Refused, RefusedBecause, Unknown


class NotStored(NamedTuple):
    """The doubt is gone: nothing of the batch is in the log, and it may be tried again."""

    words: str


class InDoubt(NamedTuple):
    """The log has not told for too long. Another verdict follows, once it does."""

    words: str


Verdict: TypeAlias = Durable | Refused | NotStored | InDoubt
Settled: TypeAlias = Callable[[Verdict], None]
FindOut: TypeAlias = Callable[[tuple[str, ...], Callable[[dict[str, int]], None]], None]
"""Asks the log for entries by their ids, for as long as it takes, and passes the answer on."""


class Pending:
    """A batch that has no verdict yet."""

    __slots__ = ("begun", "settled")

    def __init__(self, settled: Settled, begun: float) -> None:
        self.settled = settled
        self.begun = begun


class Order:
    """`patience` is how long a batch may wait for its verdict, in seconds."""

    def __init__(self, log: Log, find_out: FindOut, storage: Storage, patience: float) -> None:
        self._log = log
        self._find_out = find_out
        self._storage = storage
        self._patience = patience
        self._pending: dict[Pending, None] = {}
        self._held: list[tuple[Pending, Durable | Refused | NotStored]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._is_stuck = False

    @property
    def _words(self) -> str:
        silent = f"The log's disk has not answered for {self._patience:g} seconds."
        return self._storage.reason or silent

    def append(self, batch: Batch, settled: Settled) -> None:
        loop = asyncio.get_running_loop()
        if self._is_stuck:
            loop.call_soon(settled, Refused(RefusedBecause.BROKEN, self._words))
            return
        pending = Pending(settled, loop.time())
        self._pending[pending] = None
        if self._timer is None:
            self._timer = loop.call_later(self._patience, self._look)
        self._log.append(batch, partial(self._arrived, batch, pending))

    def _arrived(self, batch: Batch, pending: Pending, outcome: Outcome) -> None:
        storage = self._storage
        if isinstance(outcome, Unknown):
            storage.in_doubt += 1
            storage.failed(UNKNOWN, outcome.words)
            ids = tuple(entry.id for entry in batch.entries)
            self._find_out(ids, partial(self._found, ids, pending))
            return
        if isinstance(outcome, Durable):
            storage.worked()
        elif outcome.because not in NOT_THE_DISK:
            storage.failed(outcome.because, outcome.words)
        if storage.in_doubt:
            self._held.append((pending, outcome))
            if self._is_stuck:
                self._refuse_held()
        else:
            self._is_stuck = False
            del self._pending[pending]
            pending.settled(outcome)

    def _found(self, ids: tuple[str, ...], pending: Pending, found: dict[str, int]) -> None:
        """All of a batch is stored, or none of it."""
        if all(entry_id in found for entry_id in ids):
            self._held.append((pending, Durable(tuple(found[entry_id] for entry_id in ids))))
        else:
            self._held.append((pending, NotStored(self._words)))
        self._storage.in_doubt -= 1
        if not self._storage.in_doubt:
            self._release()

    def _release(self) -> None:
        """What the log refused meanwhile, it refused because of the same trouble."""
        self._is_stuck = False
        self._storage.worked()
        held, self._held = sorted(self._held, key=_place), []
        for pending, _ in held:
            del self._pending[pending]
        for pending, verdict in held:
            pending.settled(NotStored(verdict.words) if _is_over(verdict) else verdict)

    def _look(self) -> None:
        """Whether the oldest has waited for too long."""
        self._timer = None
        if not self._pending:
            return
        loop = asyncio.get_running_loop()
        left = next(iter(self._pending)).begun + self._patience - loop.time()
        if left > 0:
            self._timer = loop.call_later(left, self._look)
            return
        if self._storage.reason is None:
            self._storage.failed(UNKNOWN, self._words)
        self._is_stuck = True
        self._refuse_held()
        for pending in tuple(self._pending):
            pending.settled(InDoubt(self._words))

    def _refuse_held(self) -> None:
        """What is surely not stored need not wait for what is in doubt."""
        refused = [(pending, verdict) for pending, verdict in self._held if _is_over(verdict)]
        self._held = [held for held in self._held if held not in refused]
        for pending, verdict in refused:
            del self._pending[pending]
            pending.settled(verdict)


def _is_over(verdict: Verdict) -> TypeGuard[Refused]:
    return isinstance(verdict, Refused) and verdict.because not in NOT_THE_DISK


def _place(held: tuple[Pending, Verdict]) -> int:
    verdict = held[1]
    return verdict.seqs[0] if isinstance(verdict, Durable) and verdict.seqs else 0
