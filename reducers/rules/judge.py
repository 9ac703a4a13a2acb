"""Whether an action is allowed: by the role of its sender, then by the state it meets."""

from collections.abc import Callable
from typing import Any, get_args

from session_server.reducers.rules import input_rules, session_rules, turn_rules
from session_server.reducers.rules.session_rules import check_config
from session_server.schemas.ahp import actions
from session_server.schemas.ahp.actions import (
    Action,
    ClientAction,
    HostSessionAction,
    InputAnswerChanged,
    InputCompleted,
    IsReadChanged,
    PendingMessageRemoved,
    PendingMessageSet,
    RootAction,
    RootConfigChanged,
    SessionAction,
    TitleChanged,
    ToolCallComplete,
    ToolCallContentChanged,
    TurnCancelled,
    TurnStarted,
)
from session_server.schemas.ahp.commands import ROOT_CHANNEL
from session_server.schemas.ahp.session import RootState
from session_server.schemas.errors import Refusal, RefusalCode
from session_server.schemas.principals import Principal, Role
from session_server.schemas.record import SessionRecord

# An answerer answers questions. Letting a tool run, steering the agent or changing the session are
# the owner's; an observer only looks on.
# An agent says what the host says, runs turns, and reports on its tools; it answers nobody's
# questions, confirms no tool call, and has no say in the host's own state.
OF_AGENTS = (
    TurnStarted,
    TurnCancelled,
    ToolCallComplete,
    ToolCallContentChanged,
    InputCompleted,
    PendingMessageSet,
    PendingMessageRemoved,
    TitleChanged,
    IsReadChanged,
)

MAY: dict[Role, frozenset[type]] = {
    Role.OWNER: frozenset(get_args(ClientAction)),
    Role.AGENT: frozenset({*get_args(HostSessionAction), *OF_AGENTS}),
    Role.ANSWERER: frozenset({InputAnswerChanged, InputCompleted, IsReadChanged}),
    Role.OBSERVER: frozenset(),
}

_WORDS = {
    Role.AGENT: "An agent may not do that.",
    Role.OWNER: "Only the agent of this session may say that.",
    Role.ANSWERER: "You may answer this session's questions, but not do that.",
    Role.OBSERVER: "You may watch this session, but not change it.",
}


def check_role(principal: Principal, action: Action) -> Refusal | None:
    if type(action) in MAY[principal.role]:
        return None
    return Refusal(code=RefusalCode.ROLE, message=_WORDS[principal.role])


def check_session(principal: Principal, resource: str) -> Refusal | None:
    """A share link opens one session and no other; a token may be limited too."""
    if principal.reaches(resource):
        return None
    return Refusal(code=RefusalCode.OTHER_SESSION, message="Your access is to another session.")


def check_channel(action: Action, kinds: frozenset[type]) -> Refusal | None:
    """An action belongs to one kind of channel."""
    if type(action) in kinds:
        return None
    return Refusal(code=RefusalCode.OTHER_CHANNEL, message="That is not for this channel.")


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
