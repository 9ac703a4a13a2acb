"""Deferred actions; a sender gets a rejection if its action can no longer happen.

An agent's `turnComplete` waits for the calls and questions in the turn, a change of model or agent
for the end of the turn. When it happens, its envelope carries its origin or ends the turn. If it
cannot happen any more, its sender gets a rejection: otherwise it would wait forever.
"""

from typing import NamedTuple

from session_server.host.channels.changes import Change
from session_server.host.channels.channel import Channel
from session_server.schemas.ahp.actions import TurnComplete
from session_server.schemas.errors import Refusal, RefusalCode
from session_server.schemas.limits import COMPLETIONS_HELD
from session_server.schemas.record import ChangeDeferred, CompletionHeld, Deferred, SessionRecord
from session_server.schemas.wire import Uri

OVERTAKEN = Refusal(
    code=RefusalCode.NO_TURN,
    message="The turn ended in another way while calls or questions in it were still open.",
)
SUPERSEDED = Refusal(
    code=RefusalCode.SUPERSEDED,
    message="This change waited for the end of the turn, and a later one replaced it.",
)

REPEATED = Refusal(
    code=RefusalCode.LIMIT,
    message="The turn was completed too many times; only the latest completions still wait.",
)


class HeldChange(NamedTuple):
    deferred: Deferred
    sender: Change


class DeferredActions:
    """Remembers senders only until a restart: a client that reconnects sends its action again."""

    def __init__(self) -> None:
        self._completions: dict[Uri, list[Change]] = {}
        self._changes: dict[Uri, list[HeldChange]] = {}

    def committed(self, channel: Channel[SessionRecord], change: Change) -> None:
        uri, before, after = channel.uri, change.before.private, change.after.private
        if any(type(action) is CompletionHeld for action in change.actions):
            self._hold_completion(uri, change)
        elif before.held_completion is not None and after.held_completion is None:
            waiting = self._completions.pop(uri, [])
            if not any(type(action) is TurnComplete for action in change.actions):
                for sender in waiting:
                    sender.refused(OVERTAKEN)
        if before.deferred is not after.deferred:
            self._deferred(uri, change, after.deferred)

    def _hold_completion(self, uri: Uri, change: Change) -> None:
        """Its sender waits for the end of the turn."""
        waiting = self._completions.setdefault(uri, [])
        waiting.append(change)
        if len(waiting) > COMPLETIONS_HELD:
            waiting.pop(0).refused(REPEATED)

    def _deferred(self, uri: Uri, change: Change, waiting: tuple[Deferred, ...]) -> None:
        held = self._changes.pop(uri, [])
        for action in change.actions:
            if isinstance(action, ChangeDeferred) and action.deferred.origin is not None:
                held.append(HeldChange(action.deferred, change))
        still = [one for one in held if one.deferred in waiting]
        if still:
            self._changes[uri] = still
        made = [(type(logged.action), logged.origin) for logged in change.logged]
        for one in held:
            deferred = one.deferred
            if deferred not in waiting and (type(deferred.change), deferred.origin) not in made:
                one.sender.refused(SUPERSEDED)

    def disposed(self, uri: Uri) -> None:
        self._completions.pop(uri, None)
        self._changes.pop(uri, None)
