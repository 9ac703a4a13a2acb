"""Every action of the root and session channels.

What a client may dispatch and what only the host may dispatch are two unions: the decoder of a
client's socket knows only the first.
"""

from enum import StrEnum
from typing import TypeAlias

import msgspec

from session_server.schemas.ahp.customizations import Customization, McpServerState
from session_server.schemas.ahp.questions import Answer, CompletionMeta, InputRequest, ResponseKind
from session_server.schemas.ahp.session import (
    ActiveClient,
    AgentInfo,
    AgentSelection,
    Changeset,
    ModelSelection,
    TerminalInfo,
)
from session_server.schemas.ahp.tool_calls import (
    CancellationReason,
    ConfirmationOption,
    ConfirmationReason,
    Contributor,
    FileEdits,
    ToolContent,
    ToolDefinition,
    ToolResult,
)
from session_server.schemas.ahp.turn_messages import Message
from session_server.schemas.ahp.turns import ResponsePart, UsageInfo
from session_server.schemas.wire import Count, ErrorInfo, Extra, Text, Uri, Wire


class PendingKind(StrEnum):
    STEERING = "steering"
    QUEUED = "queued"


class ActionBase(Wire, frozen=True, kw_only=True, tag_field="type"):
    """A fact that changes a channel; its `type` names the fact."""


class TurnAction(ActionBase, frozen=True, kw_only=True):
    turn_id: str


class ToolCallAction(TurnAction, frozen=True, kw_only=True):
    tool_call_id: str
    meta: Extra | None = msgspec.field(default=None, name="_meta")


# Root channel


class RootAgentsChanged(ActionBase, frozen=True, kw_only=True, tag="root/agentsChanged"):
    """The agents that sessions can be made with, all of them."""

    agents: tuple[AgentInfo, ...]


class RootActiveSessionsChanged(
    ActionBase, frozen=True, kw_only=True, tag="root/activeSessionsChanged"
):
    """How many sessions there are."""

    active_sessions: Count


class RootTerminalsChanged(ActionBase, frozen=True, kw_only=True, tag="root/terminalsChanged"):
    """The known terminals, all of them."""

    terminals: tuple[TerminalInfo, ...]


class RootConfigChanged(ActionBase, frozen=True, kw_only=True, tag="root/configChanged"):
    """New values of the host's configuration: merged, or with `replace` all there are."""

    config: Extra
    replace: bool | None = None


# Session channel: lifecycle and turns


class Ready(ActionBase, frozen=True, kw_only=True, tag="session/ready"):
    """The session can be used."""


class CreationFailed(ActionBase, frozen=True, kw_only=True, tag="session/creationFailed"):
    """The session could not be made."""

    error: ErrorInfo


class TurnStarted(TurnAction, frozen=True, kw_only=True, tag="session/turnStarted"):
    """A message begins a turn; one that waited in the queue leaves it."""

    message: Message
    queued_message_id: str | None = None


class Delta(TurnAction, frozen=True, kw_only=True, tag="session/delta"):
    """More text for a markdown part."""

    part_id: str
    content: str


class Reasoning(TurnAction, frozen=True, kw_only=True, tag="session/reasoning"):
    """More text for a reasoning part."""

    part_id: str
    content: str


class ResponsePartAdded(TurnAction, frozen=True, kw_only=True, tag="session/responsePart"):
    """A new part of the response."""

    part: ResponsePart


class TurnComplete(TurnAction, frozen=True, kw_only=True, tag="session/turnComplete"):
    """The agent is done with the turn."""


class TurnCancelled(TurnAction, frozen=True, kw_only=True, tag="session/turnCancelled"):
    """Somebody stopped the turn."""


class TurnFailed(TurnAction, frozen=True, kw_only=True, tag="session/error"):
    """The turn ended in an error."""

    error: ErrorInfo


class Usage(TurnAction, frozen=True, kw_only=True, tag="session/usage"):
    """What the turn has cost so far."""

    usage: UsageInfo


class Truncated(ActionBase, frozen=True, kw_only=True, tag="session/truncated"):
    """History after the named turn, or all of it, is dropped."""

    turn_id: str | None = None


# Session channel: tool calls


