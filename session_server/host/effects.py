"""Doing what records call for: turns, timers, changes that waited, news.

Effects are derived by `reducers.effects`; here is where each kind of them is carried out. Doing one
twice is harmless, because whatever it writes is planned on the record as it then is.
"""

import logging
from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any, Protocol

from session_server.host.changes import Change, PlannedChange, ReadChange
from session_server.host.channel import Channel
from session_server.host.host import Host
from session_server.host.session_list import SummaryNews
from session_server.host.timers import Timer
from session_server.reducers.batches import batch_of
from session_server.reducers.calls.client_answers import client_expired
from session_server.reducers.deadlines import expired
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
    effects_after_restart,
    effects_of,
    expiries,
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
from session_server.schemas.wire import Millis, Uri

logger = logging.getLogger("session_server.host")

SessionChannel = Channel[SessionRecord]
Expiry = ExpireRequest | ExpireCall

ON_EVERY_NODE = (
    DeliverOutcome,
    ExpireCall,
    ExpireRequest,
    PublishSummary,
    StopCall,
    StopTurn,
)
"""The rest is done by the node that wrote what led to it."""

AGAIN_MS = 1_000
"""After a deadline could not be written."""


class TurnRunner(Protocol):
    """Who runs turns: the agents."""

    def run(self, channel: SessionChannel, turn_id: str, *, resumed: bool) -> None: ...

    def stop(self, channel: SessionChannel, turn_id: str) -> None: ...

    def deliver(self, channel: SessionChannel, request_id: str) -> None: ...


class CallRunner(Protocol):
    """Who drives calls: the MCP side."""

    def send(self, channel: SessionChannel, effect: SendCall) -> None: ...

    def recover(self, channel: SessionChannel, effect: RecoverCall) -> None: ...

    def stop(self, channel: SessionChannel, effect: StopCall) -> None: ...


