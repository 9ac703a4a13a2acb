"""Who is looking at a session right now, and where they type. Never logged, never in state.

With several nodes, each publishes to the others who is connected to it.
"""

from typing import Any

import msgspec

from session_server.host.channels.messages import Message, Outbox
from session_server.host.nodes import Nodes
from session_server.host.timers import CLOCK, Clock, Handle
from session_server.schemas.ahp.commands import (
    ROOM_PREFIX,
    SESSION_PREFIX,
    PresenceChangedParams,
    PresenceUpdateParams,
    Present,
)
from session_server.schemas.ahp.frames import PresenceChanged
from session_server.schemas.codec import encode
from session_server.schemas.limits import (
    EDITING_SECONDS,
    PRESENCE_BYTES_PER_SECOND,
    PRESENCE_NEWS_PER_SECOND,
)
from session_server.schemas.principals import Principal
from session_server.schemas.wire import Uri

ROOM = "room"
ROOM_BYTES = 6_000
"""The people in a session are published to other nodes up to this size."""

ANNOUNCE_SECONDS = 1 / PRESENCE_NEWS_PER_SECOND
"""Changes in one room are collected for this long, so that typing does not flood it."""


def session_of(room: Uri) -> Uri | None:
    """The session whose presence channel this is."""
    if not room.startswith(ROOM_PREFIX):
        return None
    return f"{SESSION_PREFIX}{room.removeprefix(ROOM_PREFIX)}"


class Presence:
    def __init__(self, clock: Clock = CLOCK, nodes: Nodes | None = None) -> None:
        self._clock = clock
        self._nodes = nodes
        if nodes is not None:
            nodes.listen(ROOM, self._changed_elsewhere)
        self._rooms: dict[Uri, dict[Outbox, Present]] = {}
        self._due: set[Uri] = set()
        self._pauses: dict[Uri, float] = {}
        """Seconds between news of a room, where so many are present that it needs longer ones."""
        self._expiries: dict[tuple[Uri, Outbox], Handle] = {}

    def join(self, room: Uri, principal: Principal, outbox: Outbox) -> None:
        assert principal.client_id is not None
        present = Present(client_id=principal.client_id, by=principal.author, role=principal.role)
        self._rooms.setdefault(room, {})[outbox] = present
        self._announce_soon(room)

    def update(self, params: PresenceUpdateParams, principal: Principal, outbox: Outbox) -> None:
        present = self._rooms.get(params.channel, {}).get(outbox)
        if present is None:
            return
        self._stop_expiry(params.channel, outbox)
        if params.editing is not None:
            # A page that was suspended does not report that its person has stopped typing.
            self._expiries[params.channel, outbox] = self._clock.call_later(
                EDITING_SECONDS, self._expire_editing, params.channel, outbox
            )
        now = msgspec.structs.replace(
            present, by=principal.author, editing=params.editing, idle=params.idle
        )
        if now != present:
            self._rooms[params.channel][outbox] = now
            self._announce_soon(params.channel)

    def _expire_editing(self, room: Uri, outbox: Outbox) -> None:
        del self._expiries[room, outbox]
        present = self._rooms.get(room, {}).get(outbox)
        if present is not None:
            self._rooms[room][outbox] = msgspec.structs.replace(present, editing=None)
            self._announce_soon(room)

    def _stop_expiry(self, room: Uri, outbox: Outbox) -> None:
        expiry = self._expiries.pop((room, outbox), None)
        if expiry is not None:
            expiry.cancel()

    def leave(self, room: Uri, outbox: Outbox) -> None:
        self._stop_expiry(room, outbox)
        people = self._rooms.get(room, {})
        if people.pop(outbox, None) is None:
            return
        if people:
            self._announce_soon(room)
        else:
            del self._rooms[room]
            self._pauses.pop(room, None)
            self._publish_to_nodes(room, {})

    def is_in(self, room: Uri, outbox: Outbox) -> bool:
        return outbox in self._rooms.get(room, {})

    def disposed(self, session: Uri) -> None:
        room = f"{ROOM_PREFIX}{session.removeprefix(SESSION_PREFIX)}"
        self._rooms.pop(room, None)
        self._publish_to_nodes(room, {})

    def leave_all(self, outbox: Outbox) -> None:
        for room in [room for room, people in self._rooms.items() if outbox in people]:
            self.leave(room, outbox)

    def _changed_elsewhere(self, room: Uri) -> None:
        if room in self._rooms:
            self._announce_soon(room)

    def _publish_to_nodes(self, room: Uri, people: dict[Outbox, Present]) -> None:
        if self._nodes is None:
            return
        published: list[Any] = []
        size = 0
        for present in people.values():
            size += len(encode(present)) + 1
            if size > ROOM_BYTES:
                break
            published.append(msgspec.to_builtins(present))
        self._nodes.publish(ROOM, room, published or None)

    def _elsewhere(self, room: Uri) -> tuple[Present, ...]:
        if self._nodes is None:
            return ()
        published = self._nodes.elsewhere(ROOM, room)
        return tuple(present for people in published for present in _decoded(people))

    def _announce_soon(self, room: Uri) -> None:
        if room not in self._due:
            self._due.add(room)
            pause = self._pauses.get(room, ANNOUNCE_SECONDS)
            self._clock.call_later(pause, self._announce, room)

    def _announce(self, room: Uri) -> None:
        self._due.discard(room)
        people = self._rooms.get(room, {})
        self._publish_to_nodes(room, people)
        present = (*people.values(), *self._elsewhere(room))
        params = PresenceChangedParams(channel=room, present=present)
        message = Message.of(PresenceChanged(params=params))
        pause = len(message.text) * len(people) / PRESENCE_BYTES_PER_SECOND
        if pause > ANNOUNCE_SECONDS:
            self._pauses[room] = pause
        else:
            self._pauses.pop(room, None)
        for outbox in tuple(people):
            outbox.send(message)


def _decoded(people: Any) -> tuple[Present, ...]:
    """Items of another node; one of another release may publish an unknown shape."""
    try:
        return msgspec.convert(people, tuple[Present, ...])
    except msgspec.ValidationError:
        return ()
