"""Whether an action is allowed: by the role of who sent it, then by the state it meets.

`None` is yes. A refusal has a stable code and words for a person, and changes nothing.
"""

from collections.abc import Callable
from typing import Any, get_args

from ..schemas import actions
from ..schemas.actions import Action, RootAction, RootConfigChanged, SessionAction
from ..schemas.commands import ROOT_CHANNEL
from ..schemas.principals import Principal
from ..schemas.record import SessionRecord
from ..schemas.refusals import Refusal, RefusalCode
from ..schemas.root import RootState
from . import input_rules, session_rules, turn_rules
from .authority import check_channel, check_role, check_session
from .configuration import check_config

RECORDING = Refusal(
    code=RefusalCode.WRONG_STATE, message="This is a recording; it can only be watched."
)

OF_SESSIONS = frozenset[type](get_args(SessionAction))
OF_ROOT = frozenset[type](get_args(RootAction))

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
}
"""Actions that are not listed are always valid, once the role allows them."""


def judge(principal: Principal, record: SessionRecord, action: SessionAction) -> Refusal | None:
    """Why this principal may not do this to this session now, if so."""
    refusal = (
        check_role(principal, action)
        or check_session(principal, record.public.summary.resource)
        or check_channel(action, OF_SESSIONS)
    )
    if refusal is not None:
        return refusal
    if record.private.is_recording:
        return RECORDING
    rule = RULES.get(type(action))
    return None if rule is None else rule(principal, record, action)


def judge_root(principal: Principal, state: RootState, action: Action) -> Refusal | None:
    """The same for the root channel. Whoever is limited to a session has no say here."""
    refusal = (
        check_role(principal, action)
        or check_session(principal, ROOT_CHANNEL)
        or check_channel(action, OF_ROOT)
    )
    if refusal is None and isinstance(action, RootConfigChanged):
        return check_config(state.config, action.config, replace=bool(action.replace))
    return refusal
