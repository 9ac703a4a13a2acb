"""Actions that were put off, and may never happen: their senders are told so then.

An agent's `turnComplete` waits for the calls and questions in the turn, a change of model or agent
for the end of the turn. When it happens, its envelope carries its origin or ends the turn. If it
cannot happen any more, its sender gets a rejection: otherwise it would wait for a verdict for ever.
"""

from collections.abc import Callable
from typing import NamedTuple

from session_server.host.channel import Channel
from session_server.host.channel_kinds import LoggedAction
from session_server.schemas.ahp.actions import TurnComplete
from session_server.schemas.ahp.envelopes import ActionOrigin
from session_server.schemas.errors import Refusal, RefusalCode
from session_server.schemas.limits import COMPLETIONS_HELD
from session_server.schemas.record import CompletionHeld, Deferred, SessionRecord
from session_server.schemas.wire import Uri

OVERTAKEN = Refusal(
    code=RefusalCode.NO_TURN,
    message="The turn ended in another way before the calls and questions in it had.",
)
SUPERSEDED = Refusal(
    code=RefusalCode.SUPERSEDED,
    message="This was to happen after the turn, and a later change took its place.",
)

REPEATED = Refusal(
    code=RefusalCode.LIMIT,
    message="The turn was completed again and again since; the latest of these still wait.",
)

Tell = Callable[[Refusal], None]


class HeldChange(NamedTuple):
    deferred: Deferred
    refused: Tell


class HeldActions:
    """Only senders that are connected are remembered: one that comes back says it again."""

    def __init__(self) -> None:
        self._completions: dict[Uri, list[Tell]] = {}
        self._changes: dict[Uri, list[HeldChange]] = {}

    def completion_durable(self, uri: Uri, done: Callable[[], None], refused: Tell) -> None:
        """If it was put off, its sender waits for the end of the turn."""
        done()
        if uri in self._completions:
            waiting = self._completions[uri]
            waiting.append(refused)
            if len(waiting) > COMPLETIONS_HELD:
                waiting.pop(0)(REPEATED)

    def change_durable(
        self,
        channel: Channel[SessionRecord],
        origin: ActionOrigin | None,
        done: Callable[[], None],
        refused: Tell,
    ) -> None:
        """The same for a change of model or agent."""
        done()
        record = channel.committed
        for deferred in () if record is None or origin is None else record.private.deferred:
            if deferred.origin == origin:
                self._changes.setdefault(channel.uri, []).append(HeldChange(deferred, refused))

    def committed(
        self,
        channel: Channel[SessionRecord],
        before: SessionRecord,
        action: LoggedAction,
        after: SessionRecord,
    ) -> None:
        if type(action) is CompletionHeld:
            self._completions.setdefault(channel.uri, [])
        elif before.private.held_completion is not None and after.private.held_completion is None:
            waiting = self._completions.pop(channel.uri, [])
            if type(action) is not TurnComplete:
                for tell in waiting:
                    tell(OVERTAKEN)
        if before.private.deferred is not after.private.deferred and channel.uri in self._changes:
            self._changed(channel.uri, action, after.private.deferred)

    def _changed(self, uri: Uri, action: LoggedAction, waiting: tuple[Deferred, ...]) -> None:
        still = [held for held in self._changes[uri] if held.deferred in waiting]
        gone = [held for held in self._changes.pop(uri) if held.deferred not in waiting]
        if still:
            self._changes[uri] = still
        for held in gone:
            if held.deferred.change is not action:
                held.refused(SUPERSEDED)

    def disposed(self, uri: Uri) -> None:
        self._completions.pop(uri, None)
        self._changes.pop(uri, None)
