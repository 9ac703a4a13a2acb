"""Parameters and results of commands, and of presence, which is an extension of this host."""

from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from session_server.schemas.ahp.actions import Action, ClientAction
from session_server.schemas.ahp.envelopes import ActionEnvelope
from session_server.schemas.ahp.session import (
    ActiveClient,
    AgentSelection,
    ModelSelection,
    SessionConfigSchema,
    SessionSummary,
)
from session_server.schemas.ahp.turn_messages import Attachment
from session_server.schemas.ahp.turns import Turn
from session_server.schemas.limits import ID_CHARS
from session_server.schemas.principals import Author, Role
from session_server.schemas.wire import Count, Extra, Seq, Uri, Wire

SESSION_PREFIX = "ahp-session:/"
ROOM_PREFIX = "ahp-presence:/"

RelayedId: TypeAlias = Annotated[str, msgspec.Meta(max_length=ID_CHARS)]
"""Bounded where it is decoded: what is relayed meets no rule and no bound of a session."""


class EditingPlace(Wire, frozen=True, kw_only=True):
    request_id: RelayedId
    question_id: RelayedId


class PresenceUpdateParams(Wire, frozen=True, kw_only=True):
    channel: Uri
    editing: EditingPlace | None = None
    idle: bool | None = None
    name: str | None = None


class Present(Wire, frozen=True, kw_only=True):
    """`role` lets a client explain why controls are disabled, and show who can answer."""

    client_id: str
    by: Author
    role: Role | None = None
    editing: EditingPlace | None = None
    idle: bool | None = None


class PresenceChangedParams(Wire, frozen=True, kw_only=True):
    channel: Uri
    present: tuple[Present, ...]


ROOT_CHANNEL: Final = "ahp-root://"
PROTOCOL_VERSION: Final = "0.3.0"


class Params(Wire, frozen=True, kw_only=True):
    """Every command names its channel; connection-level ones name the root."""

    channel: Uri


class RootParams(Wire, frozen=True, kw_only=True):
    channel: Literal["ahp-root://"]


class Snapshot(Wire, frozen=True, kw_only=True):
    """The state of a channel, encoded once for all who ask: `RootState` or `SessionState`.

    Every later action has `serverSeq > fromSeq`.
    """

    resource: Uri
    state: msgspec.Raw
    from_seq: Seq


class ClientCapabilities(Wire, frozen=True, kw_only=True):
    mcp_apps: Extra | None = None


class Implementation(Wire, frozen=True, kw_only=True):
    """The name of a program; 0.3.0 does not know it."""

    name: str
    version: str | None = None
    title: str | None = None


class InitializeParams(RootParams, frozen=True, kw_only=True):
    """One shape for all versions: which one is spoken follows from it."""

    protocol_versions: tuple[str, ...]
    client_id: str
    initial_subscriptions: tuple[Uri, ...] | None = None
    locale: str | None = None
    capabilities: ClientCapabilities | None = None
    client_info: Implementation | None = None
    meta: Extra | None = msgspec.field(default=None, name="_meta")


class TelemetryCapabilities(Wire, frozen=True, kw_only=True):
    logs: Uri | None = None
    traces: Uri | None = None
    metrics: Uri | None = None


class InitializeResult(Wire, frozen=True, kw_only=True):
    protocol_version: str
    server_seq: Seq
    snapshots: tuple[Snapshot, ...]
    default_directory: Uri | None = None
    completion_trigger_characters: tuple[str, ...] | None = None
    telemetry: TelemetryCapabilities | None = None


class ReconnectParams(Wire, frozen=True, kw_only=True):
    """Some clients name no channel here."""

    channel: Literal["ahp-root://"] | None = None
    client_id: str
    last_seen_server_seq: Seq
    subscriptions: tuple[Uri, ...]


class ReconnectReplay(Wire, frozen=True, kw_only=True, tag_field="type", tag="replay"):
    actions: tuple[ActionEnvelope, ...]
    missing: tuple[Uri, ...]


class ReconnectSnapshot(Wire, frozen=True, kw_only=True, tag_field="type", tag="snapshot"):
    snapshots: tuple[Snapshot, ...]


ReconnectResult: TypeAlias = ReconnectReplay | ReconnectSnapshot


class SubscribeResult(Wire, frozen=True, kw_only=True):
    """Stateless channels, such as presence, have no snapshot."""

    snapshot: Snapshot | None = None


class DispatchActionParams(Params, frozen=True, kw_only=True):
    client_seq: Count
    action: ClientAction


class AgentDispatchActionParams(Params, frozen=True, kw_only=True):
    """The same from a connection of role `agent`, which may dispatch host actions too."""

    client_seq: Count
    action: Action


class UndecodedDispatchParams(Params, frozen=True, kw_only=True):
    """What is left of a dispatch whose action could not be decoded: enough to refuse it."""

    client_seq: Count
    action: msgspec.Raw


class AuthenticateParams(RootParams, frozen=True, kw_only=True):
    resource: str
    token: str


class AuthenticateResult(Wire, frozen=True, kw_only=True):
    """Empty: the answer itself means that the token was accepted."""


class ListSessionsParams(RootParams, frozen=True, kw_only=True):
    filter: Extra | None = None


class ListSessionsResult(Wire, frozen=True, kw_only=True):
    items: tuple[SessionSummary, ...]


class ResolveSessionConfigParams(RootParams, frozen=True, kw_only=True):
    provider: str | None = None
    working_directory: Uri | None = None
    config: Extra | None = None


class ResolveSessionConfigResult(Wire, frozen=True, kw_only=True):
    schema: SessionConfigSchema
    values: Extra


class SessionConfigCompletionsParams(ResolveSessionConfigParams, frozen=True, kw_only=True):
    property: str
    query: str | None = None


class ConfigValueItem(Wire, frozen=True, kw_only=True):
    value: str
    label: str
    description: str | None = None


class SessionConfigCompletionsResult(Wire, frozen=True, kw_only=True):
    items: tuple[ConfigValueItem, ...]


class ForkSource(Wire, frozen=True, kw_only=True):
    session: Uri
    turn_id: str


class CreateSessionParams(Params, frozen=True, kw_only=True):
    provider: str | None = None
    model: ModelSelection | None = None
    agent: AgentSelection | None = None
    working_directory: Uri | None = None
    fork: ForkSource | None = None
    config: Extra | None = None
    active_client: ActiveClient | None = None


class FetchTurnsParams(Params, frozen=True, kw_only=True):
    before: str | None = None
    limit: Count | None = None


class FetchTurnsResult(Wire, frozen=True, kw_only=True):
    turns: tuple[Turn, ...]
    has_more: bool


class CompletionsParams(Params, frozen=True, kw_only=True):
    kind: str
    text: str
    offset: Count


class CompletionItem(Wire, frozen=True, kw_only=True):
    insert_text: str
    attachment: Attachment
    range_start: Count | None = None
    range_end: Count | None = None


class CompletionsResult(Wire, frozen=True, kw_only=True):
    items: tuple[CompletionItem, ...]
