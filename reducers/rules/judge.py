"""Whether an action is allowed: by the role of its sender, then by the state it meets."""

from collections.abc import Callable
from typing import Any, get_args

from session_server.reducers.rules import input_rules, session_rules, turn_rules
from session_server.reducers.rules.roles import MAY, OF_CHATS, check_role, check_session
from session_server.reducers.rules.session_rules import check_config
from session_server.schemas.ahp import actions
from session_server.schemas.ahp.actions import (
    Action,
    RootAction,
    RootConfigChanged,
    SessionAction,
)
from session_server.schemas.ahp.commands import ROOT_CHANNEL
from session_server.schemas.ahp.session import RootState
from session_server.schemas.errors import Refusal, RefusalCode
from session_server.schemas.principals import Principal
from session_server.schemas.record import (
    ClientJoined,
    ClientLeft,
    MessageDrafted,
    RecordAction,
    SessionRecord,
)

OTHER_CHANNEL = Refusal(
    code=RefusalCode.OTHER_CHANNEL, message="This action is not valid on this channel."
)


def check_channel(action: Action | RecordAction, kinds: frozenset[type]) -> Refusal | None:
    """An action belongs to one kind of channel."""
    if type(action) in kinds:
        return None
    return OTHER_CHANNEL


RECORDING = Refusal(
    code=RefusalCode.WRONG_STATE, message="This is a recording; it can only be watched."
)

OF_SESSIONS = frozenset[type]({*get_args(SessionAction), *OF_CHATS})
OF_ROOT = frozenset[type](get_args(RootAction))

MAY_IN_SESSIONS = {role: allowed & OF_SESSIONS for role, allowed in MAY.items()}

Rule = Callable[[Principal, SessionRecord, Any], Refusal | None]

RULES: dict[type, Rule] = {
    actions.TurnStarted: turn_rules.turn_started,
    actions.TurnCancelled: turn_rules.of_active_turn,
    actions.TurnComplete: turn_rules.of_active_turn,
    actions.TurnFailed: turn_rules.of_active_turn,
    actions.Delta: turn_rules.of_active_turn,
    actions.Reasoning: turn_rules.of_active_turn,
    actions.ResponsePartAdded: turn_rules.response_part_added,
    actions.Usage: turn_rules.of_active_turn,
    actions.Truncated: turn_rules.truncated,
    actions.ToolCallStart: turn_rules.tool_call_start,
    actions.ToolCallDelta: turn_rules.tool_call_delta,
    actions.ToolCallReady: turn_rules.tool_call_ready,
    actions.ToolCallConfirmed: turn_rules.tool_call_confirmed,
    actions.ToolCallComplete: turn_rules.tool_call_complete,
    actions.ToolCallResultConfirmed: turn_rules.tool_call_result_confirmed,
    actions.ToolCallContentChanged: turn_rules.tool_call_content_changed,
    actions.InputRequested: input_rules.input_requested,
    actions.InputAnswerChanged: input_rules.input_answer_changed,
    actions.InputCompleted: input_rules.input_completed,
    actions.PendingMessageSet: session_rules.pending_message_set,
    actions.PendingMessageRemoved: session_rules.pending_message_removed,
    actions.TitleChanged: session_rules.title_changed,
    actions.ActivityChanged: session_rules.activity_changed,
    actions.ModelChanged: session_rules.selection_changed,
    actions.AgentChanged: session_rules.selection_changed,
    actions.ConfigChanged: session_rules.config_changed,
    actions.ActiveClientChanged: session_rules.active_client_changed,
    actions.ActiveClientToolsChanged: session_rules.active_client_tools_changed,
    actions.CustomizationToggled: session_rules.customization_toggled,
    ClientJoined: session_rules.client_joined,
    ClientLeft: session_rules.client_left,
    MessageDrafted: session_rules.message_drafted,
}
"""Actions that are not listed are always valid, once the role allows them."""


def judge(principal: Principal, record: SessionRecord, action: RecordAction) -> Refusal | None:
    """Why this principal may not do this to this session now, if so."""
    kind, resource = type(action), record.public.summary.resource
    is_limited = principal.sessions is not None
    if kind not in MAY_IN_SESSIONS[principal.role] or (
        is_limited and not principal.reaches(resource)
    ):
        return (
            check_role(principal, action)
            or check_session(principal, resource)
            or check_channel(action, OF_SESSIONS)
        )
    if record.private.is_recording:
        return RECORDING
    rule = RULES.get(kind)
    return None if rule is None else rule(principal, record, action)


def judge_root(principal: Principal, state: RootState, action: Action) -> Refusal | None:
    """The same for the root channel, which principals of single sessions cannot change."""
    refusal = (
        check_role(principal, action)
        or check_session(principal, ROOT_CHANNEL)
        or check_channel(action, OF_ROOT)
    )
    if refusal is None and isinstance(action, RootConfigChanged):
        return check_config(state.config, action.config, replace=bool(action.replace))
    return refusal
