"""One order over all channels: outcomes reach their channels in the order of the log.

A batch whose fate is in doubt may turn out to be stored, and then its place is before those of
batches that settled after it. So these wait until the doubt is gone; otherwise a client's one
position could be beyond something that it has not seen.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeAlias

from session_server.log import Batch, Durable, Log, Outcome, Refused, Unknown


class NotStored(NamedTuple):
    """The doubt is gone: nothing of the batch is in the log, and it may be tried again."""


Verdict: TypeAlias = Durable | Refused | NotStored
Settled: TypeAlias = Callable[[Verdict], None]
FindOut: TypeAlias = Callable[[tuple[str, ...], Callable[[dict[str, int]], None]], None]
"""Asks the log for entries by their ids, for as long as it takes, and passes the answer on."""


class Order:
    def __init__(self, log: Log, find_out: FindOut) -> None:
        self._log = log
        self._find_out = find_out
        self._in_doubt = 0
        self._held: list[tuple[Settled, Verdict]] = []

    def append(self, batch: Batch, settled: Settled) -> None:
        self._log.append(batch, partial(self._arrived, batch, settled))

    def _arrived(self, batch: Batch, settled: Settled, outcome: Outcome) -> None:
        if isinstance(outcome, Unknown):
            self._in_doubt += 1
            ids = tuple(entry.id for entry in batch.entries)
            self._find_out(ids, partial(self._found, ids, settled))
        elif self._in_doubt:
            self._held.append((settled, outcome))
        else:
            settled(outcome)

    def _found(self, ids: tuple[str, ...], settled: Settled, found: dict[str, int]) -> None:
        """All of a batch is stored, or none of it."""
        is_stored = all(entry_id in found for entry_id in ids)
        verdict = Durable(tuple(found[entry_id] for entry_id in ids)) if is_stored else NotStored()
        self._held.append((settled, verdict))
        self._in_doubt -= 1
        if not self._in_doubt:
            self._release()

    def _release(self) -> None:
        held, self._held = sorted(self._held, key=_place), []
        for settled, verdict in held:
            settled(verdict)


def _place(held: tuple[Settled, Verdict]) -> int:
    verdict = held[1]
    return verdict.seqs[0] if isinstance(verdict, Durable) else 0
