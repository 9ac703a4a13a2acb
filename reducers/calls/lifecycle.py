"""The phases of a call, and the transitions between them.

    ToSend ─sent→ Sent ─input required→ Waiting ─last response→ ToSend …
                   │└─doubted→ Uncertain ─accepted→ ToSend, from the start
          ←unsent─ └─finished / failed

A transition applies only in the phase and leg that it follows from and otherwise changes nothing,
so exactly one process sends a leg, in any order of events.
"""

from operator import attrgetter

import msgspec

from session_server.reducers.calls.redaction import unmasked_answers
from session_server.reducers.forms.mcp_forms import content_of, questions_of
from session_server.reducers.state.frozen_values import encoded_size, updated
from session_server.schemas.ahp.questions import ResponseKind
from session_server.schemas.limits import (
    BACK_OFF_FIRST_MS,
    BACK_OFF_LIMIT_MS,
    FINISHED_CALL_BYTES_KEPT,
    FINISHED_CALLS_KEPT,
    RESTARTS_PER_CALL,
)
from session_server.schemas.mcp import ElicitResult, Unshowable
from session_server.schemas.principals import Provenance
from session_server.schemas.record import (
    NOT_REPEATED,
    OPEN_PHASES,
    Abandoned,
    Asked,
    Call,
    CallAbandoned,
    CallAnswered,
    CallCollected,
    CallDoubted,
    CallFailed,
    CallFinished,
    CallInputRequired,
    CallRestarted,
    CallSent,
    CallStarted,
    CallUnsent,
    Failed,
    Finished,
    Outcome,
    Phase,
    PrivateState,
    Remembered,
    Sent,
    ToSend,
    Uncertain,
    Waiting,
)


def call_started(private: PrivateState, action: CallStarted, at: int) -> PrivateState:
    if action.call.id in private.calls:
        return private
    return msgspec.structs.replace(private, calls={**private.calls, action.call.id: action.call})


def call_sent(private: PrivateState, action: CallSent, at: int) -> PrivateState:
    call = private.calls.get(action.call_id)
    if call is None or not isinstance(call.phase, ToSend) or call.phase.leg != action.leg:
        return private
    repeatable = call.repeatable if action.repeatable is None else action.repeatable
    sent = updated(call, phase=Sent(leg=action.leg), repeatable=repeatable, node=action.node)
    return _with_call(private, sent)


def call_unsent(private: PrivateState, action: CallUnsent, at: int) -> PrivateState:
    call = private.calls.get(action.call_id)
    if call is None or not (_is_sent(call, action.leg) or _leg_to_send(call) == action.leg):
        return private
    tries = call.unreached + 1
    return _with_call(
        private,
        updated(
            call,
            phase=ToSend(leg=action.leg + 1, not_before=at + back_off(tries)),
            unreached=tries,
            unreached_since=at if call.unreached_since is None else call.unreached_since,
        ),
    )


def call_input_required(private: PrivateState, action: CallInputRequired, at: int) -> PrivateState:
    call = private.calls.get(action.call_id)
    if call is None or not _is_sent(call, action.leg) or call.rounds_of_run >= call.max_rounds:
        return private
    asked_again = updated(
        call,
        round=call.round + 1,
        request_state=action.request_state,
        asked=action.asked,
        asked_at=at,
        unreached=0,
        unreached_since=None,
    )
    phase: Phase = Waiting(leg=action.leg, held=action.held)
    if all(asked.is_answered for asked in action.asked):  # or the server wants a later retry
        phase = _all_answered(asked_again, action.leg, held=action.held, at=at)
    return _with_call(private, updated(asked_again, phase=phase))


