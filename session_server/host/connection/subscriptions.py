"""What one connection watches: channels, and the presence of sessions."""

from collections.abc import Iterable
from typing import Any

from session_server.host.channel import Channel
from session_server.host.delivery import Outbox
from session_server.host.errors import CommandError
from session_server.host.host import Host
from session_server.host.presence import session_of
from session_server.schemas.ahp.commands import ROOT_CHANNEL
from session_server.schemas.errors import ErrorCode
from session_server.schemas.limits import SUBSCRIPTIONS_PER_CONNECTION
from session_server.schemas.principals import Principal
from session_server.schemas.wire import Uri


class Subscriptions:
    def __init__(self, host: Host, outbox: Outbox) -> None:
        self._host = host
        self._outbox = outbox
        self._channels: dict[Uri, Channel[Any]] = {}
        self._rooms: set[Uri] = set()
        self._guest: Principal | None = None

    def has(self, uri: Uri) -> bool:
        """Whether the actions of this channel come here already."""
        channel = self._channels.get(uri)
        return channel is not None and self._outbox in channel.subscribers

    def add(self, principal: Principal, uri: Uri) -> Channel[Any] | None:
        """The channel, if there is one that this principal may look at."""
        channel = self._host.channel(principal, uri)
        if channel is None:
            return None
        self._check_room_for(uri)
        self._channels[uri] = channel
        channel.subscribers[self._outbox] = None
        return channel

    def join(self, principal: Principal, uri: Uri) -> bool:
        """Watches a channel without state, so there is nothing to show and nothing to replay:
        presence, and the list of sessions for a principal that is limited to some.
        """
        if uri == ROOT_CHANNEL and principal.is_limited:
            self._check_room_for(uri)
            self._guest = principal
            self._host.join_list(principal, self._outbox)
            return True
        session = session_of(uri)
        if session is None or self._host.channel(principal, session) is None:
            return False
        self._check_room_for(uri)
        self._rooms.add(uri)
        self._host.presence.join(uri, principal, self._outbox)
        return True

    def add_all(self, principal: Principal, uris: Iterable[Uri]) -> dict[Uri, Channel[Any] | None]:
        """Those with a state to show, with their channels; `None` where there is no such one."""
        return {uri: self.add(principal, uri) for uri in uris if not self.join(principal, uri)}

    def remove(self, uri: Uri) -> None:
        if uri == ROOT_CHANNEL:
            self._leave_list()
        self._rooms.discard(uri)
        self._host.presence.leave(uri, self._outbox)
        channel = self._channels.pop(uri, None)
        if channel is not None:
            channel.subscribers.pop(self._outbox, None)

    def remove_all(self) -> None:
        self._leave_list()
        self._host.presence.leave_all(self._outbox)
        for channel in self._channels.values():
            channel.subscribers.pop(self._outbox, None)
        self._channels.clear()

    def _leave_list(self) -> None:
        if self._guest is not None:
            self._host.leave_list(self._guest, self._outbox)
            self._guest = None

    def _check_room_for(self, uri: Uri) -> None:
        """What was disposed of takes no place any more."""
        outbox, presence = self._outbox, self._host.presence
        self._channels = {u: c for u, c in self._channels.items() if outbox in c.subscribers}
        self._rooms = {room for room in self._rooms if presence.is_in(room, outbox)}
        root = () if self._guest is None else (ROOT_CHANNEL,)
        check_number((*root, *self._channels, *self._rooms, uri))


def check_number(uris: Iterable[Uri]) -> None:
    if len(set(uris)) > SUBSCRIPTIONS_PER_CONNECTION:
        words = f"A connection can watch at most {SUBSCRIPTIONS_PER_CONNECTION} channels."
        raise CommandError(ErrorCode.CONFLICT, words)