class ToolCallStart(ToolCallAction, frozen=True, kw_only=True, tag="session/toolCallStart"):
    """A tool call appears; its parameters are still coming."""

    tool_name: str
    display_name: str
    contributor: Contributor | None = None


class ToolCallDelta(ToolCallAction, frozen=True, kw_only=True, tag="session/toolCallDelta"):
    """More of the parameters."""

    content: str
    invocation_message: Text | None = None


class ToolCallReady(ToolCallAction, frozen=True, kw_only=True, tag="session/toolCallReady"):
    """The parameters are there, or a running call needs another confirmation."""

    invocation_message: Text
    tool_input: str | None = None
    confirmation_title: Text | None = None
    edits: FileEdits | None = None
    editable: bool | None = None
    confirmed: ConfirmationReason | None = None
    options: tuple[ConfirmationOption, ...] | None = None


class ToolCallConfirmed(ToolCallAction, frozen=True, kw_only=True, tag="session/toolCallConfirmed"):
    """Approval brings `confirmed`, denial brings `reason`; the rules check this."""

    approved: bool
    confirmed: ConfirmationReason | None = None
    edited_tool_input: str | None = None
    reason: CancellationReason | None = None
    reason_message: Text | None = None
    user_suggestion: Message | None = None
    selected_option_id: str | None = None


class ToolCallComplete(ToolCallAction, frozen=True, kw_only=True, tag="session/toolCallComplete"):
    """The tool has run; its result may still need a confirmation."""

    result: ToolResult
    requires_result_confirmation: bool | None = None


class ToolCallResultConfirmed(
    ToolCallAction, frozen=True, kw_only=True, tag="session/toolCallResultConfirmed"
):
    """The result may be used, or may not."""

    approved: bool


class ToolCallContentChanged(
    ToolCallAction, frozen=True, kw_only=True, tag="session/toolCallContentChanged"
):
    """What a running tool has to show so far."""

    content: tuple[ToolContent, ...]


# Session channel: input requests


class InputRequested(ActionBase, frozen=True, kw_only=True, tag="session/inputRequested"):
    """A question to people is opened, or replaced under its id."""

    request: InputRequest


class InputAnswerChanged(ActionBase, frozen=True, kw_only=True, tag="session/inputAnswerChanged"):
    """One answer is drafted, submitted, skipped, or cleared when `answer` is absent."""

    request_id: str
    question_id: str
    answer: Answer | None = None


class InputCompleted(ActionBase, frozen=True, kw_only=True, tag="session/inputCompleted"):
    """A question is closed; the answers it brings go over those it has.

    With `_meta.reviewed` it is refused if something else would be sent than was reviewed.
    """

    request_id: str
    response: ResponseKind
    answers: dict[str, Answer] | None = None
    meta: CompletionMeta | None = msgspec.field(default=None, name="_meta")


# Session channel: pending messages


class PendingMessageSet(ActionBase, frozen=True, kw_only=True, tag="session/pendingMessageSet"):
    """A message waits: to steer the turn, or in the queue for a next one."""

    kind: PendingKind
    id: str
    message: Message


class PendingMessageRemoved(
    ActionBase, frozen=True, kw_only=True, tag="session/pendingMessageRemoved"
):
    """A pending message started a turn, or was withdrawn."""

    kind: PendingKind
    id: str


class QueuedMessagesReordered(
    ActionBase, frozen=True, kw_only=True, tag="session/queuedMessagesReordered"
):
    """A new order of the queue; what it leaves out stays at the end."""

    order: tuple[str, ...]


# Session channel: what the session is and has


class TitleChanged(ActionBase, frozen=True, kw_only=True, tag="session/titleChanged"):
    """The session has another title."""

    title: str


class ModelChanged(ActionBase, frozen=True, kw_only=True, tag="session/modelChanged"):
    """The session uses another model, from the next turn on."""

    model: ModelSelection


class AgentChanged(ActionBase, frozen=True, kw_only=True, tag="session/agentChanged"):
    """The session uses another custom agent, or none, from the next turn on."""

    agent: AgentSelection | None = None


class IsReadChanged(ActionBase, frozen=True, kw_only=True, tag="session/isReadChanged"):
    """Somebody has seen the session, or wants it to look unseen."""

    is_read: bool


