"""What a client watches: a mirror per channel, kept up to date over any number of connections."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeAlias

import msgspec

from session_server.client.errors import (
    ClientError,
    Closed,
    ConnectionLost,
    NotUnderstood,
    SessionGone,
)
from session_server.client.exchange import (
    Answer,
    Delivery,
    Exchange,
    decode_subscribed,
    envelope_of,
)
from session_server.client.mirror import Mirror, Pending
from session_server.client.mirror_kinds import mirror_of, state_of
from session_server.schemas.ahp.commands import ROOT_CHANNEL, Params, Snapshot
from session_server.schemas.ahp.frames import Subscribe
from session_server.schemas.errors import DecodingError, UnknownKindError
from session_server.schemas.wire import Uri

logger = logging.getLogger("session_server.client")

Watched: TypeAlias = Mirror[Any] | ClientError


class Channels:
    def __init__(self, client_id: str, clock: Callable[[], int], exchange: Exchange) -> None:
        self.mirrors: dict[Uri, Mirror[Any]] = {}
        self.last_seen = 0
        self.is_live = False
        self._client_id = client_id
        self._clock = clock
        self._exchange = exchange
        self._wanted: dict[Uri, list[Callable[[Watched], None]]] = {}
        self._users: Counter[Uri] = Counter()

    @property
    def pending(self) -> list[Pending]:
        """Own actions that are not confirmed, of all channels, in the order they were done."""
        found = (pending for mirror in self.mirrors.values() for pending in mirror.pending)
        return sorted(found, key=lambda pending: pending.client_seq)

    @property
    def waiting(self) -> int:
        return sum(len(mirror.pending) for mirror in self.mirrors.values())

    # Those who watch

    def watch(self, channel: Uri, found: Callable[[Watched], None]) -> None:
        """Gives the channel's mirror as soon as there is one. Each `watch` needs an `unwatch`."""
        self._users[channel] += 1
        mirror = self.mirrors.get(channel)
        if mirror is not None:
            found(mirror)
            return
        waiting = self._wanted.setdefault(channel, [])
        waiting.append(found)
        if self.is_live and len(waiting) == 1:
            self._subscribe(channel)

    def unwatch(self, channel: Uri) -> None:
        """The root stays subscribed: it says which sessions are gone."""
        self._users[channel] -= 1
        if self._users[channel] > 0:
            return
        del self._users[channel]
        if channel in self.mirrors and channel != ROOT_CHANNEL:
            self.mirrors.pop(channel).end(Closed(f"{channel} is no longer watched."))
            if self.is_live:
                self._exchange.unsubscribe(channel)

    # Connections

    def lost(self) -> None:
        self.is_live = False
        for mirror in self.mirrors.values():
            mirror.compact()

    def restart(self, snapshots: Iterable[Snapshot], position: int) -> None:
        """All goes on from snapshots; a channel without one is no longer there.

        Another epoch may count from anywhere, so the old position means nothing now.
        """
        self.last_seen = position
        missing = set(self.mirrors)
        for snapshot in snapshots:
            mirror = self.mirrors.get(snapshot.resource)
            missing.discard(snapshot.resource)
            if mirror is not None:
                self._renew(mirror, snapshot, mirror.resume)
            elif snapshot.resource == ROOT_CHANNEL:
                self._add(snapshot)
        for channel in missing:
            self.gone(channel)

    def go_live(self, resumed: Iterable[Uri]) -> None:
        """What waited for a connection goes out; `resumed` is what the host thinks we watch."""
        self.is_live = True
        for channel in resumed:
            if channel not in self.mirrors and channel != ROOT_CHANNEL:
                self._exchange.unsubscribe(channel)
        for channel in self._wanted:
            self._subscribe(channel)
        for mirror in tuple(self.mirrors.values()):
            mirror.drop_outdated()
        for pending in self.pending:
            self._exchange.send(pending)

    def end(self, error: ClientError) -> None:
        self.is_live = False
        mirrors, self.mirrors = self.mirrors, {}
        wanted, self._wanted = self._wanted, {}
        for mirror in mirrors.values():
            mirror.end(error)
        for waiting in wanted.values():
            for found in waiting:
                found(error)

    # What the host says

    def deliver(self, delivery: Delivery) -> None:
        mirror = self.mirrors.get(delivery.channel)
        if mirror is None:
            return
        origin = delivery.origin
        if delivery.rejection_reason is not None:
            if origin is not None and origin.client_id == self._client_id:
                mirror.reject(origin.client_seq, delivery.rejection_reason)
            return
        self.last_seen = max(self.last_seen, delivery.server_seq)
        try:
            envelope = envelope_of(delivery)
        except DecodingError as error:
            self._not_understood(mirror, delivery, error)
            return
        mirror.receive(envelope, self._clock() if envelope.meta is None else envelope.meta.at)

    def gone(self, channel: Uri, error: ClientError | None = None) -> None:
        mirror = self.mirrors.pop(channel, None)
        if mirror is not None:
            mirror.end(error or SessionGone(channel))

    def _not_understood(
        self, mirror: Mirror[Any], delivery: Delivery, error: DecodingError
    ) -> None:
        """A kind of action that is new to us is left out; for any other the state is fetched."""
        logger.warning("an action of %s was not understood: %s", delivery.channel, error)
        mirror.skip(delivery.server_seq)
        if not (isinstance(error, UnknownKindError) and error.path == "$.type"):
            # A host sends no second snapshot of what it thinks we have.
            self._exchange.unsubscribe(delivery.channel)
            self._ask_for(delivery.channel, self._fetched)

    # Subscriptions

    def _subscribe(self, channel: Uri) -> None:
        self._ask_for(channel, self._subscribed)

    def _ask_for(self, channel: Uri, answered: Callable[[Uri, Answer], None]) -> None:
        self._exchange.ask(Subscribe, Params(channel=channel), partial(answered, channel))

    def _subscribed(self, channel: Uri, answer: Answer) -> None:
        if isinstance(answer, ConnectionLost):
            return  # asked again on the next connection
        waiting = self._wanted.pop(channel, [])
        watched = answer if isinstance(answer, ClientError) else self._found(channel, answer)
        if isinstance(watched, Mirror) and not self._users[channel]:
            del self.mirrors[channel]
            self._exchange.unsubscribe(channel)
        for found in waiting:
            found(watched)

    def _found(self, channel: Uri, answer: msgspec.Raw) -> Watched:
        snapshot = decode_subscribed(bytes(answer)).snapshot
        if snapshot is None:
            return NotUnderstood(f"The channel {channel} has no state.")
        self.last_seen = max(self.last_seen, snapshot.from_seq)
        try:
            return self._add(snapshot)
        except NotUnderstood as error:
            return error

    def _fetched(self, channel: Uri, answer: Answer) -> None:
        mirror = self.mirrors.get(channel)
        if mirror is None or isinstance(answer, ConnectionLost):
            return
        if isinstance(answer, ClientError):
            self.gone(channel)
            return
        snapshot = decode_subscribed(bytes(answer)).snapshot
        if snapshot is not None:
            self._renew(mirror, snapshot, mirror.replace)

    def _add(self, snapshot: Snapshot) -> Mirror[Any]:
        mirror = self.mirrors[snapshot.resource] = mirror_of(self._client_id, snapshot)
        return mirror

    def _renew(
        self, mirror: Mirror[Any], snapshot: Snapshot, renew: Callable[[Any, int], None]
    ) -> None:
        try:
            renew(state_of(snapshot), snapshot.from_seq)
        except NotUnderstood as error:
            self.gone(mirror.channel, error)
