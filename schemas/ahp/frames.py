"""JSON-RPC 2.0 frames, one per WebSocket text message, distinguished by `method`.

Methods that this host does not offer have no frame here, so that decoding one is already the
answer: `METHOD_NOT_FOUND`.
"""

from typing import Literal, TypeAlias

import msgspec

from session_server.schemas.ahp import commands
from session_server.schemas.ahp.customizations import AuthRequiredReason
from session_server.schemas.ahp.envelopes import ActionEnvelope, RejectionEnvelope
from session_server.schemas.ahp.session import (
    AgentSelection,
    ChangesSummary,
    ModelSelection,
    ProjectInfo,
    SessionSummary,
    SummaryMeta,
)
from session_server.schemas.errors import RpcError
from session_server.schemas.wire import Count, Json, Millis, Uri, Wire

JSONRPC: Literal["2.0"] = "2.0"

RequestId: TypeAlias = int | float | str
"""Chosen by the client; the response carries it unchanged."""


class FrameBase(Wire, frozen=True, kw_only=True, omit_defaults=False):
    """`omit_defaults` is off: the version marker and a `null` result must be on the wire."""

    jsonrpc: Literal["2.0"] = JSONRPC


class RequestBase(Wire, frozen=True, kw_only=True, tag_field="method"):
    """A client must send the version of JSON-RPC."""

    jsonrpc: Literal["2.0"]
    id: RequestId


class ClientNotificationBase(Wire, frozen=True, kw_only=True, tag_field="method"):
    """One that is sent with an id is treated as a request, and answered."""

    jsonrpc: Literal["2.0"]
    id: RequestId | None = None


class NotificationBase(FrameBase, frozen=True, kw_only=True, tag_field="method"):
    """From the host; it has no id because it has no answer."""


# From clients


class Initialize(RequestBase, frozen=True, kw_only=True, tag="initialize"):
    params: commands.InitializeParams


class Ping(RequestBase, frozen=True, kw_only=True, tag="ping"):
    params: commands.RootParams


class Reconnect(RequestBase, frozen=True, kw_only=True, tag="reconnect"):
    params: commands.ReconnectParams


class Subscribe(RequestBase, frozen=True, kw_only=True, tag="subscribe"):
    params: commands.Params


class CreateSession(RequestBase, frozen=True, kw_only=True, tag="createSession"):
    params: commands.CreateSessionParams


class DisposeSession(RequestBase, frozen=True, kw_only=True, tag="disposeSession"):
    params: commands.Params


class ListSessions(RequestBase, frozen=True, kw_only=True, tag="listSessions"):
    params: commands.ListSessionsParams


class FetchTurns(RequestBase, frozen=True, kw_only=True, tag="fetchTurns"):
    params: commands.FetchTurnsParams


class Authenticate(RequestBase, frozen=True, kw_only=True, tag="authenticate"):
    params: commands.AuthenticateParams


class ResolveSessionConfig(RequestBase, frozen=True, kw_only=True, tag="resolveSessionConfig"):
    params: commands.ResolveSessionConfigParams


class SessionConfigCompletions(
    RequestBase, frozen=True, kw_only=True, tag="sessionConfigCompletions"
):
    params: commands.SessionConfigCompletionsParams


class Completions(RequestBase, frozen=True, kw_only=True, tag="completions"):
    params: commands.CompletionsParams


class Unsubscribe(ClientNotificationBase, frozen=True, kw_only=True, tag="unsubscribe"):
    params: commands.Params


class DispatchAction(ClientNotificationBase, frozen=True, kw_only=True, tag="dispatchAction"):
    params: commands.DispatchActionParams


class AgentDispatchAction(ClientNotificationBase, frozen=True, kw_only=True, tag="dispatchAction"):
    params: commands.AgentDispatchActionParams


class PresenceUpdate(ClientNotificationBase, frozen=True, kw_only=True, tag="presence/update"):
    params: commands.PresenceUpdateParams


Command: TypeAlias = (
    Initialize
    | Ping
    | Reconnect
    | Subscribe
    | CreateSession
    | DisposeSession
    | ListSessions
    | FetchTurns
    | Authenticate
    | ResolveSessionConfig
    | SessionConfigCompletions
    | Completions
    | Unsubscribe
    | PresenceUpdate
)
ClientFrame: TypeAlias = Command | DispatchAction
AgentFrame: TypeAlias = Command | AgentDispatchAction


class FrameHead(Wire, frozen=True, kw_only=True):
    """What a refusal of an undecodable frame needs: whom to answer, and what it was about."""

    jsonrpc: Json = None
    id: Json = None
    method: Json = None
    params: msgspec.Raw = msgspec.Raw(b"null")


# To clients


class Result(FrameBase, frozen=True, kw_only=True):
    """A void result is `null`, never missing."""

    id: RequestId
    result: Json


class Failure(FrameBase, frozen=True, kw_only=True):
    """`id` is `null` when the request's could not be read."""

    id: RequestId | None
    error: RpcError


class ActionNotification(NotificationBase, frozen=True, kw_only=True, tag="action"):
    params: ActionEnvelope


class RejectionNotification(NotificationBase, frozen=True, kw_only=True, tag="action"):
    params: RejectionEnvelope


class SessionAddedParams(commands.Params, frozen=True, kw_only=True):
    summary: SessionSummary


class SessionRemovedParams(commands.Params, frozen=True, kw_only=True):
    session: Uri


class SummaryChanges(Wire, frozen=True, kw_only=True):
    """The fields of a summary that changed; none is ever `null`.

    `activity` and `_meta` are empty where there is none any more. That another field was cleared
    cannot be sent: what is left out has not changed.
    """

    title: str | msgspec.UnsetType = msgspec.UNSET
    status: Count | msgspec.UnsetType = msgspec.UNSET
    modified_at: Millis | msgspec.UnsetType = msgspec.UNSET
    activity: str | msgspec.UnsetType = msgspec.UNSET
    project: ProjectInfo | msgspec.UnsetType = msgspec.UNSET
    model: ModelSelection | msgspec.UnsetType = msgspec.UNSET
    agent: AgentSelection | msgspec.UnsetType = msgspec.UNSET
    working_directory: Uri | msgspec.UnsetType = msgspec.UNSET
    changes: ChangesSummary | msgspec.UnsetType = msgspec.UNSET
    meta: SummaryMeta | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="_meta")


class SessionSummaryChangedParams(commands.Params, frozen=True, kw_only=True):
    session: Uri
    changes: SummaryChanges


class AuthRequiredParams(commands.Params, frozen=True, kw_only=True):
    resource: str
    reason: AuthRequiredReason | None = None


class SessionAdded(NotificationBase, frozen=True, kw_only=True, tag="root/sessionAdded"):
    params: SessionAddedParams


class SessionRemoved(NotificationBase, frozen=True, kw_only=True, tag="root/sessionRemoved"):
    params: SessionRemovedParams


class SessionSummaryChanged(
    NotificationBase, frozen=True, kw_only=True, tag="root/sessionSummaryChanged"
):
    params: SessionSummaryChangedParams


class AuthRequired(NotificationBase, frozen=True, kw_only=True, tag="auth/required"):
    params: AuthRequiredParams


class PresenceChanged(NotificationBase, frozen=True, kw_only=True, tag="presence/changed"):
    params: commands.PresenceChangedParams


HostNotification: TypeAlias = (
    ActionNotification
    | SessionAdded
    | SessionRemoved
    | SessionSummaryChanged
    | AuthRequired
    | PresenceChanged
)
HostFrame: TypeAlias = Result | Failure | RejectionNotification | HostNotification
