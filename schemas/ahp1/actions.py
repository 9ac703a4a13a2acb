"""Actions of the session, chat and root channels: those of 0.3.0 under other names, and new ones.

`ClientAction` is what a client may dispatch here. Others that the protocol knows, such as resuming
a turn or changing working directories, have no shape, so that they are refused when decoded.
"""

from typing import Annotated, TypeAlias

import msgspec

from session_server.schemas.ahp import actions as ahp
from session_server.schemas.ahp.actions import ActionBase
from session_server.schemas.ahp1.state import (
    ChosenMessage,
    ClientEntry,
    Enablement,
    Entry,
    ErrorPart,
    Moment,
    Needed,
    RootAgent,
)
from session_server.schemas.wire import Count, Millis, Uri, Wire

# Chat channel, from the host


class TurnStarted(ahp.TurnStarted, frozen=True, kw_only=True, tag="chat/turnStarted"):
    started_at: Moment


class Delta(ahp.Delta, frozen=True, kw_only=True, tag="chat/delta"):
    pass


class Reasoning(ahp.Reasoning, frozen=True, kw_only=True, tag="chat/reasoning"):
    pass


class ResponsePartAdded(ahp.ResponsePartAdded, frozen=True, kw_only=True, tag="chat/responsePart"):
    pass


class Usage(ahp.Usage, frozen=True, kw_only=True, tag="chat/usage"):
    pass


class TurnComplete(ahp.TurnComplete, frozen=True, kw_only=True, tag="chat/turnComplete"):
    duration: Millis


class TurnCancelled(ahp.TurnCancelled, frozen=True, kw_only=True, tag="chat/turnCancelled"):
    duration: Millis


class TurnFailed(ahp.TurnAction, frozen=True, kw_only=True, tag="chat/error"):
    duration: Millis
    part: ErrorPart


class Truncated(ahp.Truncated, frozen=True, kw_only=True, tag="chat/truncated"):
    pass


class ToolCallStart(ahp.ToolCallStart, frozen=True, kw_only=True, tag="chat/toolCallStart"):
    pass


class ToolCallDelta(ahp.ToolCallDelta, frozen=True, kw_only=True, tag="chat/toolCallDelta"):
    pass


class ToolCallReady(ahp.ToolCallReady, frozen=True, kw_only=True, tag="chat/toolCallReady"):
    pass


class ToolCallConfirmed(
    ahp.ToolCallConfirmed, frozen=True, kw_only=True, tag="chat/toolCallConfirmed"
):
    pass


class ToolCallComplete(
    ahp.ToolCallComplete, frozen=True, kw_only=True, tag="chat/toolCallComplete"
):
    pass


class ToolCallResultConfirmed(
    ahp.ToolCallResultConfirmed, frozen=True, kw_only=True, tag="chat/toolCallResultConfirmed"
):
    pass


class ToolCallContentChanged(
    ahp.ToolCallContentChanged, frozen=True, kw_only=True, tag="chat/toolCallContentChanged"
):
    pass


class InputRequested(ahp.InputRequested, frozen=True, kw_only=True, tag="chat/inputRequested"):
    pass


class InputAnswerChanged(
    ahp.InputAnswerChanged, frozen=True, kw_only=True, tag="chat/inputAnswerChanged"
):
    pass


class InputCompleted(ahp.InputCompleted, frozen=True, kw_only=True, tag="chat/inputCompleted"):
    pass


class PendingMessageSet(
    ahp.PendingMessageSet, frozen=True, kw_only=True, tag="chat/pendingMessageSet"
):
    pass


class PendingMessageRemoved(
    ahp.PendingMessageRemoved, frozen=True, kw_only=True, tag="chat/pendingMessageRemoved"
):
    pass


class QueuedMessagesReordered(
    ahp.QueuedMessagesReordered, frozen=True, kw_only=True, tag="chat/queuedMessagesReordered"
):
    pass


class DraftChanged(ActionBase, frozen=True, kw_only=True, tag="chat/draftChanged"):
    """A person's draft of the next message; absent when it was cleared."""

    draft: ChosenMessage | None = None


class ChatActivityChanged(
    ahp.ActivityChanged, frozen=True, kw_only=True, tag="chat/activityChanged"
):
    pass


class ChatIsReadChanged(ahp.IsReadChanged, frozen=True, kw_only=True, tag="chat/isReadChanged"):
    """Known to 1.0 and later."""


class ChatIsArchivedChanged(
    ahp.IsArchivedChanged, frozen=True, kw_only=True, tag="chat/isArchivedChanged"
):
    """Known to 1.0 and later."""


# Session channel, from the host