def outcome_recorded(private: PrivateState, outcome: Outcome, at: int) -> PrivateState:
    """Records the outcome in the call that waits for it, if one does."""
    meta = outcome.request.meta
    call = None if meta is None or meta.call is None else private.calls.get(meta.call)
    if call is None:
        return private
    if isinstance(call.phase, Waiting):
        return _with_call(private, _answered(call, outcome))
    if not isinstance(call.phase, Uncertain) or call.phase.request_id != outcome.request.id:
        return private
    # Only a person's acceptance runs the call again.
    if outcome.response is ResponseKind.ACCEPT and outcome.via is Provenance.PERSON:
        return _with_call(private, _from_the_start(call, call.phase.leg))
    return _with_call(private, _ended(call, Failed(error=NOT_REPEATED, at=at)))


def call_answered(private: PrivateState, action: CallAnswered, at: int) -> PrivateState:
    """Also while people are asked whether to run it again: the answer counts if it does."""
    call = private.calls.get(action.call_id)
    if call is None or not call.is_open:
        return private
    if action.remembered:
        known = tuple(m for m in call.remembered if m not in action.remembered)
        call = updated(call, remembered=(*known, *action.remembered))
    if call.round == action.round and isinstance(call.phase, Waiting | Uncertain):
        call = _with_answers(call, tuple(_with_answer(asked, action) for asked in call.asked))
    return _with_call(private, call)


def _with_answer(asked: Asked, action: CallAnswered) -> Asked:
    if not asked.waits_for_client:
        return asked
    given, error = action.given.get(asked.key), action.errors.get(asked.key)
    return updated(asked, given=given, error=error)


def call_restarted(private: PrivateState, action: CallRestarted, at: int) -> PrivateState:
    call = private.calls.get(action.call_id)
    if call is None or leg_out(call) != action.leg or call.restarts >= RESTARTS_PER_CALL:
        return private
    return _with_call(private, updated(_from_the_start(call, action.leg), begun=action.begun))


def call_doubted(private: PrivateState, action: CallDoubted, at: int) -> PrivateState:
    call = private.calls.get(action.call_id)
    if call is None or leg_out(call) != action.leg:
        return private
    doubted = Uncertain(leg=action.leg, request_id=action.request_id)
    return _with_call(private, updated(call, phase=doubted, begun=action.begun))


def call_finished(private: PrivateState, action: CallFinished, at: int) -> PrivateState:
    call = private.calls.get(action.call_id)
    if call is None or leg_out(call) != action.leg:
        return private
    return _with_call(private, _ended(call, Finished(result=action.result, at=at)))


def call_failed(private: PrivateState, action: CallFailed, at: int) -> PrivateState:
    """Also before the leg was sent, if it cannot be sent."""
    call = private.calls.get(action.call_id)
    if call is None or action.leg not in (leg_out(call), _leg_to_send(call)):
        return private
    return _with_call(private, _ended(call, Failed(error=action.error, at=at)))


def call_abandoned(private: PrivateState, action: CallAbandoned, at: int) -> PrivateState:
    call = private.calls.get(action.call_id)
    if call is None or not call.is_open:
        return private
    return _with_call(private, _ended(call, Abandoned(reason=action.reason, at=at)))


def call_collected(private: PrivateState, action: CallCollected, at: int) -> PrivateState:
    call = private.calls.get(action.call_id)
    if call is None or call.is_open or call.collected:
        return private
    collected = msgspec.structs.replace(call, collected=True)
    return msgspec.structs.replace(private, calls={**private.calls, call.id: collected})


def back_off(round_number: int) -> int:
    """How long to wait before a retry when a server asks no questions, only for a later retry."""
    return min(BACK_OFF_FIRST_MS << (round_number - 1), BACK_OFF_LIMIT_MS)


def elicit_result(asked: Asked, outcome: Outcome) -> ElicitResult:
    """What is sent to the server: content goes only with `accept`, and only for forms."""
    if outcome.response is not ResponseKind.ACCEPT or asked.schema is None:
        return ElicitResult(action=outcome.response)
    questions = questions_of(asked.schema)
    assert not isinstance(questions, Unshowable)  # such a form was never asked
    answers = unmasked_answers(questions, outcome.request.questions or (), outcome.answers or {})
    return ElicitResult(action=outcome.response, content=content_of(asked.schema, answers))