class IsArchivedChanged(ActionBase, frozen=True, kw_only=True, tag="session/isArchivedChanged"):
    """The session was archived or restored."""

    is_archived: bool


class ActivityChanged(ActionBase, frozen=True, kw_only=True, tag="session/activityChanged"):
    """What the session is doing, as text."""

    activity: str | None = None


class ConfigChanged(ActionBase, frozen=True, kw_only=True, tag="session/configChanged"):
    """New values of the session's configuration: merged, or with `replace` all there are."""

    config: Extra
    replace: bool | None = None


class MetaChanged(ActionBase, frozen=True, kw_only=True, tag="session/metaChanged"):
    """The session's free-form metadata, as a whole."""

    meta: Extra | None = msgspec.field(default=None, name="_meta")


class ChangesetsChanged(ActionBase, frozen=True, kw_only=True, tag="session/changesetsChanged"):
    """The changesets on offer, all of them."""

    changesets: tuple[Changeset, ...] | None = None


class ServerToolsChanged(ActionBase, frozen=True, kw_only=True, tag="session/serverToolsChanged"):
    """The tools that the host provides, all of them."""

    tools: tuple[ToolDefinition, ...]


class ActiveClientChanged(ActionBase, frozen=True, kw_only=True, tag="session/activeClientChanged"):
    """`activeClient` is `null` on the wire, not absent, when the role is released."""

    active_client: ActiveClient | None


class ActiveClientToolsChanged(
    ActionBase, frozen=True, kw_only=True, tag="session/activeClientToolsChanged"
):
    """The tools that the active client provides, all of them."""

    tools: tuple[ToolDefinition, ...]


class CustomizationsChanged(
    ActionBase, frozen=True, kw_only=True, tag="session/customizationsChanged"
):
    """The customizations, all of them."""

    customizations: tuple[Customization, ...]


class CustomizationToggled(
    ActionBase, frozen=True, kw_only=True, tag="session/customizationToggled"
):
    """A customization is switched on or off."""

    id: str
    enabled: bool


class CustomizationUpdated(
    ActionBase, frozen=True, kw_only=True, tag="session/customizationUpdated"
):
    """A customization is added, or replaced under its id."""

    customization: Customization


class CustomizationRemoved(
    ActionBase, frozen=True, kw_only=True, tag="session/customizationRemoved"
):
    """A customization, or one inside it, is gone."""

    id: str


class McpServerStateChanged(
    ActionBase, frozen=True, kw_only=True, tag="session/mcpServerStateChanged"
):
    """The new state of an MCP server."""

    id: str
    state: McpServerState
    channel: Uri | None = None


ClientRootAction: TypeAlias = RootConfigChanged
HostRootAction: TypeAlias = RootAgentsChanged | RootActiveSessionsChanged | RootTerminalsChanged
RootAction: TypeAlias = ClientRootAction | HostRootAction

ClientSessionAction: TypeAlias = (
    TurnStarted
    | TurnCancelled
    | Truncated
    | ToolCallConfirmed
    | ToolCallComplete
    | ToolCallResultConfirmed
    | ToolCallContentChanged
    | InputAnswerChanged
    | InputCompleted
    | PendingMessageSet
    | PendingMessageRemoved
    | QueuedMessagesReordered
    | TitleChanged
    | ModelChanged
    | AgentChanged
    | IsReadChanged
    | IsArchivedChanged
    | ConfigChanged
    | ActiveClientChanged
    | ActiveClientToolsChanged
    | CustomizationToggled
)
HostSessionAction: TypeAlias = (
    Ready
    | CreationFailed
    | Delta
    | Reasoning
    | ResponsePartAdded
    | TurnComplete
    | TurnFailed
    | Usage
    | ToolCallStart
    | ToolCallDelta
    | ToolCallReady
    | InputRequested
    | ActivityChanged
    | MetaChanged
    | ChangesetsChanged
    | ServerToolsChanged
    | CustomizationsChanged
    | CustomizationUpdated
    | CustomizationRemoved
    | McpServerStateChanged
)
SessionAction: TypeAlias = ClientSessionAction | HostSessionAction

ClientAction: TypeAlias = ClientRootAction | ClientSessionAction
HostAction: TypeAlias = HostRootAction | HostSessionAction
Action: TypeAlias = ClientAction | HostAction