class ChatChanges(Wire, frozen=True, kw_only=True):
    """The fields of a chat's summary that are others now."""

    status: Count | msgspec.UnsetType = msgspec.UNSET
    modified_at: Moment | msgspec.UnsetType = msgspec.UNSET


class ChatUpdated(ActionBase, frozen=True, kw_only=True, tag="session/chatUpdated"):
    chat: Uri
    changes: ChatChanges


class InputNeededSet(ActionBase, frozen=True, kw_only=True, tag="session/inputNeededSet"):
    request: Needed


class InputNeededRemoved(ActionBase, frozen=True, kw_only=True, tag="session/inputNeededRemoved"):
    id: str


class ActiveClientSet(ActionBase, frozen=True, kw_only=True, tag="session/activeClientSet"):
    """A client becomes an active one, or its entry is replaced."""

    active_client: ClientEntry


class ActiveClientRemoved(ActionBase, frozen=True, kw_only=True, tag="session/activeClientRemoved"):
    client_id: str


class CustomizationsChanged(
    ActionBase, frozen=True, kw_only=True, tag="session/customizationsChanged"
):
    customizations: tuple[Entry, ...]


class CustomizationToggled(
    ActionBase, frozen=True, kw_only=True, tag="session/customizationToggled"
):
    """The innermost scope counts: the session's, then the workspace's, then everywhere."""

    id: str
    enablement: Annotated[tuple[Enablement, ...], msgspec.Meta(min_length=1)]


# Root channel, from the host


class AgentsChanged(ActionBase, frozen=True, kw_only=True, tag="root/agentsChanged"):
    agents: tuple[RootAgent, ...]


ChatAction: TypeAlias = (
    TurnStarted
    | Delta
    | Reasoning
    | ResponsePartAdded
    | Usage
    | TurnComplete
    | TurnCancelled
    | TurnFailed
    | Truncated
    | ToolCallStart
    | ToolCallDelta
    | ToolCallReady
    | ToolCallConfirmed
    | ToolCallComplete
    | ToolCallResultConfirmed
    | ToolCallContentChanged
    | InputRequested
    | InputAnswerChanged
    | InputCompleted
    | PendingMessageSet
    | PendingMessageRemoved
    | QueuedMessagesReordered
    | DraftChanged
    | ChatActivityChanged
    | ChatIsReadChanged
    | ChatIsArchivedChanged
)
SessionAction: TypeAlias = (
    ahp.Ready
    | ahp.CreationFailed
    | ahp.TitleChanged
    | ahp.IsReadChanged
    | ahp.IsArchivedChanged
    | ahp.ActivityChanged
    | ahp.ConfigChanged
    | ahp.MetaChanged
    | ahp.ChangesetsChanged
    | ahp.ServerToolsChanged
    | ActiveClientSet
    | ActiveClientRemoved
    | ChatUpdated
    | InputNeededSet
    | InputNeededRemoved
    | CustomizationsChanged
    | CustomizationToggled
    | ahp.McpServerStateChanged
)
RootAction: TypeAlias = AgentsChanged | ahp.RootActiveSessionsChanged | ahp.RootConfigChanged
HostAction: TypeAlias = ChatAction | SessionAction | RootAction
"""Everything that envelopes of these versions carry."""


# From clients: the same names, with what a client says


class StartTurn(ahp.TurnAction, frozen=True, kw_only=True, tag="chat/turnStarted"):
    """`started_at` is the sender's clock; the host writes its own into the echo."""

    started_at: str
    message: ChosenMessage
    queued_message_id: str | None = None


class CancelTurn(ahp.TurnAction, frozen=True, kw_only=True, tag="chat/turnCancelled"):
    pass


class Truncate(ActionBase, frozen=True, kw_only=True, tag="chat/truncated"):
    """`null` is no turn and not the same as absent, so it is refused."""

    turn_id: str | msgspec.UnsetType = msgspec.UNSET


ClientChatAction: TypeAlias = (
    StartTurn
    | CancelTurn
    | Truncate
    | ToolCallConfirmed
    | ToolCallComplete
    | ToolCallResultConfirmed
    | ToolCallContentChanged
    | InputAnswerChanged
    | InputCompleted
    | PendingMessageSet
    | PendingMessageRemoved
    | QueuedMessagesReordered
    | DraftChanged
    | ChatIsReadChanged
    | ChatIsArchivedChanged
)
ClientSessionAction: TypeAlias = (
    ahp.TitleChanged
    | ahp.IsReadChanged
    | ahp.IsArchivedChanged
    | ahp.ConfigChanged
    | ActiveClientSet
    | ActiveClientRemoved
    | CustomizationToggled
)
ClientAction: TypeAlias = ClientChatAction | ClientSessionAction | ahp.RootConfigChanged
"""What a client may dispatch."""
