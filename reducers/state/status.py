"""The status of a session, derived from its state, and how a frozen value changes."""

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

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
from session_server.schemas.wire import encode_variant

S = TypeVar("S", bound=msgspec.Struct)

_encode = msgspec.json.Encoder(enc_hook=encode_variant, order="deterministic").encode


def updated(value: S, **changes: Any) -> S:
    """`value` with these fields, or the very same object if they hold already."""
    for name, new in changes.items():
        if not is_same(getattr(value, name), new):
            return msgspec.structs.replace(value, **changes)
    return value


def encoded_size(value: Any) -> int:
    return len(_encode(value))


def latest(values: Sequence[S], number: int, size: int) -> tuple[S, ...]:
    """The last of them: at most so many, with at most so many bytes; the very last always is."""
    first = len(values)
    while first > 0 and len(values) - first < number:
        size -= encoded_size(values[first - 1])
        if size < 0 and first < len(values):
            break
        first -= 1
    return tuple(values[first:])


def is_same(old: Any, new: Any) -> bool:
    """Equal as JSON: for Python `1`, `1.0` and `True` are equal, for mirrors they are not."""
    return old is new or (old == new and _encode(old) == _encode(new))


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
    return _with_bits(state, state.summary.status & ~ACTIVITY_BITS | activity(state))


def with_error_status(state: SessionState) -> SessionState:
    return _with_bits(state, state.summary.status & ~ACTIVITY_BITS | Status.ERROR)


def marked(state: SessionState, flag: Status, *, on: bool) -> SessionState:
    """Sets or clears one of people's own marks."""
    status = state.summary.status
    return _with_bits(state, status | flag if on else status & ~int(flag))


def touched(state: SessionState, at: int) -> SessionState:
    return updated(state, summary=updated(state.summary, modified_at=at))


def _with_bits(state: SessionState, status: int) -> SessionState:
    return updated(state, summary=updated(state.summary, status=int(status)))
