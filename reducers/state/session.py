"""The reducers of a session's public state and of the root: tables of transitions."""

from collections.abc import Callable
from typing import Any

from session_server.reducers.state import customizations, properties, tool_calls, turns
from session_server.reducers.state import input_requests as requests
from session_server.reducers.state.frozen_values import updated
from session_server.reducers.state.properties import new_values
from session_server.schemas.ahp import actions
from session_server.schemas.ahp.session import RootState, SessionState

Transition = Callable[[SessionState, Any, int], SessionState]

TRANSITIONS: dict[type, Transition] = {
    actions.Ready: properties.ready,
    actions.CreationFailed: properties.creation_failed,
    actions.TurnStarted: turns.turn_started,
    actions.Delta: turns.delta,
    actions.Reasoning: turns.reasoning,
    actions.ResponsePartAdded: turns.response_part_added,
    actions.TurnComplete: turns.turn_complete,
    actions.TurnCancelled: turns.turn_cancelled,
    actions.TurnFailed: turns.turn_failed,
    actions.Usage: turns.usage,
    actions.Truncated: turns.truncated,
    actions.ToolCallStart: tool_calls.tool_call_start,
    actions.ToolCallDelta: tool_calls.tool_call_delta,
    actions.ToolCallReady: tool_calls.tool_call_ready,
    actions.ToolCallConfirmed: tool_calls.tool_call_confirmed,
    actions.ToolCallComplete: tool_calls.tool_call_complete,
    actions.ToolCallResultConfirmed: tool_calls.tool_call_result_confirmed,
    actions.ToolCallContentChanged: tool_calls.tool_call_content_changed,
    actions.InputRequested: requests.input_requested,
    actions.InputAnswerChanged: requests.input_answer_changed,
    actions.InputCompleted: requests.input_completed,
    actions.PendingMessageSet: turns.pending_message_set,
    actions.PendingMessageRemoved: turns.pending_message_removed,
    actions.QueuedMessagesReordered: turns.queued_messages_reordered,
    actions.TitleChanged: properties.title_changed,
    actions.ModelChanged: properties.model_changed,
    actions.AgentChanged: properties.agent_changed,
    actions.IsReadChanged: properties.is_read_changed,
    actions.IsArchivedChanged: properties.is_archived_changed,
    actions.ActivityChanged: properties.activity_changed,
    actions.ConfigChanged: properties.config_changed,
    actions.MetaChanged: properties.meta_changed,
    actions.ChangesetsChanged: properties.changesets_changed,
    actions.ServerToolsChanged: properties.server_tools_changed,
    actions.ActiveClientChanged: properties.active_client_changed,
    actions.ActiveClientToolsChanged: properties.active_client_tools_changed,
    actions.CustomizationsChanged: customizations.customizations_changed,
    actions.CustomizationToggled: customizations.customization_toggled,
    actions.CustomizationUpdated: customizations.customization_updated,
    actions.CustomizationRemoved: customizations.customization_removed,
    actions.McpServerStateChanged: customizations.mcp_server_state_changed,
}


def reduce_session(state: SessionState, action: actions.SessionAction, at: int) -> SessionState:
    """The state after the action at time `at`; the same object if it changes nothing."""
    return TRANSITIONS[type(action)](state, action, at)


def reduce_root(state: RootState, action: actions.RootAction) -> RootState:
    """The state after the action; the same object if it changes nothing."""
    match action:
        case actions.RootAgentsChanged():
            return updated(state, agents=action.agents)
        case actions.RootActiveSessionsChanged():
            return updated(state, active_sessions=action.active_sessions)
        case actions.RootTerminalsChanged():
            return updated(state, terminals=action.terminals)
        case actions.RootConfigChanged() if state.config is not None:
            values = new_values(state.config.values, action.config, replace=bool(action.replace))
            return updated(state, config=updated(state.config, values=values))
        case _:
            return state
