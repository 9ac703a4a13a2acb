"""The channels a client watches: their mirrors, kept across connections."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeAlias

from session_server.client.dialects import Dialect
from session_server.client.errors import (
    ClientError,
    Closed,
    CommandFailed,
    ConnectionLost,
    NotUnderstood,
    SessionGone,
    Unsupported,
)
from session_server.client.json_rpc import Delivery, JsonRpcClient, Response, decode_subscribed
from session_server.client.mirror import Mirror, Pending
from session_server.client.mirror_kinds import ConversationMirror
from session_server.schemas.ahp.commands import ROOT_CHANNEL, Params, Snapshot
from session_server.schemas.ahp.frames import Subscribe
from session_server.schemas.errors import DecodingError, ErrorCode, UnknownKindError
from session_server.schemas.wire import Uri

logger = logging.getLogger("session_server.client")

Watched: TypeAlias = Mirror[Any] | ClientError
Found: TypeAlias = Callable[[Watched], None]
Key: TypeAlias = tuple[Uri, Uri | None]
"""What is watched: a session or the root, and which chat of the session, if not the default."""


NOT_THERE = (ErrorCode.SESSION_NOT_FOUND, ErrorCode.NOT_FOUND)


class Channels:
    """`dialect` is set once the version is known, before anything is watched."""

    dialect: Dialect

    def __init__(self, client_id: str, clock: Callable[[], int], rpc: JsonRpcClient) -> None:
        self.mirrors: dict[Key, Mirror[Any]] = {}
        self.last_seen = 0
        self._seen_before = 0
        """The same when this connection began."""
        self.is_live = False
        self._client_id = client_id
        self._clock = clock
        self._rpc = rpc
        self._wanted: dict[Key, list[Found]] = {}
        self._users: Counter[Key] = Counter()
        self._requested: set[tuple[Key, Uri]] = set()
        """Subscriptions that were requested on this connection to complete a mirror."""
        self._held: dict[Key, list[Delivery]] = {}
        """Mirrors that wait for snapshots of all their channels, and what came meanwhile."""

    @property
    def uris(self) -> tuple[Uri, ...]:
        """All channels that are watched."""
        return tuple(dict.fromkeys(uri for m in self.mirrors.values() for uri in m.positions))

    @property
    def pending(self) -> list[Pending]:
        """Own actions that are not confirmed, of all channels, in the order they were done."""
        found = (pending for mirror in self.mirrors.values() for pending in mirror.pending)
        return sorted(found, key=lambda pending: pending.client_seq)

    @property
    def waiting(self) -> int:
        return sum(len(mirror.pending) for mirror in self.mirrors.values())

    # Watchers

    def watch(self, channel: Uri, found: Found, chat: Uri | None = None) -> None:
        """Returns the mirror as soon as there is one. Each `watch` needs an `unwatch`."""
        key = (channel, chat)
        self._users[key] += 1
        mirror = self.mirrors.get(key)
        if mirror is not None and key not in self._wanted:
            found(mirror)
            return
        waiting = self._wanted.setdefault(key, [])
        waiting.append(found)
        if self.is_live and len(waiting) == 1:
            self._subscribe(key, channel)

    def unwatch(self, channel: Uri, chat: Uri | None = None) -> None:
        """The root stays subscribed: it announces which sessions are gone."""
        key = (channel, chat)
        self._users[key] -= 1
        if self._users[key] > 0:
            return
        del self._users[key]
        if key in self.mirrors and key not in self._wanted and channel != ROOT_CHANNEL:
            self._drop(key, Closed(f"{channel} is no longer watched."))

    def _drop(self, key: Key, error: ClientError) -> None:
        mirror = self.mirrors.pop(key)
        self._held.pop(key, None)
        self._requested -= {(key, uri) for uri in mirror.positions}
        mirror.end(error)
        for uri in mirror.positions:
            if self.is_live and uri not in self.uris:
                self._rpc.unsubscribe(uri)

    # Connections

    def lost(self) -> None:
        self.is_live = False
        if self._held:  # these have applied nothing of what this connection brought
            self.last_seen = self._seen_before
        self._seen_before = self.last_seen
        self._requested.clear()
        self._held.clear()
        for mirror in self.mirrors.values():
            mirror.compact()

    def restart(self, snapshots: Iterable[Snapshot], position: int) -> None:
        """Everything continues from snapshots; a channel without one does not exist any more.

        Another epoch may count from anywhere, so the old position means nothing now.
        """
        self.last_seen = position
        found = {snapshot.resource: snapshot for snapshot in snapshots}
        for mirror in tuple(self.mirrors.values()):
            if mirror.channel not in found:
                self.gone(mirror.channel)
                continue
            own = [found[uri] for uri in mirror.positions if uri in found]
            self._renew(mirror, mirror.resume, own)
        if ROOT_CHANNEL in found and (ROOT_CHANNEL, None) not in self.mirrors:
            self._add((ROOT_CHANNEL, None), found[ROOT_CHANNEL])

    def go_live(self, resumed: Iterable[Uri]) -> None:
        """Sends what waited for a connection; `resumed` is what the host thinks we watch."""
        self.is_live = True
        watched = self.uris
        for channel in resumed:
            if channel not in watched and channel != ROOT_CHANNEL:
                self._rpc.unsubscribe(channel)
        for key in self._wanted:
            if key not in self.mirrors:
                self._subscribe(key, key[0])
        for key, mirror in tuple(self.mirrors.items()):
            if key in self._held:
                self._restore(key, mirror, [])
            else:
                self._complete(key, mirror)
                mirror.drop_outdated()
        held = {id(pending) for key in self._held for pending in self.mirrors[key].pending}
        for pending in self.pending:
            if id(pending) not in held:
                self._rpc.send(pending)

    def send(self, mirror: Mirror[Any], pending: Pending) -> bool:
        """Whether it could be sent now; if not, it is as soon as that is possible."""
        can_send = self.is_live and all(self.mirrors[key] is not mirror for key in self._held)
        if can_send:
            self._rpc.send(pending)
        return can_send

    def missing(self, uris: Iterable[Uri]) -> None:
        """A host may have unloaded an unwatched session; it exists if it can be subscribed to."""
        gone = set(uris)
        for key, mirror in self.mirrors.items():
            if gone.intersection(mirror.positions):
                self._held[key] = []

    def _restore(self, key: Key, mirror: Mirror[Any], found: list[Snapshot]) -> None:
        """Subscribes to one channel after the other; then the mirror resumes from all."""
        lacking = [uri for uri in mirror.positions if uri not in {s.resource for s in found}]
        if lacking:
            self._request_snapshot(lacking[0], partial(self._restored, key, mirror, found))
            return
        early = self._held.pop(key)
        self._renew(mirror, mirror.resume, found)
        for delivery in early:
            self._receive(key, mirror, delivery)
        mirror.drop_outdated()
        for pending in mirror.pending:
            self._rpc.send(pending)

    def _restored(
        self, key: Key, mirror: Mirror[Any], found: list[Snapshot], channel: Uri, response: Response
    ) -> None:
        if self.mirrors.get(key) is not mirror:
            return  # left
        if isinstance(response, ClientError):
            is_gone = isinstance(response, CommandFailed) and response.rpc_code in NOT_THERE
            self.gone(channel, None if is_gone else response)
            return
        snapshot = decode_subscribed(bytes(response)).snapshot
        if snapshot is None:
            self.gone(channel)
            return
        self.last_seen = max(self.last_seen, snapshot.from_seq)
        self._restore(key, mirror, [*found, snapshot])

    def end(self, error: ClientError) -> None:
        self.is_live = False
        mirrors, self.mirrors = self.mirrors, {}
        wanted, self._wanted = self._wanted, {}
        for mirror in mirrors.values():
            mirror.end(error)
        for waiting in wanted.values():
            for found in waiting:
                found(error)

    # From the host

    def deliver(self, delivery: Delivery) -> None:
        watching = [(k, m) for k, m in self.mirrors.items() if delivery.channel in m.positions]
        if not watching:
            return
        origin = delivery.origin
        if delivery.rejection_reason is not None:
            if origin is not None and origin.client_id == self._client_id:
                for _, mirror in watching:
                    mirror.reject(origin.client_seq, delivery.rejection_reason)
            return
        self.last_seen = max(self.last_seen, delivery.server_seq)
        for key, mirror in watching:
            self._receive(key, mirror, delivery)

    def _receive(self, key: Key, mirror: Mirror[Any], delivery: Delivery) -> None:
        if key in self._held:
            self._held[key].append(delivery)
            return
        try:
            envelope, document = self.dialect.received(delivery)
            at = self._clock() if envelope.meta is None else envelope.meta.at
            mirror.receive(envelope, at, document)
        except (DecodingError, NotUnderstood) as error:
            self._not_understood(mirror, delivery, error)
            return
        self._complete(key, mirror)

    def gone(self, channel: Uri, error: ClientError | None = None) -> None:
        for key, mirror in tuple(self.mirrors.items()):
            if channel in mirror.positions:
                del self.mirrors[key]
                self._held.pop(key, None)
                reason = error or SessionGone(mirror.channel)
                mirror.end(reason)
                for found in self._wanted.pop(key, []):
                    found(reason)

    def _not_understood(self, mirror: Mirror[Any], delivery: Delivery, error: Exception) -> None:
        """A kind of action that is new to us is left out; for any other the state is fetched."""
        logger.warning("an action of %s was not understood: %s", delivery.channel, error)
        mirror.skip(delivery.channel, delivery.server_seq)
        if not (isinstance(error, UnknownKindError) and error.path == "$.type"):
            # A host sends no second snapshot of what it thinks we have.
            self._rpc.unsubscribe(delivery.channel)
            self._request_snapshot(delivery.channel, self._fetched)

    # Subscriptions

    def _request_snapshot(self, channel: Uri, callback: Callable[[Uri, Response], None]) -> None:
        def passed_on(response: Response) -> None:
            if not isinstance(response, ConnectionLost):  # requested again on the next connection
                callback(channel, response)

        self._rpc.request(Subscribe, Params(channel=channel), passed_on)

    def _subscribe(self, key: Key, channel: Uri) -> None:
        """Copies the state of a channel that another mirror already follows."""
        holder = next((m for m in self.mirrors.values() if channel in m.positions), None)
        if isinstance(holder, ConversationMirror):
            self._opened(key, holder.snapshot(channel))
        else:
            self._request_snapshot(channel, partial(self._subscribed, key))

    def _subscribed(self, key: Key, channel: Uri, response: Response) -> None:
        if isinstance(response, ClientError):
            self._failed(key, response)
            return
        snapshot = decode_subscribed(bytes(response)).snapshot
        if snapshot is None:
            self._failed(key, NotUnderstood(f"The channel {channel} has no state."))
            return
        self.last_seen = max(self.last_seen, snapshot.from_seq)
        self._opened(key, snapshot)

    def _opened(self, key: Key, snapshot: Snapshot) -> None:
        mirror = self.mirrors.get(key)
        try:
            if mirror is None:
                mirror = self._add(key, snapshot)
            else:
                mirror.replace([snapshot])
        except (NotUnderstood, Unsupported) as error:
            self._failed(key, error)
            return
        self._complete(key, mirror)

    def _complete(self, key: Key, mirror: Mirror[Any]) -> None:
        """Subscribes to the other channels of the mirror; then returns it to its waiters."""
        lacking = mirror.lacking()
        if lacking is not None:
            if (key, lacking) not in self._requested:
                self._requested.add((key, lacking))
                self._subscribe(key, lacking)
            return
        waiting = self._wanted.pop(key, [])
        if waiting and not self._users[key]:
            del self._users[key]
            self._drop(key, Closed(f"{mirror.channel} is no longer watched."))
        for found in waiting:
            found(mirror)

    def _failed(self, key: Key, error: ClientError) -> None:
        waiting = self._wanted.pop(key, [])
        if waiting and key in self.mirrors:
            self._drop(key, error)
        for found in waiting:
            found(error)

    def _fetched(self, channel: Uri, response: Response) -> None:
        if isinstance(response, ClientError):
            self.gone(channel)
            return
        snapshot = decode_subscribed(bytes(response)).snapshot
        for mirror in tuple(self.mirrors.values()):
            if snapshot is not None and channel in mirror.positions:
                self._renew(mirror, mirror.replace, [snapshot])

    def _add(self, key: Key, snapshot: Snapshot) -> Mirror[Any]:
        mirror = self.mirrors[key] = self.dialect.mirror(self._client_id, snapshot, key[1])
        return mirror

    def _renew(
        self,
        mirror: Mirror[Any],
        renew: Callable[[Iterable[Snapshot]], None],
        snapshots: list[Snapshot],
    ) -> None:
        try:
            renew(snapshots)
        except NotUnderstood as error:
            self.gone(mirror.channel, error)
