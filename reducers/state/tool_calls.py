"""Transitions of tool calls: streaming → confirmation → running → confirmation → done.

An action that finds its call in another state than it expects changes nothing.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from session_server.reducers.state.frozen_values import updated
from session_server.reducers.state.status import with_status
from session_server.reducers.state.turns import active_turn, identity_of_call
from session_server.schemas.ahp.actions import (
    ToolCallAction,
    ToolCallComplete,
    ToolCallConfirmed,
    ToolCallContentChanged,
    ToolCallDelta,
    ToolCallReady,
    ToolCallResultConfirmed,
    ToolCallStart,
)
from session_server.schemas.ahp.session import SessionState
from session_server.schemas.ahp.tool_calls import (
    CancellationReason,
    Cancelled,
    Completed,
    ConfirmationReason,
    PendingConfirmation,
    PendingResultConfirmation,
    Running,
    Streaming,
    ToolCall,
)
from session_server.schemas.ahp.turns import ToolCallPart

Change: TypeAlias = Callable[[ToolCall, Any], ToolCall]
Transition: TypeAlias = Callable[[SessionState, Any, int], SessionState]


def tool_call_start(state: SessionState, action: ToolCallStart, at: int) -> SessionState:
    turn = active_turn(state, action.turn_id)
    if turn is None:
        return state
    call = Streaming(
        tool_call_id=action.tool_call_id,
        tool_name=action.tool_name,
        display_name=action.display_name,
        contributor=action.contributor,
        meta=action.meta,
    )
    parts = (*turn.response_parts, ToolCallPart(tool_call=call))
    return updated(state, active_turn=updated(turn, response_parts=parts))


def _of_call(change: Change) -> Transition:
    """A transition of the tool call that the action names."""

    def transition(state: SessionState, action: ToolCallAction, at: int) -> SessionState:
        turn = active_turn(state, action.turn_id)
        if turn is None:
            return state
        parts = tuple(
            updated(part, tool_call=change(part.tool_call, action))
            if isinstance(part, ToolCallPart) and part.tool_call.tool_call_id == action.tool_call_id
            else part
            for part in turn.response_parts
        )
        return updated(state, active_turn=updated(turn, response_parts=parts))

    return transition


def _with_new_status(change: Change) -> Transition:
    """The same where the session may begin or cease to wait for a person."""
    transition = _of_call(change)
    return lambda state, action, at: with_status(transition(state, action, at))


@_of_call
def tool_call_delta(call: ToolCall, action: ToolCallDelta) -> ToolCall:
    if not isinstance(call, Streaming):
        return call
    message = action.invocation_message
    return updated(
        call,
        partial_input=(call.partial_input or "") + action.content,
        invocation_message=call.invocation_message if message is None else message,
    )


@_with_new_status
def tool_call_ready(call: ToolCall, action: ToolCallReady) -> ToolCall:
    if not isinstance(call, Streaming | Running):
        return call
    if action.confirmed is not None:
        return Running(
            **identity_of_call(call),
            invocation_message=action.invocation_message,
            tool_input=action.tool_input,
            confirmed=action.confirmed,
        )
    return PendingConfirmation(
        **identity_of_call(call),
        invocation_message=action.invocation_message,
        tool_input=action.tool_input,
        confirmation_title=action.confirmation_title,
        edits=action.edits,
        editable=action.editable,
        options=action.options,
    )


@_with_new_status
def tool_call_confirmed(call: ToolCall, action: ToolCallConfirmed) -> ToolCall:
    if not isinstance(call, PendingConfirmation):
        return call
    options = call.options if action.selected_option_id else None
    selected = next((o for o in options or () if o.id == action.selected_option_id), None)
    if action.approved:
        edited = action.edited_tool_input
        return Running(
            **identity_of_call(call),
            invocation_message=call.invocation_message,
            tool_input=call.tool_input if edited is None else edited,
            confirmed=action.confirmed or ConfirmationReason.USER_ACTION,
            selected_option=selected,
        )
    return Cancelled(
        **identity_of_call(call),
        invocation_message=call.invocation_message,
        tool_input=call.tool_input,
        reason=action.reason or CancellationReason.DENIED,
        reason_message=action.reason_message,
        user_suggestion=action.user_suggestion,
        selected_option=selected,
    )


@_with_new_status
def tool_call_complete(call: ToolCall, action: ToolCallComplete) -> ToolCall:
    match call:
        case Running():
            confirmed, selected = call.confirmed, call.selected_option
        case PendingConfirmation():
            confirmed, selected = ConfirmationReason.NOT_NEEDED, None
        case _:
            return call
    end = PendingResultConfirmation if action.requires_result_confirmation else Completed
    result = action.result
    return end(
        **identity_of_call(call),
        invocation_message=call.invocation_message,
        tool_input=call.tool_input,
        confirmed=confirmed,
        selected_option=selected,
        success=result.success,
        past_tense_message=result.past_tense_message,
        content=result.content,
        structured_content=result.structured_content,
        error=result.error,
    )


@_with_new_status
def tool_call_result_confirmed(call: ToolCall, action: ToolCallResultConfirmed) -> ToolCall:
    if not isinstance(call, PendingResultConfirmation):
        return call
    if action.approved:
        return Completed(**msgspec.structs.asdict(call))
    return Cancelled(
        **identity_of_call(call),
        invocation_message=call.invocation_message,
        tool_input=call.tool_input,
        reason=CancellationReason.RESULT_DENIED,
        selected_option=call.selected_option,
    )


@_of_call
def tool_call_content_changed(call: ToolCall, action: ToolCallContentChanged) -> ToolCall:
    return updated(call, content=action.content) if isinstance(call, Running) else call
