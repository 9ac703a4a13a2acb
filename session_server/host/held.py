"""Completions of turns that wait for the calls and questions in them, and may wait in vain.

An agent's `turnComplete` is put off until what joined the turn has ended. If the turn ends in
another way before that, whoever said it is told: otherwise it would wait for a verdict for ever.
"""

from collections.abc import Callable

from session_server.host.channel import Channel
from session_server.host.logged import LoggedAction
from session_server.schemas.actions import TurnComplete
from session_server.schemas.record import CompletionHeld, SessionRecord
from session_server.schemas.refusals import Refusal, RefusalCode
from session_server.schemas.wire import Uri

OVERTAKEN = Refusal(
    code=RefusalCode.NO_TURN,
    message="The turn ended in another way before the calls and questions in it had.",
)

Tell = Callable[[Refusal], None]


class HeldCompletions:
    def __init__(self) -> None:
        self._held: dict[Uri, list[Tell]] = {}

    def watched(self, uri: Uri, done: Callable[[], None], refused: Tell) -> None:
        """A completion is durable. If it was put off, its sender waits for the end of the turn."""
        done()
        if uri in self._held:
            self._held[uri].append(refused)

    def committed(
        self,
        channel: Channel[SessionRecord],
        before: SessionRecord,
        action: LoggedAction,
        after: SessionRecord,
    ) -> None:
        if type(action) is CompletionHeld:
            self._held.setdefault(channel.uri, [])
        elif before.private.held_completion is not None and after.private.held_completion is None:
            waiting = self._held.pop(channel.uri, [])
            if type(action) is not TurnComplete:
                for tell in waiting:
                    tell(OVERTAKEN)

    def disposed(self, uri: Uri) -> None:
        self._held.pop(uri, None)
