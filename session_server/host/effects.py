"""Running the effects that `reducers.effects` derives from records.

Each kind has one function here or an owner: turns the agents, calls the MCP side, expiries
`deadlines`, summaries `session_list`. Running an effect twice is harmless, because what it writes
is planned on the record as it then is. After a start or for a lost node, see `takeover`.
"""

import logging
from collections.abc import Callable
from typing import Any, Protocol

from session_server.host.channels.changes import Change, ReadChange
from session_server.host.channels.channel import Channel
from session_server.host.deadline_timers import Deadlines
from session_server.host.host import Host
from session_server.host.session_list import SummaryAnnouncements
from session_server.reducers.batches import batch_of
from session_server.reducers.effects import (
    ApplyDeferred,
    CompleteTurn,
    DeliverOutcome,
    Effect,
    ExpireCall,
    ExpireRequest,
    PublishSummary,
    RecoverCall,
    RunTurn,
    SendCall,
    StartQueuedTurn,
    StopCall,
    StopTurn,
    effects_of,
)
from session_server.reducers.state.status import listed
from session_server.reducers.state.turns import active_turn
from session_server.schemas.ahp.actions import (
    PendingKind,
    PendingMessageRemoved,
    TurnComplete,
    TurnStarted,
)
from session_server.schemas.principals import HOST, Stamp
from session_server.schemas.record import SessionRecord

logger = logging.getLogger("session_server.host")

SessionChannel = Channel[SessionRecord]

ON_EVERY_NODE = (
    DeliverOutcome,
    ExpireCall,
    ExpireRequest,
    PublishSummary,
    StopCall,
    StopTurn,
)
"""All other effects are run only by the node that wrote the batch they follow from."""


class TurnRunner(Protocol):
    """Implemented by the agents."""

    def run(self, channel: SessionChannel, turn_id: str, *, resumed: bool) -> None: ...

    def stop(self, channel: SessionChannel, turn_id: str) -> None: ...

    def deliver(self, channel: SessionChannel, request_id: str) -> None: ...


class CallRunner(Protocol):
    """Implemented by the MCP side."""

    def send(self, channel: SessionChannel, effect: SendCall) -> None: ...

    def recover(self, channel: SessionChannel, effect: RecoverCall) -> None: ...

    def stop(self, channel: SessionChannel, effect: StopCall) -> None: ...


class EffectRunner:
    def __init__(self, host: Host, turns: TurnRunner, calls: CallRunner | None = None) -> None:
        self._host = host
        self.turns = turns
        self._summaries = SummaryAnnouncements(host)
        deadlines = Deadlines(host)
        self._work: dict[type, Callable[[SessionChannel, Any], None]] = {
            PublishSummary: lambda _, e: self._summaries.changed(e.before, e.after),
            RunTurn: lambda c, e: self.turns.run(c, e.turn_id, resumed=False),
            StopTurn: lambda c, e: self.turns.stop(c, e.turn_id),
            DeliverOutcome: lambda c, e: self.turns.deliver(c, e.request_id),
            CompleteTurn: self._complete_turn,
            StartQueuedTurn: self._start_queued_turn,
            ApplyDeferred: self._apply_deferred,
            ExpireRequest: deadlines.schedule,
            ExpireCall: deadlines.schedule,
        }
        if calls is not None:
            self._work |= {
                SendCall: calls.send,
                RecoverCall: calls.recover,
                StopCall: calls.stop,
            }
        host.on_committed.append(self.committed)
        host.on_drafted.append(self.drafted)
        host.on_disposed.append(self._summaries.forget)
        host.loaded.on_loaded.append(self._loaded)

    def drafted(self, channel: SessionChannel, change: Change) -> None:
        """A draft only changes the summary; nothing to do if that is about to be sent anyway."""
        if channel.uri not in self._summaries.due:
            self.committed(channel, change)

    def committed(self, channel: SessionChannel, change: Change) -> None:
        is_of_other_node = isinstance(change, ReadChange)
        for effect in effects_of(change.before, change.actions, change.after):  # type: ignore[arg-type]
            if not is_of_other_node or isinstance(effect, ON_EVERY_NODE):
                self.run(channel, effect)

    def _loaded(self, channel: SessionChannel, before: SessionRecord) -> None:
        """Other nodes may have changed the summary while the session was not in memory."""
        record = channel.committed
        if record is not None and listed(record.public) != listed(before.public):
            self._summaries.changed(listed(before.public), listed(record.public))

    def run(self, channel: SessionChannel, effect: Effect) -> None:
        try:
            self._work[type(effect)](channel, effect)
        except Exception:
            logger.exception("an effect failed: %s", type(effect).__name__)

    def _complete_turn(self, channel: SessionChannel, effect: CompleteTurn) -> None:
        action = TurnComplete(turn_id=effect.turn_id)

        def plan(record: SessionRecord, stamp: Stamp) -> Any:
            is_active = active_turn(record.public, effect.turn_id) is not None
            return batch_of(record, action, stamp) if is_active else ()

        self._host.write(channel, plan)

    def _start_queued_turn(self, channel: SessionChannel, effect: StartQueuedTurn) -> None:
        turn_id = f"queued:{self._host.new_id()}"

        def plan(record: SessionRecord, _: Stamp) -> Any:
            queue = record.public.queued_messages or ()
            first = queue[0] if queue else None
            if record.public.active_turn or first is None or first.id != effect.message_id:
                return ()
            return (
                PendingMessageRemoved(kind=PendingKind.QUEUED, id=first.id),
                TurnStarted(turn_id=turn_id, message=first.message, queued_message_id=first.id),
            )

        self._host.write(channel, plan)

    def _apply_deferred(self, channel: SessionChannel, effect: ApplyDeferred) -> None:
        def plan(record: SessionRecord, stamp: Stamp) -> Any:
            is_pending = effect.deferred in record.private.deferred
            return batch_of(record, effect.deferred.change, stamp) if is_pending else ()

        deferred = effect.deferred
        origin_type = type(deferred.change)
        by = deferred.by or HOST
        self._host.write(channel, plan, by, origin=deferred.origin, origin_type=origin_type)
