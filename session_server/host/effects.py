"""Doing what records call for: turns, timers, changes that waited, news.

Effects are derived by the core; here is where each kind of them is carried out. Doing one twice is
harmless, because whatever it writes is planned on the record as it then is.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Protocol

from session_server.host.channel import Channel
from session_server.host.host import Host
from session_server.host.logged import LoggedAction
from session_server.host.summaries import SummaryNews
from session_server.reducers.batches import batch_of
from session_server.reducers.deadlines import expired
from session_server.reducers.effects import effects_after_restart, effects_of
from session_server.reducers.turns import active_turn
from session_server.schemas.actions import (
    InputAnswerChanged,
    PendingKind,
    PendingMessageRemoved,
    TurnComplete,
    TurnStarted,
)
from session_server.schemas.effects import (
    ApplyDeferred,
    CompleteTurn,
    DeliverOutcome,
    Effect,
    ExpireRequest,
    PublishSummary,
    RecoverCall,
    RunTurn,
    SendCall,
    StartQueuedTurn,
    StopCall,
    StopTurn,
)
from session_server.schemas.principals import HOST, Stamp
from session_server.schemas.record import SessionRecord

logger = logging.getLogger("session_server.host")

SessionChannel = Channel[SessionRecord]


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
        self._timers: dict[tuple[str, str], asyncio.TimerHandle] = {}
        self._work: dict[type, Callable[[SessionChannel, Any], None]] = {
            PublishSummary: lambda _, e: self._news.changed(e.before, e.after),
            RunTurn: lambda c, e: self._turns.run(c, e.turn_id, resumed=False),
            StopTurn: lambda c, e: self._turns.stop(c, e.turn_id),
            DeliverOutcome: lambda c, e: self._turns.deliver(c, e.request_id),
            CompleteTurn: self._complete_turn,
            StartQueuedTurn: self._start_queued_turn,
            ApplyDeferred: self._apply_deferred,
            ExpireRequest: self._expire_request,
        }
        if calls is not None:
            self._work |= {
                SendCall: calls.send,
                RecoverCall: calls.recover,
                StopCall: calls.stop,
            }
        host.on_committed.append(self.committed)
        host.on_disposed.append(self._news.forget)

    def committed(
        self,
        channel: SessionChannel,
        before: SessionRecord,
        action: LoggedAction,
        after: SessionRecord,
    ) -> None:
        if type(action) is InputAnswerChanged and self._news.is_due(channel.uri):
            return  # all that follows from a draft is news, and that is about to be told
        for effect in effects_of(before, action, after):  # type: ignore[arg-type]
            self._do(channel, effect)

    def restarted(self) -> None:
        """After a start: everything that is still to be done."""
        for channel in tuple(self._host.sessions.values()):
            for effect in effects_after_restart(channel.committed) if channel.committed else ():
                if isinstance(effect, RunTurn):
                    self._turns.run(channel, effect.turn_id, resumed=True)
                else:
                    self._do(channel, effect)

    def _do(self, channel: SessionChannel, effect: Effect) -> None:
        work = self._work.get(type(effect))
        if work is None:
            return
        try:
            work(channel, effect)
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

    def _expire_request(self, channel: SessionChannel, effect: ExpireRequest) -> None:
        key = (channel.uri, effect.request_id)
        known = self._timers.pop(key, None)
        if known is not None:
            known.cancel()
        delay = max(0, effect.at - self._host.now()) / 1000

        def fire() -> None:
            self._timers.pop(key, None)
            if self._host.now() < effect.at:  # the loop's clock is another one than ours
                self._expire_request(channel, effect)
                return
            self._host.write(
                channel, lambda record, stamp: expired(record, effect.request_id, stamp.at)
            )

        self._timers[key] = asyncio.get_running_loop().call_later(delay, fire)
