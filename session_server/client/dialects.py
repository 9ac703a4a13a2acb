"""What differs between the versions of AHP that the client speaks: 0.3.0, and 0.9 with 1.x.

A dialect makes mirrors from snapshots, decodes actions and the list of sessions, and encodes own
actions and commands. Everything else is the same, and programs see the same shapes with either.
"""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from session_server.client.conversations import (
    Conversation,
    millis,
    read,
    summary_fields,
    summary_of,
)
from session_server.client.errors import NotUnderstood, Unsupported
from session_server.client.json_rpc import Delivery
from session_server.client.mirror import Mirror
from session_server.client.mirror_kinds import (
    ConversationMirror,
    RootMirror,
    SessionMirror,
    ShownRootMirror,
)
from session_server.reducers.ahp1.snapshots import moment
from session_server.reducers.version_negotiation import Family, negotiated
from session_server.schemas.ahp import actions as ahp
from session_server.schemas.ahp import frames
from session_server.schemas.ahp.commands import (
    ROOT_CHANNEL,
    CreateSessionParams,
    FetchTurnsParams,
    ListSessionsParams,
    ListSessionsResult,
    Snapshot,
)
from session_server.schemas.ahp.envelopes import ActionEnvelope, EnvelopeMeta
from session_server.schemas.ahp.frames import SessionAddedParams, SessionSummaryChangedParams
from session_server.schemas.ahp.session import SessionSummary
from session_server.schemas.ahp1 import actions as ahp1
from session_server.schemas.ahp1 import methods
from session_server.schemas.codec import Decoder
from session_server.schemas.wire import Extra, Unknown, Uri

Command = tuple[Any, Any]
"""The class of a frame, and its params."""

Received = tuple[ActionEnvelope, Extra | None]
"""An accepted action, and the JSON object that it came as where mirrors reduce that."""

Listed = tuple[tuple[SessionSummary, ...], str | None]
"""A page of the list of sessions, and the cursor that asks for the next."""


def _envelope(delivery: Delivery, action: Any) -> ActionEnvelope:
    return ActionEnvelope(
        channel=delivery.channel,
        action=action,
        server_seq=delivery.server_seq,
        origin=delivery.origin,
        meta=read(delivery.meta, EnvelopeMeta | None),  # other hosts may use it for something else
    )


# 0.3.0

_decode_action: Decoder[ahp.Action] = Decoder(ahp.Action)
_decode_listed: Decoder[ListSessionsResult] = Decoder(ListSessionsResult)
_decode_added: Decoder[SessionAddedParams] = Decoder(SessionAddedParams)
_decode_changed: Decoder[SessionSummaryChangedParams] = Decoder(SessionSummaryChangedParams)


class Ahp03:
    def mirror(self, client_id: str, snapshot: Snapshot, chat: Uri | None) -> Mirror[Any]:
        """Of the root or a session, and of a chat of it. Raises `NotUnderstood`."""
        if chat is not None:
            raise Unsupported("AHP 0.3.0 knows no chats: a session is one conversation.")
        kind = RootMirror if snapshot.resource == ROOT_CHANNEL else SessionMirror
        return kind(client_id, snapshot)

    def received(self, delivery: Delivery) -> Received:
        """Raises `DecodingError` for an action that cannot be reduced."""
        return _envelope(delivery, _decode_action(bytes(delivery.action))), None

    def outgoing(self, mirror: Mirror[Any], action: Any, at: int) -> tuple[Uri, Any]:  # noqa: ARG002
        """The channel and the action to dispatch there. Raises `Unsupported`."""
        return mirror.channel, action

    def create_session(self, wanted: CreateSessionParams) -> Command:
        return frames.CreateSession, wanted

    def fetch_turns(self, uri: Uri, before: str | None, limit: int | None) -> Command:
        return frames.FetchTurns, FetchTurnsParams(channel=uri, before=before, limit=limit)

    def list_sessions(self, cursor: str | None) -> Command:  # noqa: ARG002
        return frames.ListSessions, ListSessionsParams(channel=ROOT_CHANNEL)

    def listed(self, result: bytes) -> Listed:
        return _decode_listed(result).items, None

    def added(self, params: bytes) -> SessionSummary:
        return _decode_added(params).summary

    def changed(self, params: bytes, known: Mapping[Uri, SessionSummary]) -> SessionSummary | None:
        """The summary that an announcement changes, if it is one of the known."""
        change = _decode_changed(params)
        summary = known.get(change.session)
        if summary is None:
            return None
        changes = msgspec.structs.asdict(change.changes)
        fields = {name: value for name, value in changes.items() if value is not msgspec.UNSET}
        if fields.get("activity") == "":
            fields["activity"] = None
        return msgspec.structs.replace(summary, **fields)


# 0.9 and 1.x


class UnknownAction(Unknown):
    """An action that has no shape here, as it came; mirrors reduce it all the same."""

    __slots__ = ()


_decode_document: Decoder[Extra] = Decoder(Extra)


def action_of(document: Extra) -> Any:
    """In its shape, if it has one."""
    return read(document, ahp1.HostAction) or UnknownAction(document)


