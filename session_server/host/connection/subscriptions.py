"""What one connection watches: channels, and the presence of sessions."""

from collections.abc import Iterable
from typing import Any

from session_server.host.channels.channel import Channel
from session_server.host.channels.messages import Outbox
from session_server.host.clients.presence import session_of
from session_server.host.host import Host
from session_server.host.lifecycle import loaded_record
from session_server.reducers.ahp1.snapshots import Variant
from session_server.schemas.ahp.commands import ROOT_CHANNEL
from session_server.schemas.errors import CommandError, ErrorCode
from session_server.schemas.limits import SUBSCRIPTIONS_PER_CONNECTION
from session_server.schemas.principals import Principal
from session_server.schemas.wire import Uri


class StatelessChannels:
    """Channels without state that one connection watches: no snapshot and no replay.

    That is presence, and the list of sessions for a principal that is limited to some. `variant`
    is that of a client of AHP 0.9 or 1.x.
    """

    def __init__(self, host: Host, outbox: Outbox, variant: Variant | None = None) -> None:
        self._host = host
        self._outbox = outbox
        self._variant = variant
        self._rooms: set[Uri] = set()
        self._guest: Principal | None = None

    def join(self, principal: Principal, uri: Uri, others: Iterable[Uri]) -> bool:
        """Whether it is such a channel; it is watched from now on, next to these others."""
        is_list = uri == ROOT_CHANNEL and principal.is_limited
        session = session_of(uri)
        if not is_list and (session is None or self._host.channel(principal, session) is None):
            return False
        check_number((*others, *self.uris, uri))
        if is_list:
            self._guest = principal
            self._host.list_watchers.join(principal, self._outbox, self._variant)
        else:
            self._rooms.add(uri)
            self._host.presence.join(uri, principal, self._outbox)
        return True

    @property
    def uris(self) -> set[Uri]:
        """Without those that are gone."""
        self._rooms = {r for r in self._rooms if self._host.presence.is_in(r, self._outbox)}
        return self._rooms if self._guest is None else {ROOT_CHANNEL, *self._rooms}

    def leave(self, uri: Uri) -> None:
        if uri == ROOT_CHANNEL:
            self._leave_list()
        self._rooms.discard(uri)
        self._host.presence.leave(uri, self._outbox)

    def leave_all(self) -> None:
        self._leave_list()
        self._host.presence.leave_all(self._outbox)

    def _leave_list(self) -> None:
        if self._guest is not None:
            self._host.list_watchers.leave(self._guest, self._outbox)
            self._guest = None


class Subscriptions:
    def __init__(self, host: Host, outbox: Outbox) -> None:
        self._host = host
        self._outbox = outbox
        self._channels: dict[Uri, Channel[Any]] = {}
        self._stateless = StatelessChannels(host, outbox)

    def has(self, uri: Uri) -> bool:
        """Whether the actions of this channel come here already."""
        channel = self._channels.get(uri)
        return channel is not None and self._outbox in channel.publisher.subscribers

    def add(self, principal: Principal, uri: Uri) -> Channel[Any] | None:
        """Subscribes; the channel, if there is one that this principal may see."""
        channel = self._host.channel(principal, uri)
        if channel is None:
            return None
        loaded_record(channel)
        check_number((*self._watched(), *self._stateless.uris, uri))
        self._channels[uri] = channel
        channel.publisher.subscribers[self._outbox] = None
        return channel

    def join(self, principal: Principal, uri: Uri) -> bool:
        """Watches a channel without state."""
        return self._stateless.join(principal, uri, self._watched())

    def add_all(self, principal: Principal, uris: Iterable[Uri]) -> dict[Uri, Channel[Any] | None]:
        """Those with a state to show, with their channels; `None` where there is no such one."""
        return {uri: self.add(principal, uri) for uri in uris if not self.join(principal, uri)}

    def remove(self, uri: Uri) -> None:
        self._stateless.leave(uri)
        channel = self._channels.pop(uri, None)
        if channel is not None:
            channel.publisher.subscribers.pop(self._outbox, None)

    def remove_all(self) -> None:
        self._stateless.leave_all()
        for channel in self._channels.values():
            channel.publisher.subscribers.pop(self._outbox, None)
        self._channels.clear()

    def _watched(self) -> Iterable[Uri]:
        """Without sessions that were disposed of."""
        outbox = self._outbox
        self._channels = {
            u: c for u, c in self._channels.items() if outbox in c.publisher.subscribers
        }
        return self._channels


def check_number(uris: Iterable[Uri]) -> None:
    if len(set(uris)) > SUBSCRIPTIONS_PER_CONNECTION:
        reason = f"A connection can watch at most {SUBSCRIPTIONS_PER_CONNECTION} channels."
        raise CommandError(ErrorCode.CONFLICT, reason)
