"""Who waits for the answers to requests with a lease: marks, after a time, that nobody does."""

import contextlib
from collections import Counter
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

import msgspec

from session_server.host.channels.changes import Change, Plan
from session_server.host.channels.channel import Channel
from session_server.host.connection.rate_limit import Allowances
from session_server.host.nodes import Nodes
from session_server.host.timers import Timer, WallTimers
from session_server.reducers.batches import Batch
from session_server.reducers.deadlines import leased, marked_as_left
from session_server.reducers.state.input_requests import open_request
from session_server.schemas.codec import encode
from session_server.schemas.principals import Stamp
from session_server.schemas.record import SessionRecord
from session_server.schemas.wire import Millis, Uri

ASKER = "asker"
"""The kind of item that nodes publish to each other: who waits at them."""

Asker = tuple[Uri, str]
"""One who waits for answers: the session, and the id of the request or of the call that asks."""


class Askers:
    """Who waits for the answers to requests with a lease; marks requests whose asker is gone.

    A request with a lease that no asker waits for has a timer. A start restarts all timers,
    so nothing is marked because the host was down.
    """

    def __init__(
        self,
        sessions: dict[Uri, Channel[SessionRecord]],
        write: Callable[[Channel[SessionRecord], Plan], None],
        timers: WallTimers,
        allowances: Allowances,
        now: Callable[[], Millis],
        nodes: Nodes | None = None,
    ) -> None:
        self._sessions = sessions
        self._write = write
        self._wall = timers
        self._allowances = allowances
        self._now = now
        self._nodes = nodes
        if nodes is not None:
            nodes.listen(ASKER, self._moved)
            nodes.on_lost.append(self.restarted)
        self._waiting: Counter[Asker] = Counter()
        self._timers: dict[Asker, Timer] = {}
        self._is_stopping = False

    @contextlib.contextmanager
    def waiting(self, uri: Uri, asker: str) -> Generator[None]:
        """While the block runs, an asker waits for the answers to this request or call.

        A mark that it was left is removed. `asker` may be unknown, or ask nothing at all.
        """
        self._waiting[uri, asker] += 1
        self._publish_to_nodes((uri, asker))
        self._returned(uri, asker)
        try:
            yield
        finally:
            self._waiting[uri, asker] -= 1
            if not self._waiting[uri, asker]:
                del self._waiting[uri, asker]
                self._publish_to_nodes((uri, asker))
                self._watch(uri)

    def is_waiting(self, uri: Uri, asker: str) -> bool:
        """At any node."""
        if (uri, asker) in self._waiting:
            return True
        return self._nodes is not None and bool(self._nodes.elsewhere(ASKER, _name((uri, asker))))

    def _publish_to_nodes(self, asker: Asker) -> None:
        if self._nodes is not None:
            self._nodes.publish(ASKER, _name(asker), True if asker in self._waiting else None)

    def _moved(self, name: str) -> None:
        """To another node, or away from one."""
        uri, asker = msgspec.json.decode(name, type=Asker)
        if self.is_waiting(uri, asker):
            self._stop_timer((uri, asker))
        else:
            self._watch(uri)

    def restarted(self) -> None:
        """Starts timers for all; also after a node was lost, since askers may be gone with it."""
        for uri in self._sessions:
            self._watch(uri)

    def stop(self) -> None:
        """Cancels the timers: askers disconnected because the host stops are not marked."""
        self._is_stopping = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def committed(self, channel: Channel[SessionRecord], change: Change) -> None:
        before, after = change.before, change.after
        if before.public.input_requests is not after.public.input_requests:
            for name in {n for n, _ in leased(before)} - {n for n, _ in leased(after)}:
                self._stop_timer((channel.uri, name))
            self._watch(channel.uri)

    def disposed(self, uri: Uri) -> None:
        for asker in [asker for asker in self._timers if asker[0] == uri]:
            self._stop_timer(asker)

    def _returned(self, uri: Uri, asker: str) -> None:
        self._stop_timer((uri, asker))
        record = self._record(uri)
        batch = () if record is None else marked_as_left(record, asker, None)
        if record is not None and batch:
            self._charge(record, asker, batch)
            self._write(self._sessions[uri], lambda r, _: marked_as_left(r, asker, None))

    def _charge(self, record: SessionRecord, asker: str, batch: Batch) -> None:
        """Charges the rate limit: when an asker leaves or returns, requests are written again."""
        call, request = record.private.calls.get(asker), open_request(record.public, asker)
        meta = None if request is None else request.meta
        by = call.by if call is not None else meta.by if meta is not None else None
        if by is not None:
            self._allowances.of(by.id).charge_write(2 * len(encode(batch)))

    def _watch(self, uri: Uri) -> None:
        """Starts the timers of askers in this session that are not waiting."""
        record = self._record(uri)
        for name, request in () if record is None or self._is_stopping else leased(record):
            asker, meta = (uri, name), request.meta
            if meta is not None and meta.asker_gone_since is not None:
                if asker in self._waiting:  # otherwise other nodes would not know it
                    self._returned(*asker)
                continue
            is_away = asker not in self._timers and not self.is_waiting(*asker)
            if is_away and meta is not None and meta.lease:
                since = self._now()
                left = partial(self._left, asker, since)
                self._timers[asker] = self._wall.at(since + round(meta.lease * 1000), left)

    def _left(self, asker: Asker, since: Millis) -> None:
        del self._timers[asker]

        def plan(record: SessionRecord, _: Stamp) -> Any:
            return () if self.is_waiting(*asker) else marked_as_left(record, asker[1], since)

        channel = self._sessions.get(asker[0])
        if channel is not None:
            self._write(channel, plan)

    def _record(self, uri: Uri) -> SessionRecord | None:
        channel = self._sessions.get(uri)
        return None if channel is None else channel.committed

    def _stop_timer(self, asker: Asker) -> None:
        timer = self._timers.pop(asker, None)
        if timer is not None:
            timer.cancel()


def _name(asker: Asker) -> str:
    """For other nodes."""
    return msgspec.json.encode(asker).decode()
