"""The public state of a session and of `ahp-root://`, as AHP 0.3.0 shows it."""

from enum import IntFlag, StrEnum
from typing import Literal, TypeAlias

import msgspec

from session_server.schemas.ahp.customizations import ClientPlugin, Customization, ProtectedResource
from session_server.schemas.ahp.questions import InputRequest
from session_server.schemas.ahp.tool_calls import ToolDefinition
from session_server.schemas.ahp.turn_messages import PendingMessage
from session_server.schemas.ahp.turns import ActiveTurn, Turn
from session_server.schemas.wire import Count, ErrorInfo, Extra, Json, Millis, Uri, Wire

PropertyType = Literal["string", "number", "boolean", "array", "object"]


class ConfigPropertySchema(Wire, frozen=True, kw_only=True):
    type: PropertyType
    title: str
    description: str | None = None
    default: Json = None
    enum: tuple[str, ...] | None = None
    enum_labels: tuple[str, ...] | None = None
    enum_descriptions: tuple[str, ...] | None = None
    read_only: bool | None = None
    items: "ConfigPropertySchema | None" = None
    properties: "dict[str, ConfigPropertySchema] | None" = None
    required: tuple[str, ...] | None = None


class SessionConfigPropertySchema(ConfigPropertySchema, frozen=True, kw_only=True):
    enum_dynamic: bool | None = None
    session_mutable: bool | None = None


class ConfigSchema(Wire, frozen=True, kw_only=True):
    type: Literal["object"]
    properties: dict[str, ConfigPropertySchema]
    required: tuple[str, ...] | None = None


class SessionConfigSchema(Wire, frozen=True, kw_only=True):
    type: Literal["object"]
    properties: dict[str, SessionConfigPropertySchema]
    required: tuple[str, ...] | None = None


class RootConfigState(Wire, frozen=True, kw_only=True):
    schema: ConfigSchema
    values: Extra


class SessionConfigState(Wire, frozen=True, kw_only=True):
    schema: SessionConfigSchema
    values: Extra


class Status(IntFlag):
    """Bits 0–4 are the activity of the session, derived; bits 5–6 are set by people."""

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
    """Host extension, in lists of sessions: no asker waits for the answers to open questions."""

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


class PolicyState(StrEnum):
    ENABLED = "enabled"
    DISABLED = "disabled"
    UNCONFIGURED = "unconfigured"


class ModelInfo(Wire, frozen=True, kw_only=True):
    id: str
    provider: str
    name: str
    max_context_window: Count | None = None
    supports_vision: bool | None = None
    policy_state: PolicyState | None = None
    config_schema: ConfigSchema | None = None
    meta: Extra | None = msgspec.field(default=None, name="_meta")


class AgentInfo(Wire, frozen=True, kw_only=True):
    provider: str
    display_name: str
    description: str
    models: tuple[ModelInfo, ...]
    protected_resources: tuple[ProtectedResource, ...] | None = None
    customizations: tuple[Customization, ...] | None = None


class TerminalClientClaim(Wire, frozen=True, kw_only=True, tag_field="kind", tag="client"):
    client_id: str


class TerminalSessionClaim(Wire, frozen=True, kw_only=True, tag_field="kind", tag="session"):
    session: Uri
    turn_id: str | None = None
    tool_call_id: str | None = None


TerminalClaim: TypeAlias = TerminalClientClaim | TerminalSessionClaim


class TerminalInfo(Wire, frozen=True, kw_only=True):
    resource: Uri
    title: str
    claim: TerminalClaim
    exit_code: int | None = None


class RootState(Wire, frozen=True, kw_only=True):
    agents: tuple[AgentInfo, ...]
    active_sessions: Count | None = None
    terminals: tuple[TerminalInfo, ...] | None = None
    config: RootConfigState | None = None
