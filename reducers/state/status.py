"""The status of a session, derived from its state."""

import msgspec

from session_server.reducers.state.frozen_values import updated
from session_server.schemas.ahp.questions import InputRequest
from session_server.schemas.ahp.session import (
    ACTIVITY_BITS,
    SessionState,
    SessionSummary,
    Status,
    SummaryMeta,
)
from session_server.schemas.ahp.tool_calls import PendingConfirmation, PendingResultConfirmation
from session_server.schemas.ahp.turns import ToolCallPart


def awaits_confirmation(state: SessionState) -> bool:
    turn = state.active_turn
    return turn is not None and any(
        isinstance(part, ToolCallPart)
        and isinstance(part.tool_call, PendingConfirmation | PendingResultConfirmation)
        for part in turn.response_parts
    )


def activity(state: SessionState) -> Status:
    if state.input_requests or awaits_confirmation(state):
        return Status.INPUT_NEEDED
    return Status.IN_PROGRESS if state.active_turn is not None else Status.IDLE


def listed(state: SessionState) -> SessionSummary:
    """The summary as lists of sessions show it: with a mark if no asker waits for the answers."""
    requests = state.input_requests
    if not requests or not all(map(is_left, requests)) or awaits_confirmation(state):
        return state.summary
    return msgspec.structs.replace(state.summary, meta=SummaryMeta(askers_gone=True))


def is_left(request: InputRequest) -> bool:
    return request.meta is not None and request.meta.asker_gone_since is not None


def with_status(state: SessionState) -> SessionState:
    """Brings the activity bits up to date with the rest of the state."""
    return _with_bits(state, state.summary.status & ~ACTIVITY_BITS | int(activity(state)))


def with_error_status(state: SessionState) -> SessionState:
    return _with_bits(state, state.summary.status & ~ACTIVITY_BITS | int(Status.ERROR))


def marked(state: SessionState, flag: Status, *, on: bool) -> SessionState:
    """Sets or clears one of people's own marks."""
    status = state.summary.status
    return _with_bits(state, status | int(flag) if on else status & ~int(flag))


def touched(state: SessionState, at: int) -> SessionState:
    return updated(state, summary=updated(state.summary, modified_at=at))


def _with_bits(state: SessionState, status: int) -> SessionState:
    return updated(state, summary=updated(state.summary, status=status))
