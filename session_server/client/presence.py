"""Who else is in a session right now, and at which question. An extension of our own hosts to AHP.

Nothing of it is kept: on every new connection a client joins again.
"""

from collections.abc import Callable

from session_server.client.exchange import Answer, Exchange
from session_server.schemas.commands import Params
from session_server.schemas.frames import Subscribe
from session_server.schemas.presence import (
    ROOM_PREFIX,
    SESSION_PREFIX,
    EditingPlace,
    PresenceChangedParams,
    PresenceUpdateParams,
    Present,
)
from session_server.schemas.wire import Uri


class Presence:
    """One session's presence channel, while we are in it."""

    def __init__(self, session: Uri, exchange: Exchange) -> None:
        self.room: Uri = f"{ROOM_PREFIX}{session.removeprefix(SESSION_PREFIX)}"
        self.present: tuple[Present, ...] = ()
        self.on_change: Callable[[], None] = lambda: None
        self._exchange = exchange
        self._is_live = False

    def live(self) -> None:
        """There is a new connection, and it knows nothing of us."""
        self._is_live = True
        self._exchange.ask(Subscribe, Params(channel=self.room), _ignore)

    def lost(self) -> None:
        self._is_live = False
        self._hear(())

    def leave(self) -> None:
        if self._is_live:
            self._exchange.unsubscribe(self.room)
        self.lost()

    def edits(self, place: EditingPlace | None) -> None:
        """Where we write. The host forgets it after some seconds, and so does a lost connection."""
        if self._is_live:
            self._exchange.report(PresenceUpdateParams(channel=self.room, editing=place))

    def changed(self, params: PresenceChangedParams) -> None:
        self._hear(params.present)

    def _hear(self, present: tuple[Present, ...]) -> None:
        if present != self.present:
            self.present = present
            self.on_change()


def _ignore(_: Answer) -> None:
    """A host without presence refuses it, and nothing is shown."""
