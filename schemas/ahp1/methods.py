"""Commands and notifications of AHP 0.9 and 1.x, as far as they differ from those of 0.3.0.

`initialize`, `ping`, `reconnect`, `subscribe` and `unsubscribe` are the same in all versions.
A method without a frame here is answered with `METHOD_NOT_FOUND`.
"""

from typing import TypeAlias

import msgspec

from session_server.schemas.ahp import frames
from session_server.schemas.ahp.commands import (
    Implementation,
    Params,
    RootParams,
    Snapshot,
)
from session_server.schemas.ahp.envelopes import ActionOrigin, EnvelopeMeta
from session_server.schemas.ahp.session import ChangesSummary, ProjectInfo, SummaryMeta
from session_server.schemas.ahp1.actions import ClientAction, HostAction
from session_server.schemas.ahp1.state import ClientEntry, ListedChat, Moment, SessionSummary
from session_server.schemas.wire import Count, Extra, Seq, Uri, Wire

# From clients


class ListSessionsParams(RootParams, frozen=True, kw_only=True):
    limit: Count | None = None
    cursor: str | None = None


class ListSessions(frames.RequestBase, frozen=True, kw_only=True, tag="listSessions"):
    params: ListSessionsParams


class CreateSessionParams(Params, frozen=True, kw_only=True):
    provider: str | None = None
    working_directories: tuple[Uri, ...] | None = None
    config: Extra | None = None
    active_client: ClientEntry | None = None


class CreateSession(frames.RequestBase, frozen=True, kw_only=True, tag="createSession"):
    params: CreateSessionParams


class FetchTurnsParams(Params, frozen=True, kw_only=True):
    """`channel` is a chat."""

    cursor: str | None = None


class FetchTurns(frames.RequestBase, frozen=True, kw_only=True, tag="fetchTurns"):
    params: FetchTurnsParams


ResolveSessionConfig: TypeAlias = frames.ResolveSessionConfig
Completions: TypeAlias = frames.Completions


class DispatchActionParams(Params, frozen=True, kw_only=True):
    client_seq: Count
    action: ClientAction


class DispatchAction(
    frames.ClientNotificationBase, frozen=True, kw_only=True, tag="dispatchAction"
):
    params: DispatchActionParams


ClientFrame: TypeAlias = (
    frames.Initialize
    | frames.Ping
    | frames.Reconnect
    | frames.Subscribe
    | frames.Unsubscribe
    | ListSessions
    | CreateSession
    | frames.DisposeSession
    | FetchTurns
    | ResolveSessionConfig
    | Completions
    | frames.PresenceUpdate
    | DispatchAction
)


# To clients


class InitializeResult(Wire, frozen=True, kw_only=True):
    protocol_version: str
    server_seq: Seq
    snapshots: tuple[Snapshot, ...]
    server_info: Implementation | None = None
    default_directory: Uri | None = None
    completion_trigger_characters: tuple[str, ...] | None = None
    terminal_command_prefix: str | None = None
    meta: Extra | None = msgspec.field(default=None, name="_meta")


class FetchTurnsResult(Wire, frozen=True, kw_only=True):
    """Empty: turns come as actions before it, and here all of them are in every snapshot."""


class ListSessionsResult(Wire, frozen=True, kw_only=True):
    items: tuple[SessionSummary, ...]
    next_cursor: str | None = None


class Envelope(Wire, frozen=True, kw_only=True):
    channel: Uri
    action: HostAction
    server_seq: Seq
    origin: ActionOrigin | None = None
    meta: EnvelopeMeta | None = msgspec.field(default=None, name="_meta")


class ActionNotification(frames.NotificationBase, frozen=True, kw_only=True, tag="action"):
    params: Envelope


class SessionAddedParams(Params, frozen=True, kw_only=True):
    summary: SessionSummary


class SessionAdded(frames.NotificationBase, frozen=True, kw_only=True, tag="root/sessionAdded"):
    params: SessionAddedParams


class SummaryChanges(Wire, frozen=True, kw_only=True):
    """The fields of a summary that are others now; an empty `activity` means that there is none."""

    title: str | msgspec.UnsetType = msgspec.UNSET
    status: Count | msgspec.UnsetType = msgspec.UNSET
    modified_at: Moment | msgspec.UnsetType = msgspec.UNSET
    activity: str | msgspec.UnsetType = msgspec.UNSET
    project: ProjectInfo | msgspec.UnsetType = msgspec.UNSET
    working_directories: tuple[Uri, ...] | msgspec.UnsetType = msgspec.UNSET
    changes: ChangesSummary | msgspec.UnsetType = msgspec.UNSET
    chats: tuple[ListedChat, ...] | msgspec.UnsetType = msgspec.UNSET
    meta: SummaryMeta | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="_meta")


class SessionSummaryChangedParams(Params, frozen=True, kw_only=True):
    session: Uri
    changes: SummaryChanges


class SessionSummaryChanged(
    frames.NotificationBase, frozen=True, kw_only=True, tag="root/sessionSummaryChanged"
):
    params: SessionSummaryChangedParams


HostNotification: TypeAlias = (
    ActionNotification | SessionAdded | frames.SessionRemoved | SessionSummaryChanged
)