ON_SESSION = (
    ahp.TitleChanged,
    ahp.IsReadChanged,
    ahp.IsArchivedChanged,
    ahp.ConfigChanged,
    ahp1.ActiveClientSet,
    ahp1.ActiveClientRemoved,
    ahp1.CustomizationToggled,
)
ON_CHAT: dict[type, type] = {
    ahp.TurnStarted: ahp1.TurnStarted,
    ahp.TurnCancelled: ahp1.TurnCancelled,
    ahp.Truncated: ahp1.Truncated,
    ahp.ToolCallConfirmed: ahp1.ToolCallConfirmed,
    ahp.ToolCallComplete: ahp1.ToolCallComplete,
    ahp.ToolCallResultConfirmed: ahp1.ToolCallResultConfirmed,
    ahp.ToolCallContentChanged: ahp1.ToolCallContentChanged,
    ahp.InputAnswerChanged: ahp1.InputAnswerChanged,
    ahp.InputCompleted: ahp1.InputCompleted,
    ahp.PendingMessageSet: ahp1.PendingMessageSet,
    ahp.PendingMessageRemoved: ahp1.PendingMessageRemoved,
    ahp.QueuedMessagesReordered: ahp1.QueuedMessagesReordered,
}
"""What a client may dispatch in all versions, and its later name."""

ONLY_HERE = (ahp1.DraftChanged, ahp1.ChatIsReadChanged, ahp1.ChatIsArchivedChanged)


class Ahp1:
    def mirror(self, client_id: str, snapshot: Snapshot, chat: Uri | None) -> Mirror[Any]:
        if snapshot.resource == ROOT_CHANNEL:
            return ShownRootMirror(client_id, snapshot)
        return ConversationMirror(client_id, snapshot, chat)

    def received(self, delivery: Delivery) -> Received:
        document = _decode_document(bytes(delivery.action))
        return _envelope(delivery, action_of(document)), document

    def outgoing(self, mirror: Mirror[Any], action: Any, at: int) -> tuple[Uri, Any]:
        if mirror.channel == ROOT_CHANNEL or isinstance(action, ON_SESSION):
            return mirror.channel, action
        assert isinstance(mirror, ConversationMirror)
        chat, kind = mirror.chat, ON_CHAT.get(type(action))
        if kind is None and not isinstance(action, (*ON_CHAT.values(), *ONLY_HERE)):
            tag = action.__struct_config__.tag
            raise Unsupported(f"AHP 0.9 and 1.x have no {tag} that a client may dispatch.")
        if chat is None or chat not in mirror.positions:
            raise Unsupported("This session has no chat yet.")
        return chat, action if kind is None else _outgoing_action(kind, action, mirror, at)

    def create_session(self, wanted: CreateSessionParams) -> Command:
        if wanted.model is not None or wanted.fork is not None:
            raise Unsupported("AHP 0.9 and 1.x cannot create a session with a model or as a fork.")
        directory = wanted.working_directory
        params = methods.CreateSessionParams(
            channel=wanted.channel,
            provider=wanted.provider,
            working_directories=None if directory is None else (directory,),
            config=wanted.config,
        )
        return methods.CreateSession, params

    def fetch_turns(self, uri: Uri, before: str | None, limit: int | None) -> None:
        """Turns are fetched into the state of a chat."""

    def list_sessions(self, cursor: str | None) -> Command:
        return methods.ListSessions, methods.ListSessionsParams(channel=ROOT_CHANNEL, cursor=cursor)

    def listed(self, result: bytes) -> Listed:
        document = _decode_document(result)
        with _understood("The list of sessions"):
            return tuple(map(summary_of, document["items"])), document.get("nextCursor")

    def added(self, params: bytes) -> SessionSummary:
        document = _decode_document(params)
        with _understood("The announcement of a session"):
            return summary_of(document["summary"])

    def changed(self, params: bytes, known: Mapping[Uri, SessionSummary]) -> SessionSummary | None:
        document = _decode_document(params)
        with _understood("The announcement of a change"):
            summary = known.get(document["session"])
            if summary is None:
                return None
            return msgspec.structs.replace(summary, **summary_fields(document["changes"]))


@contextmanager
def _understood(what: str) -> Generator[None]:
    """For documents that are read without a schema."""
    try:
        yield
    except (LookupError, TypeError, AttributeError) as error:
        raise NotUnderstood(f"{what} is not AHP: {error!r}") from error


def _outgoing_action(kind: type, action: Any, mirror: ConversationMirror, at: int) -> Any:
    """Under its later name, with the times that are asked for since."""
    fields = msgspec.structs.asdict(action)
    if kind is ahp1.TurnStarted:
        fields["started_at"] = moment(at)
    if kind is ahp1.TurnCancelled:
        assert isinstance(mirror.state, Conversation)
        turn = (mirror.state.chat or {}).get("activeTurn", {})
        fields["duration"] = max(0, at - (millis(turn.get("startedAt")) or at))
    return kind(**fields)


Dialect = Ahp03 | Ahp1

DIALECTS: dict[Family, Dialect] = {Family.V0_3: Ahp03(), Family.V1: Ahp1()}


def dialect_of(version: str) -> Dialect:
    """Raises `CommandError` if we do not speak that version."""
    return DIALECTS[negotiated((version,)).family]