def leg_out(call: Call) -> int | None:
    """The leg whose reply is awaited: sent, or open while the server waits for people."""
    match call.phase:
        case Sent(leg=leg) | Waiting(leg=leg, held=True):
            return leg
        case _:
            return None


def _leg_to_send(call: Call) -> int | None:
    return call.phase.leg if isinstance(call.phase, ToSend) else None


def _is_sent(call: Call, leg: int) -> bool:
    return isinstance(call.phase, Sent) and call.phase.leg == leg


def _all_answered(call: Call, leg: int, *, held: bool, at: int | None = None) -> Phase:
    if held:
        return Sent(leg=leg, held=True)
    wait = None if call.asked or at is None else at + back_off(call.rounds_of_run)
    return ToSend(leg=leg + 1, not_before=wait)


def _answered(call: Call, outcome: Outcome) -> Call:
    asked = tuple(
        updated(a, response=elicit_result(a, outcome))
        if a.request_id == outcome.request.id and not a.is_answered
        else a
        for a in call.asked
    )
    return _with_answers(call, asked)


def _with_answers(call: Call, asked: tuple[Asked, ...]) -> Call:
    answered = updated(call, asked=asked)
    is_complete = answered is not call and all(a.is_answered for a in asked)
    if not is_complete or not isinstance(call.phase, Waiting):
        return answered
    return updated(
        answered,
        phase=_all_answered(answered, call.phase.leg, held=call.phase.held),
        remembered=_remembered(answered),
    )


def _remembered(call: Call) -> tuple[Remembered, ...]:
    """Every answer given so far; a newer one for the same question replaces the older.

    A cancelled question does not count as answered.
    """
    known = {(memory.key, memory.fingerprint): memory for memory in call.remembered}
    for asked in call.asked:
        if _is_answer(asked):
            known[asked.key, asked.fingerprint] = Remembered(
                run=call.restarts,
                key=asked.key,
                fingerprint=asked.fingerprint,
                response=asked.response,
                given=asked.given,
            )
    return tuple(known.values())


def _is_answer(asked: Asked) -> bool:
    if asked.response is not None:
        return asked.response.action is not ResponseKind.CANCEL
    return asked.given is not None and asked.given.get("action") != ResponseKind.CANCEL


def _from_the_start(call: Call, leg: int) -> Call:
    return updated(
        call,
        phase=ToSend(leg=leg + 1),
        run_start=call.round,
        restarts=call.restarts + 1,
        request_state=None,
        asked=(),
        remembered=_remembered(call),
    )


def _ended(call: Call, phase: Finished | Failed | Abandoned) -> Call:
    """What an ended call no longer needs is dropped, above all the server's state."""
    ended = msgspec.structs.replace(
        call, phase=phase, request_state=None, asked=(), remembered=(), begun=()
    )
    return msgspec.structs.replace(ended, size=encoded_size(ended))


def _with_call(private: PrivateState, call: Call) -> PrivateState:
    """Drops the calls that ended first if there are too many, never this one."""
    if private.calls.get(call.id) is call:
        return private
    calls = {**private.calls, call.id: call}
    if not call.is_open:
        ended = [c for c in calls.values() if type(c.phase) not in OPEN_PHASES]
        size = sum([c.size or encoded_size(c) for c in ended])
        while len(ended) > FINISHED_CALLS_KEPT or (size > FINISHED_CALL_BYTES_KEPT and ended[1:]):
            first = min([c for c in ended if c is not call], key=attrgetter("phase.at"))
            ended.remove(first)
            size -= first.size or encoded_size(first)
            del calls[first.id]
    return msgspec.structs.replace(private, calls=calls)
