"""The states of the session, chat and root channels, and summaries of sessions.

A field that has nothing to say is absent, never `null`. Times are ISO 8601 texts.
"""

from enum import StrEnum
from typing import Literal, TypeAlias

import msgspec

from session_server.schemas.ahp.customizations import (
    ChildEntry,
    CustomizationBase,
    LoadState,
    McpApps,
    McpServerState,
    ProtectedResource,
)
from session_server.schemas.ahp.questions import InputRequest, ResponseKind
from session_server.schemas.ahp.session import (
    AgentSelection,
    Changeset,
    ChangesSummary,
    ModelInfo,
    ModelSelection,
    ProjectInfo,
    RootConfigState,
    SessionConfigState,
    SummaryMeta,
)
from session_server.schemas.ahp.tool_calls import ToolCall, ToolDefinition
from session_server.schemas.ahp.turn_messages import Message, PendingMessage
from session_server.schemas.ahp.turns import ChatPart, PartBase, TurnState, UsageInfo
from session_server.schemas.wire import Count, ErrorInfo, Extra, Millis, Uri, Wire

Moment: TypeAlias = str
"""A time in UTC with milliseconds, as JavaScript's `toISOString` writes it."""


# Chats


class ChosenMessage(Message, frozen=True, kw_only=True):
    """A message that also says which model and which custom agent are to answer it."""

    model: ModelSelection | None = None
    agent: AgentSelection | None = None


class InputRequestPart(PartBase, ChatPart, frozen=True, kw_only=True, tag="inputRequest"):
    """A question where it was asked. It is open while it has no response."""

    request: InputRequest
    response: ResponseKind | None = None


class ErrorPart(PartBase, ChatPart, frozen=True, kw_only=True, tag="error"):
    error: ErrorInfo


class ActiveChatTurn(Wire, frozen=True, kw_only=True):
    id: str
    started_at: Moment
    message: Message
    response_parts: tuple[ChatPart, ...]
    usage: UsageInfo | None = None


class ChatTurn(Wire, frozen=True, kw_only=True):
    """Start and duration are absent for turns from before this host kept them."""

    id: str
    message: Message
    response_parts: tuple[ChatPart, ...]
    state: TurnState
    started_at: Moment | None = None
    duration: Millis | None = None
    usage: UsageInfo | None = None


class ChatSummary(Wire, frozen=True, kw_only=True):
    resource: Uri
    title: str
    status: Count
    modified_at: Moment
    working_directories: tuple[Uri, ...] | None = None


class ChatState(ChatSummary, frozen=True, kw_only=True):
    turns: tuple[ChatTurn, ...]
    activity: str | None = None
    active_turn: ActiveChatTurn | None = None
    steering_message: PendingMessage | None = None
    queued_messages: tuple[PendingMessage, ...] | None = None
    draft: Message | None = None


# Customizations


class Enablement(Wire, frozen=True, kw_only=True):
    kind: Literal["global", "workspace", "session"]
    enabled: bool
    uri: Uri | None = None


class PluginEntry(CustomizationBase, frozen=True, kw_only=True, tag="plugin"):
    client_id: str | None = None
    load: LoadState | None = None
    children: tuple[ChildEntry, ...] | None = None
    enablement: tuple[Enablement, ...] | None = None


class ClientPluginEntry(CustomizationBase, frozen=True, kw_only=True, tag="plugin"):
    """A plugin of a client, without what it contains: only the client itself can use that."""

    nonce: str | None = None
    enablement: tuple[Enablement, ...] | None = None


class McpServerEntry(CustomizationBase, ChildEntry, frozen=True, kw_only=True, tag="mcpServer"):
    state: McpServerState
    channel: Uri | None = None
    mcp_app: McpApps | None = None
    enablement: tuple[Enablement, ...] | None = None


class DirectoryEntry(CustomizationBase, frozen=True, kw_only=True, tag="directory"):
    enabled: bool
    contents: str
    writable: bool
    client_id: str | None = None
    load: LoadState | None = None
    children: tuple[ChildEntry, ...] | None = None


Entry: TypeAlias = PluginEntry | DirectoryEntry | McpServerEntry


# Sessions


class Lifecycle(StrEnum):
    CREATING = "creating"
    READY = "ready"
    FAILED = "failed"


class ClientEntry(Wire, frozen=True, kw_only=True):
    """An active client, as sessions show it."""

    client_id: str
    tools: tuple[ToolDefinition, ...]
    display_name: str | None = None
    customizations: tuple[ClientPluginEntry, ...] | None = None


class NeededBase(Wire, frozen=True, kw_only=True, tag_field="kind"):
    """Something that waits for people or for a client. They answer it on its chat."""

    id: str
    chat: Uri


class ChatInput(NeededBase, frozen=True, kw_only=True, tag="chatInput"):
    request: InputRequest


class ToolConfirmation(NeededBase, frozen=True, kw_only=True, tag="toolConfirmation"):
    turn_id: str
    tool_call: ToolCall


class ToolClientExecution(NeededBase, frozen=True, kw_only=True, tag="toolClientExecution"):
    turn_id: str
    client_id: str
    tool_call: ToolCall


Needed: TypeAlias = ChatInput | ToolConfirmation | ToolClientExecution


class SessionState(Wire, frozen=True, kw_only=True):
    provider: str
    title: str
    status: Count
    lifecycle: Lifecycle
    active_clients: tuple[ClientEntry, ...]
    chats: tuple[ChatSummary, ...]
    default_chat: Uri
    activity: str | None = None
    project: ProjectInfo | None = None
    working_directories: tuple[Uri, ...] | None = None
    creation_error: ErrorInfo | None = None
    server_tools: tuple[ToolDefinition, ...] | None = None
    config: SessionConfigState | None = None
    customizations: tuple[Entry, ...] | None = None
    changesets: tuple[Changeset, ...] | None = None
    input_needed: tuple[Needed, ...] | None = None
    meta: Extra | None = msgspec.field(default=None, name="_meta")


class ListedChat(Wire, frozen=True, kw_only=True):
    resource: Uri
    title: str
    status: Count


class SessionSummary(Wire, frozen=True, kw_only=True):
    """`chats` and `default_chat` are for 1.0 and later."""

    resource: Uri
    provider: str
    title: str
    status: Count
    created_at: Moment
    modified_at: Moment
    activity: str | None = None
    project: ProjectInfo | None = None
    working_directories: tuple[Uri, ...] | None = None
    changes: ChangesSummary | None = None
    chats: tuple[ListedChat, ...] | None = None
    default_chat: Uri | None = None
    meta: SummaryMeta | None = msgspec.field(default=None, name="_meta")


# The root


class RootAgent(Wire, frozen=True, kw_only=True):
    provider: str
    display_name: str
    description: str
    models: tuple[ModelInfo, ...]
    protected_resources: tuple[ProtectedResource, ...] | None = None
    customizations: tuple[Entry, ...] | None = None


class RootState(Wire, frozen=True, kw_only=True):
    agents: tuple[RootAgent, ...]
    active_sessions: Count | None = None
    config: RootConfigState | None = None
