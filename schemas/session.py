"""The public state of a session, as AHP 0.3.0 shows it to every subscriber."""

from enum import IntFlag, StrEnum

import msgspec

from .config import SessionConfigState
from .customizations import ClientPlugin, Customization
from .messages import PendingMessage
from .questions import InputRequest
from .tool_calls import ToolDefinition
from .turns import ActiveTurn, Turn
from .wire import Count, ErrorInfo, Extra, Millis, Uri, Wire


class Status(IntFlag):
    """Bits 0–4 say what the session does, and are derived; bits 5–6 are people's marks on it."""

    IDLE = 1
    ERROR = 2
    IN_PROGRESS = 8
    INPUT_NEEDED = 24
    IS_READ = 32
    IS_ARCHIVED = 64


ACTIVITY_BITS = 0b11111


class Lifecycle(StrEnum):
    CREATING = "creating"
    READY = "ready"
    CREATION_FAILED = "creationFailed"


class ProjectInfo(Wire, frozen=True, kw_only=True):
    uri: Uri
    display_name: str


class ModelSelection(Wire, frozen=True, kw_only=True):
    id: str
    config: dict[str, str] | None = None


class AgentSelection(Wire, frozen=True, kw_only=True):
    uri: Uri


class ChangesSummary(Wire, frozen=True, kw_only=True):
    additions: Count | None = None
    deletions: Count | None = None
    files: Count | None = None


class SummaryMeta(Wire, frozen=True, kw_only=True):
    """Host extension, in lists of sessions: nobody waits for the answers to its open questions."""

    askers_gone: bool | None = None


class SessionSummary(Wire, frozen=True, kw_only=True):
    resource: Uri
    provider: str
    title: str
    status: Count
    created_at: Millis
    modified_at: Millis
    activity: str | None = None
    project: ProjectInfo | None = None
    model: ModelSelection | None = None
    agent: AgentSelection | None = None
    working_directory: Uri | None = None
    changes: ChangesSummary | None = None
    meta: SummaryMeta | None = msgspec.field(default=None, name="_meta")


class ActiveClient(Wire, frozen=True, kw_only=True):
    client_id: str
    tools: tuple[ToolDefinition, ...]
    display_name: str | None = None
    customizations: tuple[ClientPlugin, ...] | None = None


class Changeset(Wire, frozen=True, kw_only=True):
    label: str
    uri_template: str
    change_kind: str
    description: str | None = None


class SessionState(Wire, frozen=True, kw_only=True):
    summary: SessionSummary
    lifecycle: Lifecycle
    turns: tuple[Turn, ...]
    creation_error: ErrorInfo | None = None
    server_tools: tuple[ToolDefinition, ...] | None = None
    active_client: ActiveClient | None = None
    active_turn: ActiveTurn | None = None
    steering_message: PendingMessage | None = None
    queued_messages: tuple[PendingMessage, ...] | None = None
    input_requests: tuple[InputRequest, ...] | None = None
    config: SessionConfigState | None = None
    customizations: tuple[Customization, ...] | None = None
    changesets: tuple[Changeset, ...] | None = None
    meta: Extra | None = msgspec.field(default=None, name="_meta")
