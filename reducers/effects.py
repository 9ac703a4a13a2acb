"""Work that a record calls for: effects name it, and the host's drivers do it.

Everything an effect needs is in the record, and deriving one twice is harmless. `pending` lists the
work that a record calls for. A batch's effects are what is pending after it and was not before, so
the same work is never started twice, and a restart finds all of it again.
"""

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from session_server.reducers.batches import has_open_work
from session_server.reducers.calls.client_answers import client_deadline
from session_server.reducers.calls.lifecycle import leg_out
from session_server.reducers.deadlines import deadline_of
from session_server.reducers.state.status import listed
from session_server.schemas.ahp.actions import InputAnswerChanged, Truncated, TurnCancelled
from session_server.schemas.ahp.session import Lifecycle, SessionSummary
from session_server.schemas.ahp.turn_messages import HOST_TURN_PREFIX
from session_server.schemas.ahp.turns import ActiveTurn
from session_server.schemas.record import (
    Abandoned,
    Deferred,
    Outcome,
    RecordAction,
    SessionRecord,
    ToSend,
)
from session_server.schemas.wire import Count, Millis, Wire


class EffectBase(Wire, frozen=True, kw_only=True):
    """Equal effects are the same work."""


class SendCall(EffectBase, frozen=True, kw_only=True):
    """Send this leg, once, after its `CallSent` is durable."""

    call_id: str
    leg: Count
    not_before: Millis | None = None


class RecoverCall(EffectBase, frozen=True, kw_only=True):
    """The process died while this leg was out: see `after_crash`."""

    call_id: str
    leg: Count


class StopCall(EffectBase, frozen=True, kw_only=True):
    call_id: str


class RunTurn(EffectBase, frozen=True, kw_only=True):
    """Wake the agent of the session."""

    turn_id: str


class StopTurn(EffectBase, frozen=True, kw_only=True):
    turn_id: str


class CompleteTurn(EffectBase, frozen=True, kw_only=True):
    """Everything that joined the turn has ended, and nothing else keeps it open."""

    turn_id: str


class StartQueuedTurn(EffectBase, frozen=True, kw_only=True):
    message_id: str


class ApplyDeferred(EffectBase, frozen=True, kw_only=True):
    deferred: Deferred


class DeliverOutcome(EffectBase, frozen=True, kw_only=True):
    """Deliver the outcome of a request to its asker, unless that is a call."""

    request_id: str


class ExpireRequest(EffectBase, frozen=True, kw_only=True):
    request_id: str
    at: Millis


class ExpireCall(EffectBase, frozen=True, kw_only=True):
    """End a call whose MCP client has not answered a question that only it can answer."""

    call_id: str
    at: Millis


class PublishSummary(EffectBase, frozen=True, kw_only=True):
    before: SessionSummary
    after: SessionSummary


Effect: TypeAlias = (
    SendCall
    | RecoverCall
    | StopCall
    | RunTurn
    | StopTurn
    | CompleteTurn
    | StartQueuedTurn
    | ApplyDeferred
    | DeliverOutcome
    | ExpireRequest
    | ExpireCall
    | PublishSummary
)


def is_draft(batch: Sequence[object]) -> bool:
    """Whether it only changes an answer, as most of all batches do.

    The first draft of a request is one too: no work follows from it. Those whom the host tells of
    changes (`Host.committed`) treat it like any other change: people have begun to answer.
    """
    return len(batch) == 1 and type(batch[0]) is InputAnswerChanged


def effects_of(
    before: SessionRecord, batch: Sequence[RecordAction], after: SessionRecord
) -> tuple[Effect, ...]:
    """The work that follows from a batch."""
    if after is before:
        return ()
    if is_draft(batch) or after.private.is_recording:
        # The hot path: no work follows from drafts and recordings.
        return tuple(_summary_news(before, after))
    new: tuple[Effect, ...] = ()
    if _causes(before) != _causes(after):
        known = tuple(pending(before))
        new = tuple(effect for effect in pending(after) if effect not in known)
    passing = (e for e in _passing(before, batch, after) if e not in new)
    return (*new, *passing, *_summary_news(before, after))


