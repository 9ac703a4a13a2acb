"""Active clients that have disconnected: a grace period, and the end of their role after it."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from session_server.host.channels.changes import Change, Plan
from session_server.host.channels.channel import Channel
from session_server.host.nodes import Nodes
from session_server.host.timers import Clock, Handle
from session_server.reducers.deadlines import active_client_ids, released
from session_server.schemas.principals import Stamp
from session_server.schemas.record import SessionRecord
from session_server.schemas.wire import Uri

CLIENT = "client"
"""The kind of item that nodes publish to each other: who is connected to them."""

GRACE_SECONDS = 30.0
"""How long an active client may be disconnected before it loses its role and tool calls."""


class ActiveClients:
    """Counts the connections of each client, and ends its role in sessions after the grace period.

    `_holds` says in which sessions each is active, so that not all of them are searched.
    `write` retries until it is written.
    """

    def __init__(
        self,
        sessions: dict[Uri, Channel[SessionRecord]],
        write: Callable[[Channel[SessionRecord], Plan], None],
        clock: Clock,
        nodes: Nodes | None = None,
    ) -> None:
        self._sessions = sessions
        self._write = write
        self._clock = clock
        self._nodes = nodes
        if nodes is not None:
            nodes.listen(CLIENT, self._moved)
            nodes.on_lost.append(self._look_for_gone)
        self._connections: Counter[str] = Counter()
        self._timers: dict[str, Handle] = {}
        self._holds: dict[str, set[Uri]] = {}

    def arrived(self, client_id: str) -> None:
        self._connections[client_id] += 1
        self._stop_timer(client_id)
        self._publish_to_nodes(client_id)

    def left(self, client_id: str) -> None:
        self._connections[client_id] -= 1
        if self._connections[client_id] <= 0:
            del self._connections[client_id]
            self._publish_to_nodes(client_id)
            self._release_later(client_id)

    def _release_later(self, client_id: str) -> None:
        self._stop_timer(client_id)
        release = self._clock.call_later(GRACE_SECONDS, self._release, client_id)
        self._timers[client_id] = release

    def _stop_timer(self, client_id: str) -> None:
        timer = self._timers.pop(client_id, None)
        if timer is not None:
            timer.cancel()

    def _publish_to_nodes(self, client_id: str) -> None:
        """Only of clients that are active in a session; other nodes need no others."""
        if self._nodes is not None:
            is_needed = client_id in self._connections and client_id in self._holds
            self._nodes.publish(CLIENT, client_id, True if is_needed else None)

    def _is_connected(self, client_id: str) -> bool:
        """At any node."""
        if client_id in self._connections:
            return True
        return self._nodes is not None and bool(self._nodes.elsewhere(CLIENT, client_id))

    def _moved(self, client_id: str) -> None:
        """To another node, or away from one."""
        if self._is_connected(client_id):
            self._stop_timer(client_id)
        elif client_id in self._holds and client_id not in self._timers:
            self._release_later(client_id)

    def _look_for_gone(self) -> None:
        """After a node was lost: clients that were connected to it only may be gone."""
        for client_id in tuple(self._holds):
            self._moved(client_id)

    def restarted(self) -> None:
        """After a start no client is connected: each active one gets the grace period."""
        for channel in self._sessions.values():
            self.opened(channel)
        for client_id in tuple(self._holds):
            self._connections[client_id] += 1
            self.left(client_id)

    def opened(self, channel: Channel[SessionRecord]) -> None:
        for client_id in () if channel.committed is None else active_client_ids(channel.committed):
            self._hold(client_id, channel.uri)

    def committed(self, channel: Channel[SessionRecord], change: Change) -> None:
        before, after = change.before, change.after
        if before.chat is not after.chat or before.public.active_client is not (
            after.public.active_client
        ):
            old, new = active_client_ids(before), active_client_ids(after)
            for client_id in old - new:
                self._let_go(client_id, channel.uri)
            for client_id in new - old:
                self._hold(client_id, channel.uri)

    def disposed(self, uri: Uri) -> None:
        channel = self._sessions.get(uri)
        record = None if channel is None else channel.committed
        for client_id in () if record is None else active_client_ids(record):
            self._let_go(client_id, uri)

    def _hold(self, client_id: str, uri: Uri) -> None:
        self._holds.setdefault(client_id, set()).add(uri)
        self._publish_to_nodes(client_id)

    def _let_go(self, client_id: str, uri: Uri) -> None:
        held = self._holds.get(client_id, set())
        held.discard(uri)
        if not held:
            self._holds.pop(client_id, None)
            self._publish_to_nodes(client_id)

    def _release(self, client_id: str) -> None:
        self._timers.pop(client_id, None)
        for uri in tuple(self._holds.get(client_id, ())):
            self._write(self._sessions[uri], partial(self._released, client_id))

    def _released(self, client_id: str, record: SessionRecord, _: Stamp) -> Any:
        """Empty if the client has reconnected before this could be written."""
        return () if self._is_connected(client_id) else released(record, client_id)