class EffectRunner:
    def __init__(self, host: Host, turns: TurnRunner, calls: CallRunner | None = None) -> None:
        self._host = host
        self._turns = turns
        self._news = SummaryNews(host)
        self._timers: dict[Uri, Timer] = {}
        self._work: dict[type, Callable[[SessionChannel, Any], None]] = {
            PublishSummary: lambda _, e: self._news.changed(e.before, e.after),
            RunTurn: lambda c, e: self._turns.run(c, e.turn_id, resumed=False),
            StopTurn: lambda c, e: self._turns.stop(c, e.turn_id),
            DeliverOutcome: lambda c, e: self._turns.deliver(c, e.request_id),
            CompleteTurn: self._complete_turn,
            StartQueuedTurn: self._start_queued_turn,
            ApplyDeferred: self._apply_deferred,
            ExpireRequest: self._expire_later,
            ExpireCall: self._expire_later,
        }
        if calls is not None:
            self._work |= {
                SendCall: calls.send,
                RecoverCall: calls.recover,
                StopCall: calls.stop,
            }
        host.on_committed.append(self.committed)
        host.on_drafted.append(self.drafted)
        host.on_disposed += (self._news.forget, self._stop_timer)
        host.on_overdue.append(self._overdue)
        host.loaded.on_loaded.append(self._loaded)

    def drafted(self, channel: SessionChannel, change: Change) -> None:
        """All that follows from a draft is news; nothing, while that is about to be sent anyway."""
        if not self._news.is_due(channel.uri):
            self.committed(channel, change)

    def committed(self, channel: SessionChannel, change: Change) -> None:
        is_elsewhere = isinstance(change, ReadChange)
        for effect in effects_of(change.before, change.actions, change.after):  # type: ignore[arg-type]
            if not is_elsewhere or isinstance(effect, ON_EVERY_NODE):
                self._do(channel, effect)

    def restarted(self) -> None:
        """After a start: everything that is still to be done, and no other node is at."""
        self._resume(is_start=True)
        if self._host.nodes is not None:
            self._host.nodes.on_lost.append(self._node_lost)

    def _node_lost(self) -> None:
        self._host.spawn(self._take_over())

    async def _take_over(self) -> None:
        """Of a node that is gone, once all that it wrote is known."""
        await self._host.caught_up()
        self._resume(is_start=False)

    def _loaded(self, channel: SessionChannel, before: SessionRecord) -> None:
        """What leaves memory has nothing to do; but other nodes may have written to it since."""
        self._resume_in(channel, is_start=False)
        record = channel.committed
        if record is not None and listed(record.public) != listed(before.public):
            self._news.changed(listed(before.public), listed(record.public))

    def _resume(self, *, is_start: bool) -> None:
        for channel in tuple(self._host.sessions.values()):
            self._resume_in(channel, is_start=is_start)

    def _resume_in(self, channel: SessionChannel, *, is_start: bool) -> None:
        record = channel.committed
        for effect in effects_after_restart(record) if record is not None else ():
            if record is None or not self._is_free(record, effect):
                continue
            if isinstance(effect, RunTurn):
                owner = record.private.turn_owner
                was_begun = owner is not None and owner.turn_id == effect.turn_id
                self._turns.run(channel, effect.turn_id, resumed=is_start or was_begun)
            else:
                self._do(channel, effect)

    def _is_free(self, record: SessionRecord, effect: Effect) -> bool:
        """Whether no living node is at it; of the rest, doing it twice is harmless."""
        nodes = self._host.nodes
        if nodes is None:
            return True
        if isinstance(effect, RecoverCall):
            return not nodes.is_alive(record.private.calls[effect.call_id].node)
        if isinstance(effect, RunTurn):
            owner = record.private.turn_owner
            if owner is None or owner.turn_id != effect.turn_id:
                return nodes.is_settled
            return not nodes.is_alive(owner.node)
        return True

    def _do(self, channel: SessionChannel, effect: Effect) -> None:
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
            due = effect.deferred in record.private.deferred
            return batch_of(record, effect.deferred.change, stamp) if due else ()

        deferred = effect.deferred
        own = type(deferred.change)
        by = deferred.by or HOST
        self._host.write(channel, plan, by, origin=deferred.origin, own=own)

    # Deadlines

    def _expire_later(self, channel: SessionChannel, effect: Expiry) -> None:
        """Each channel has one timer, for the earliest; what is due is read from its record."""
        if effect.at < channel.due_at:
            channel.due_at = effect.at
            self._set_timer(channel, effect.at)

    def _set_timer(self, channel: SessionChannel, when: Millis) -> None:
        self._stop_timer(channel.uri)
        overdue = partial(self._overdue, channel)
        self._timers[channel.uri] = self._host.timers.at(when, overdue)

    def _stop_timer(self, uri: Uri) -> None:
        timer = self._timers.pop(uri, None)
        if timer is not None:
            timer.cancel()

    def _overdue(self, channel: SessionChannel) -> None:
        """Ends what is due by the wall clock, whoever notices first: a timer or a late answer."""
        self._stop_timer(channel.uri)
        channel.due_at = inf
        now = self._host.now()
        for effect in () if channel.head is None else tuple(expiries(channel.head)):
            if effect.at > now:
                self._expire_later(channel, effect)
            else:
                self._expire(channel, effect)

    def _expire(self, channel: SessionChannel, effect: Expiry) -> None:
        def again(_: str) -> None:
            """Until it is written nothing may overtake it."""
            if not channel.is_closed:
                channel.due_at = min(channel.due_at, effect.at)
                self._set_timer(channel, self._host.now() + AGAIN_MS)

        def plan(record: SessionRecord, stamp: Stamp) -> Any:
            if isinstance(effect, ExpireCall):
                return client_expired(record, effect.call_id, stamp)
            return expired(record, effect.request_id, stamp.at)

        channel.submit(PlannedChange(plan, failed=again, is_exempt=True))
