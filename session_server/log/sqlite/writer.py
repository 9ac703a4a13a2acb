"""The one thread that writes: whatever was asked for during a commit goes into the next one.

The event loop gathers and hands over one commit at a time: not as soon as the last one has ended,
but after those who wait for its outcome had a turn to ask for more. Under load that makes commits
several times as large, and an idle log does not wait. What is gathered needs no bound of its own: a
channel has at most one batch in flight, and everyone who asks for anything else waits for it.
"""

import asyncio
import logging
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, TypeAlias

from session_server.log.progress import Progress, settle
from session_server.log.protocol import Batch, FailedError, Refused, RefusedBecause, Unknown
from session_server.log.sqlite.database import Database
from session_server.log.sqlite.faults import doubt, is_connection_sound, named, refusal
from session_server.log.sqlite.store import CommitUnknownError, Store, Subject
from session_server.schemas.wire import Seq

logger = logging.getLogger("session_server.log")

ENTRIES_PER_COMMIT = 4_096
"""Once that many are together, the rest waits for the next commit."""

OnAppended: TypeAlias = Callable[[Sequence[tuple[Any, Any]]], None]
Request: TypeAlias = tuple[Sequence[Subject], OnAppended]


def _to_each(subjects: Sequence[Subject], outcome: Refused | Unknown) -> list[Any]:
    """The outcome for batches, and an error with the same reason for everything else."""
    because = outcome.because if isinstance(outcome, Refused) else RefusedBecause.BROKEN
    return [
        outcome if isinstance(subject, Batch) else FailedError(because, outcome.reason)
        for subject in subjects
    ]


def _size(subject: Subject) -> int:
    return len(subject.entries) if isinstance(subject, Batch) else 1


class Writer:
    """`commits` counts transactions; `stopped` is done when the thread has let go of the file.

    `ask`, `stop`, `_settle` and `_hand_over` run on the loop's thread, and the rest on its own.
    """

    def __init__(self, database: Database, loop: asyncio.AbstractEventLoop) -> None:
        self._database = database
        self._loop = loop
        self._positions = database.positions
        self._store: Store | None = self._reopened()
        self._asked: list[Request] = []
        self._is_busy = False
        self._handed_over: SimpleQueue[list[Request] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="session-server log", daemon=True)
        self.progress = Progress(self._positions.last_seq)
        self.commits = 0
        self.stopped = loop.create_future()
        self._thread.start()

    def ask(self, subjects: Sequence[Subject], settled: OnAppended) -> None:
        """Returns at once; `settled` is called on the loop's thread, in the order of asking, and
        more than once for what is too much for one commit.
        """
        first = size = 0
        for end, subject in enumerate(subjects, 1):
            size += _size(subject)
            if size >= ENTRIES_PER_COMMIT or end == len(subjects):
                self._asked.append((subjects[first:end], settled))
                first, size = end, 0
        if not self._is_busy:
            self._hand_over()

    def _hand_over(self) -> None:
        """The next commit, if anything was asked for."""
        size = taken = 0
        while taken < len(self._asked) and size < ENTRIES_PER_COMMIT:
            size += sum(map(_size, self._asked[taken][0]))
            taken += 1
        self._is_busy = taken > 0
        if self._is_busy:
            self._handed_over.put(self._asked[:taken])
            del self._asked[:taken]

    def stop(self) -> None:
        """Once all that was asked before is settled."""
        while self._asked:
            self._hand_over()
        self._handed_over.put(None)

    def _run(self) -> None:
        while (requests := self._handed_over.get()) is not None:
            results = self._results([subject for subjects, _ in requests for subject in subjects])
            if not self._report(requests, results):
                break
            self._database.note_progress()
            while not self._asked and self._handed_over.empty() and self._has_tidied():
                pass
        self._database.close()
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._note_stopped)

    def _has_tidied(self) -> bool:
        """A piece of what is done while nobody waits: the WAL gets its usual size, and the file
        gives back what it no longer needs. Whether there is more to do.
        """
        if self._store is None:
            return False
        try:
            return self._database.grow_wal() or self._store.shrink()
        except sqlite3.Error as error:
            logger.warning("the log's file could not be made smaller: %s", named(error))
            self._store.has_freed = False
            if not is_connection_sound(error):
                self._distrust()
            return False

    def _report(self, requests: Sequence[Request], results: Sequence[Any]) -> bool:
        """`False` if the loop was closed before the log: then there is nobody left to write for."""
        last_seq = self._positions.last_seq
        try:
            self._loop.call_soon_threadsafe(self._settle, last_seq, requests, results)
        except RuntimeError:
            return False
        return True

    def _settle(self, last_seq: Seq, requests: Sequence[Request], results: Sequence[Any]) -> None:
        self.progress.reach(last_seq)
        first = 0
        for subjects, settled in requests:
            own = results[first : first + len(subjects)]
            first += len(subjects)
            settle(self._loop, settled, list(zip(subjects, own, strict=True)))
        # What the outcomes lead to is sent within a turn, and asked for at the end of that turn.
        self._loop.call_soon(self._loop.call_soon, self._hand_over)

    def _note_stopped(self) -> None:
        self._thread.join()
        self.stopped.set_result(None)

    def _results(self, subjects: list[Subject]) -> list[Any]:
        """What became of each: an outcome, what an operation returned, or a `FailedError`."""
        try:
            store = self._store or self._reopened()
        except FailedError as error:
            return _to_each(subjects, Refused(error.because, error.reason))
        try:
            results = store.write(subjects)
        except CommitUnknownError as error:
            return self._doubted(subjects, error)
        except Exception as error:  # noqa: BLE001  # a writer that dies would leave all waiting
            return self._refused(subjects, error)
        self.commits += 1
        return results

    def _refused(self, subjects: list[Subject], error: Exception) -> list[Any]:
        """Nothing of it is stored. If one is to blame, the others must not suffer for it."""
        if not is_connection_sound(error):
            self._distrust()
        elif len(subjects) > 1:
            return [result for subject in subjects for result in self._results([subject])]
        return _to_each(subjects, refusal(error))

    def _doubted(self, subjects: list[Subject], error: CommitUnknownError) -> list[Any]:
        self._distrust()
        for subject in subjects:
            if isinstance(subject, Batch) and subject.entries:
                self._positions.doubt(subject.channel, (entry.id for entry in subject.entries))
        return _to_each(subjects, doubt(error.error))

    def _distrust(self) -> None:
        """The next request begins with a connection of its own, or is refused for want of one."""
        self._store = None
        self._database.distrust()

    def _reopened(self) -> Store:
        self._store = Store(self._database.writing(), self._positions)
        return self._store
