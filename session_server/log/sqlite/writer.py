"""The one thread that writes: whatever was asked for during a commit goes into the next one.

The queue needs no bound of its own: a channel has at most one batch in flight, and whoever asks for
anything else waits for it.
"""

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias

from session_server.log.errors import FailedError
from session_server.log.protocol import Batch, RefusedBecause
from session_server.log.settling import Progress, settle
from session_server.log.sqlite.database import Database
from session_server.log.sqlite.faults import doubt, is_connection_sound, refusal
from session_server.log.sqlite.ledger import Ledger
from session_server.log.sqlite.store import InDoubtError, Store, Subject
from session_server.schemas.wire import Seq

ENTRIES_PER_COMMIT = 4_096
"""Once that many are together, the rest waits for the next commit."""

Settled: TypeAlias = Callable[[Any], None]
Request: TypeAlias = tuple[Subject, Settled]


class Writer:
    """`commits` counts transactions; `stopped` is done when the thread has let go of the file."""

    def __init__(self, database: Database, loop: asyncio.AbstractEventLoop) -> None:
        self._database = database
        self._loop = loop
        self._ledger = Ledger()
        self._store: Store | None = Store(database.writing(), self._ledger)
        self._requests: SimpleQueue[Request | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="session-server log", daemon=True)
        self.progress = Progress(self._ledger.last_seq)
        self.commits = 0
        self.stopped = loop.create_future()
        self._thread.start()

    def ask(self, subject: Subject, settled: Settled) -> None:
        """Returns at once; `settled` is called on the loop's thread, in the order of asking."""
        self._requests.put((subject, settled))

    def stop(self) -> None:
        """Once all that was asked before is settled."""
        self._requests.put(None)

    def _run(self) -> None:
        is_wanted = True
        while is_wanted:
            requests, is_last = self._gathered()
            is_wanted = self._tell(self._settlements(requests)) and not is_last
            self._database.reach(self._ledger.last_seq)
            if self._store is None:
                self._reopen_if_possible()
        self._database.close(self._ledger.last_seq)
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._note_stopped)

    def _gathered(self) -> tuple[list[Request], bool]:
        """Waits for a request, then takes what else is there; whether it is the last of all."""
        requests: list[Request] = []
        request, size = self._requests.get(), 0
        while request is not None:
            requests.append(request)
            subject = request[0]
            size += len(subject.entries) if isinstance(subject, Batch) else 1
            if size >= ENTRIES_PER_COMMIT:
                return requests, False
            try:
                request = self._requests.get_nowait()
            except Empty:
                return requests, False
        return requests, True

    def _tell(self, settlements: list[tuple[Settled, Any]]) -> bool:
        """`False` if the loop was closed before the log: then there is nobody left to write for."""
        try:
            self._loop.call_soon_threadsafe(self._settle, self._ledger.last_seq, settlements)
        except RuntimeError:
            return False
        return True

    def _settle(self, last_seq: Seq, settlements: list[tuple[Settled, Any]]) -> None:
        self.progress.reach(last_seq)
        settle(self._loop, settlements)

    def _note_stopped(self) -> None:
        self._thread.join()
        self.stopped.set_result(None)

    def _settlements(self, requests: Sequence[Request]) -> list[tuple[Settled, Any]]:
        results = self._results([subject for subject, _ in requests])
        return [(settled, result) for (_, settled), result in zip(requests, results, strict=True)]

    def _results(self, subjects: list[Subject]) -> list[Any]:
        """What became of each: an outcome, what an operation returned, or a `FailedError`."""
        try:
            store = self._store or self._reopened()
            results = store.write(subjects)
        except InDoubtError as error:
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
        refused = refusal(error)
        return [
            refused if isinstance(subject, Batch) else FailedError(*refused) for subject in subjects
        ]

    def _doubted(self, subjects: list[Subject], error: InDoubtError) -> list[Any]:
        self._distrust()
        unknown = doubt(error.__cause__ or error)
        for subject in subjects:
            if isinstance(subject, Batch) and subject.entries:
                self._ledger.doubt(subject.channel, (entry.id for entry in subject.entries))
        return [
            unknown
            if isinstance(subject, Batch)
            else FailedError(RefusedBecause.BROKEN, unknown.words)
            for subject in subjects
        ]

    def _distrust(self) -> None:
        self._store = None
        self._database.distrust()

    def _reopened(self) -> Store:
        try:
            self._store = Store(self._database.writing(), self._ledger)
        except sqlite3.Error:
            self._database.distrust()
            raise
        return self._store

    def _reopen_if_possible(self) -> None:
        """So that reading goes on even if nothing is written any more."""
        with suppress(sqlite3.Error, FailedError):
            self._reopened()
