"""The reducer of a session's whole record: the public state and, next to it, the private one."""

from collections.abc import Callable
from typing import Any

from session_server.reducers.calls import lifecycle as calls
from session_server.reducers.state import chat as chats
from session_server.reducers.state.frozen_values import latest, updated
from session_server.reducers.state.input_requests import open_request
from session_server.reducers.state.session import TRANSITIONS
from session_server.schemas.ahp.actions import (
    ActionBase,
    AgentChanged,
    Delta,
    InputAnswerChanged,
    InputCompleted,
    ModelChanged,
    SessionAction,
    ToolCallConfirmed,
    ToolCallResultConfirmed,
)
from session_server.schemas.ahp.session import SessionState
from session_server.schemas.limits import OUTCOME_BYTES_KEPT, OUTCOME_LIFETIME_MS, OUTCOMES_KEPT
from session_server.schemas.log_entries import SessionOpened
from session_server.schemas.record import (
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
    ChangeDeferred,
    ClientJoined,
    ClientLeft,
    CompletionHeld,
    MessageDrafted,
    OutcomeCollected,
    OutcomeRecorded,
    PrivateState,
    RecordAction,
    SessionRecord,
    TurnOwner,
    TurnTaken,
)

PrivateTransition = Callable[[PrivateState, Any, int], PrivateState]


def outcome_recorded(private: PrivateState, action: OutcomeRecorded, at: int) -> PrivateState:
    """Keeps outcomes for a set time, number and size; one of a call is recorded in the call too."""
    fresh = (o for o in private.outcomes if at - o.at < OUTCOME_LIFETIME_MS)
    kept = latest((*fresh, action.outcome), OUTCOMES_KEPT, OUTCOME_BYTES_KEPT)
    return calls.outcome_recorded(updated(private, outcomes=kept), action.outcome, at)


def outcome_collected(private: PrivateState, action: OutcomeCollected, at: int) -> PrivateState:
    """Remembered for as long as the outcome is."""
    remembered = {outcome.request.id for outcome in private.outcomes}
    known = (*(i for i in private.collected if i != action.request_id), action.request_id)
    return updated(private, collected=tuple(i for i in known if i in remembered))


def change_deferred(private: PrivateState, action: ChangeDeferred, at: int) -> PrivateState:
    """A later change of the same kind replaces an earlier one."""
    others = _without(private, type(action.deferred.change))
    return updated(private, deferred=(*others, action.deferred))


def completion_held(private: PrivateState, action: CompletionHeld, at: int) -> PrivateState:
    return updated(private, held_completion=action.turn_id)


def turn_taken(private: PrivateState, action: TurnTaken, at: int) -> PrivateState:
    return updated(private, turn_owner=TurnOwner(turn_id=action.turn_id, node=action.node))


def _unchanged(private: PrivateState, action: RecordAction, at: int) -> PrivateState:
    """The action is about the chat alone."""
    return private


PRIVATE_TRANSITIONS: dict[type, PrivateTransition] = {
    ClientJoined: _unchanged,
    ClientLeft: _unchanged,
    MessageDrafted: _unchanged,
    OutcomeRecorded: outcome_recorded,
    OutcomeCollected: outcome_collected,
    ChangeDeferred: change_deferred,
    CompletionHeld: completion_held,
    TurnTaken: turn_taken,
    CallStarted: calls.call_started,
    CallSent: calls.call_sent,
    CallUnsent: calls.call_unsent,
    CallInputRequired: calls.call_input_required,
    CallAnswered: calls.call_answered,
    CallRestarted: calls.call_restarted,
    CallDoubted: calls.call_doubted,
    CallFinished: calls.call_finished,
    CallFailed: calls.call_failed,
    CallAbandoned: calls.call_abandoned,
    CallCollected: calls.call_collected,
}


DECISIONS = frozenset({InputCompleted, OutcomeRecorded, ToolCallConfirmed, ToolCallResultConfirmed})


def is_decision(action: ActionBase) -> bool:
    """Whether it records a decision: who, when, how. The log keeps these longest."""
    return type(action) in DECISIONS


def reduce_record(record: SessionRecord | None, action: Any, at: int) -> SessionRecord:
    """The record after the action; the same object if it changes nothing.

    Before a session's first entry, its opening, there is no record.
    """
    if record is None:
        assert isinstance(action, SessionOpened), "a session's log begins with its opening"
        return action.record
    private_transition = PRIVATE_TRANSITIONS.get(type(action))
    if private_transition is not None:
        private = private_transition(record.private, action, at)
        chat_transition = chats.PRIVATE_TRANSITIONS.get(type(action))
        chat = record.chat if chat_transition is None else chat_transition(record, action)
        return updated(record, private=private, chat=chat)
    public = TRANSITIONS[type(action)](record.public, action, at)
    private = _after_public(record.private, public, action)
    chat = chats.reduce_chat(record, public, action, at)
    if public is record.public and private is record.private and chat is record.chat:
        return record
    return SessionRecord(public=public, private=private, chat=chat)


def _after_public(
    private: PrivateState, public: SessionState, action: RecordAction
) -> PrivateState:
    """The private state after a public action; most do not change it."""
    if private.held_completion is not None and public.active_turn is None:
        private = updated(private, held_completion=None)
    if private.deferred and isinstance(action, ModelChanged | AgentChanged):
        private = updated(private, deferred=_without(private, type(action)))
    if isinstance(action, InputAnswerChanged):
        return private if action.request_id in private.begun else _begun(private, public, action)
    if private.begun and not isinstance(action, Delta):
        open_ids = {request.id for request in public.input_requests or ()}
        return updated(private, begun=tuple(i for i in private.begun if i in open_ids))
    return private


def _begun(private: PrivateState, public: SessionState, action: InputAnswerChanged) -> PrivateState:
    """Records that a person began to answer: defaults are then never used for the request.

    Also one that has no deadline yet: its asker may send it again with one.
    """
    if open_request(public, action.request_id) is None:
        return private
    return updated(private, begun=(*private.begun, action.request_id))


def _without(private: PrivateState, kind: type[SessionAction]) -> tuple[Any, ...]:
    return tuple(d for d in private.deferred if type(d.change) is not kind)