def _causes(record: SessionRecord) -> tuple[object, ...]:
    """By identity, all that pending work depends on: most actions leave it as it is."""
    state, turn = record.public, record.public.active_turn
    return (
        id(record.private),
        id(state.input_requests),
        id(state.queued_messages),
        state.lifecycle,
        None if turn is None else turn.id,
    )


def effects_after_restart(record: SessionRecord) -> tuple[Effect, ...]:
    """All work that is still to be done, and the legs that were out when the process died."""
    if record.private.is_recording:
        return ()
    legs = ((call.id, leg_out(call)) for call in record.private.calls.values())
    lost = (RecoverCall(call_id=name, leg=leg) for name, leg in legs if leg is not None)
    return (*pending(record), *lost)


def pending(record: SessionRecord) -> Iterator[Effect]:
    """The work that this record calls for, now."""
    for call in record.private.open_calls:
        if isinstance(call.phase, ToSend):
            yield SendCall(call_id=call.id, leg=call.phase.leg, not_before=call.phase.not_before)
    turn = record.public.active_turn
    if turn is None:
        yield from _work_between_turns(record)
    else:
        yield from _turn_work(record, turn)
    yield from expiries(record)


def expiries(record: SessionRecord) -> Iterator[ExpireRequest | ExpireCall]:
    """The deadlines of open requests and calls."""
    for call in record.private.open_calls:
        at = client_deadline(record, call)
        if at is not None:
            yield ExpireCall(call_id=call.id, at=at)
    for request in record.public.input_requests or ():
        at = deadline_of(record, request)
        if at is not None:
            yield ExpireRequest(request_id=request.id, at=at)


def _work_between_turns(record: SessionRecord) -> Iterator[Effect]:
    for deferred in record.private.deferred:
        yield ApplyDeferred(deferred=deferred)
    queue = record.public.queued_messages
    if queue and record.public.lifecycle is Lifecycle.READY:
        yield StartQueuedTurn(message_id=queue[0].id)


def _turn_work(record: SessionRecord, turn: ActiveTurn) -> Iterator[Effect]:
    is_host_turn = turn.id.startswith(HOST_TURN_PREFIX)
    is_held = record.private.held_completion == turn.id
    if not is_host_turn and not is_held and record.public.lifecycle is Lifecycle.READY:
        yield RunTurn(turn_id=turn.id)
    for outcome in record.private.outcomes:
        if outcome.turn_id == turn.id and not _is_of_call(outcome):
            yield DeliverOutcome(request_id=outcome.request.id)
    if (is_host_turn or is_held) and not has_open_work(record):
        yield CompleteTurn(turn_id=turn.id)


def _is_of_call(outcome: Outcome) -> bool:
    return outcome.request.meta is not None and outcome.request.meta.call is not None


def _passing(
    before: SessionRecord, batch: Sequence[RecordAction], after: SessionRecord
) -> Iterator[Effect]:
    """Work that is not derived again after a restart."""
    if after.private.calls is not before.private.calls:
        for call in before.private.open_calls:
            now = after.private.calls.get(call.id)
            if now is None or isinstance(now.phase, Abandoned):
                yield StopCall(call_id=call.id)
    if after.private.outcomes is not before.private.outcomes:
        old = {id(outcome) for outcome in before.private.outcomes}
        for outcome in after.private.outcomes:
            if id(outcome) not in old and not _is_of_call(outcome):
                yield DeliverOutcome(request_id=outcome.request.id)
    turn = before.public.active_turn
    if turn is not None and any(isinstance(action, TurnCancelled | Truncated) for action in batch):
        yield StopTurn(turn_id=turn.id)


def _summary_news(before: SessionRecord, after: SessionRecord) -> Iterator[Effect]:
    summary = listed(after.public)
    if summary != (known := listed(before.public)):
        yield PublishSummary(before=known, after=summary)
