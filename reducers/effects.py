"""What is to be done next, derived from the record and nothing else.

`pending` lists the work that a record calls for. An action's effects are what is pending after it
and was not before, so the same work is never started twice, and a restart finds all of it again.
"""

from collections.abc import Iterator

from session_server.reducers.batches import has_joined
from session_server.reducers.calls.client_answers import client_deadline
from session_server.reducers.deadlines import deadline_of
from session_server.reducers.state.status import listed
from session_server.schemas.ahp.actions import InputAnswerChanged, Truncated, TurnCancelled
from session_server.schemas.ahp.messages import HOST_TURN_PREFIX
from session_server.schemas.ahp.session import Lifecycle
from session_server.schemas.ahp.turns import ActiveTurn
from session_server.schemas.effects import (
    AnswerHeldCall,
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
    SendNotice,
    StartQueuedTurn,
    StopCall,
    StopTurn,
)
from session_server.schemas.record import (
    Abandoned,
    Call,
    Outcome,
    RecordAction,
    Sent,
    SessionRecord,
    ToSend,
    Waiting,
)


def effects_of(
    before: SessionRecord, action: RecordAction, after: SessionRecord
) -> tuple[Effect, ...]:
    """The work that an action brought. `before` and `after` stand around its whole batch."""
    if after is before:
        return ()
    if isinstance(action, InputAnswerChanged) or after.private.is_recording:
        # The hot path: a draft is news, never work. And so is what was recorded elsewhere.
        return tuple(_summary_news(before, after))
    new: tuple[Effect, ...] = ()
    if _causes(before) != _causes(after):
        known = tuple(pending(before))
        new = tuple(effect for effect in pending(after) if effect not in known)
    passing = (e for e in _passing(before, action, after) if e not in new)
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
    gone = AnswerHeldCall  # the connection that it was for
    return (*(e for e in pending(record) if not isinstance(e, gone)), *_recoveries(record))


def pending(record: SessionRecord) -> Iterator[Effect]:
    """The work that this record calls for, now."""
    for call in record.private.calls.values():
        yield from _call_work(call)
    turn = record.public.active_turn
    if turn is None:
        yield from _work_between_turns(record)
    else:
        yield from _turn_work(record, turn)
    yield from expiries(record)


def expiries(record: SessionRecord) -> Iterator[ExpireRequest | ExpireCall]:
    """When each open request or call ends by itself, of those that do."""
    for call in record.private.calls.values():
        at = client_deadline(record, call)
        if at is not None:
            yield ExpireCall(call_id=call.id, at=at)
    for request in record.public.input_requests or ():
        at = deadline_of(record, request)
        if at is not None:
            yield ExpireRequest(request_id=request.id, at=at)


def _call_work(call: Call) -> Iterator[Effect]:
    match call.phase:
        case ToSend(leg=leg, not_before=not_before):
            yield SendCall(call_id=call.id, leg=leg, not_before=not_before)
        case Sent(held=True):
            yield AnswerHeldCall(call_id=call.id, round=call.round)
        case _:
            pass


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
    if (is_host_turn or is_held) and not has_joined(record):
        yield CompleteTurn(turn_id=turn.id)


def _is_of_call(outcome: Outcome) -> bool:
    return outcome.request.meta is not None and outcome.request.meta.call is not None


def _recoveries(record: SessionRecord) -> Iterator[Effect]:
    for call in record.private.calls.values():
        match call.phase:
            case Sent(leg=leg) | Waiting(leg=leg, held=True):
                yield RecoverCall(call_id=call.id, leg=leg)
            case _:
                pass


def _passing(before: SessionRecord, action: RecordAction, after: SessionRecord) -> Iterator[Effect]:
    """Work that belongs to the moment: a restart has no use for it."""
    known = {request.id for request in before.public.input_requests or ()}
    for request in after.public.input_requests or ():
        if request.id not in known:
            yield SendNotice(request_id=request.id)
    for call_id, call in before.private.calls.items():
        now = after.private.calls.get(call_id)
        if call.is_open and (now is None or isinstance(now.phase, Abandoned)):
            yield StopCall(call_id=call_id)
    if after.private.outcomes is not before.private.outcomes:
        old = {id(outcome) for outcome in before.private.outcomes}
        for outcome in after.private.outcomes:
            if id(outcome) not in old and not _is_of_call(outcome):
                yield DeliverOutcome(request_id=outcome.request.id)
    turn = before.public.active_turn
    if turn is not None and isinstance(action, TurnCancelled | Truncated):
        yield StopTurn(turn_id=turn.id)


def _summary_news(before: SessionRecord, after: SessionRecord) -> Iterator[Effect]:
    summary = listed(after.public)
    if summary != (known := listed(before.public)):
        yield PublishSummary(before=known, after=summary)
