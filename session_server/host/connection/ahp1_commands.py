"""Commands of clients of AHP 0.9 and 1.x after the handshake."""

from collections.abc import Callable
from functools import partial
from typing import Any

from session_server.host.connection import commands
from session_server.host.connection.ahp1_client import Ahp1Client
from session_server.host.connection.peer import Peer
from session_server.reducers.ahp1.snapshots import session_summary
from session_server.reducers.batches import has_open_work
from session_server.reducers.state.chat import chat_of
from session_server.reducers.state.client_entries import active_client
from session_server.schemas.ahp import frames
from session_server.schemas.ahp.commands import (
    CompletionsResult,
    CreateSessionParams,
    ResolveSessionConfigResult,
    SubscribeResult,
)
from session_server.schemas.ahp.session import SessionConfigSchema
from session_server.schemas.ahp1 import methods
from session_server.schemas.errors import CommandError, ErrorCode, not_permitted
from session_server.schemas.limits import SESSIONS_PER_PAGE
from session_server.schemas.record import SessionRecord

STILL_OPEN = (
    "Something is open in this session: a question, or a call that waits for an answer. Answer or"
    " cancel it first. An owner can delete the session in the page or on the command line."
)


def _later(peer: Peer) -> Ahp1Client:
    assert peer.ahp1 is not None
    return peer.ahp1


def subscribe(peer: Peer, frame: frames.Subscribe) -> None:
    snapshot = _later(peer).subscribe(peer.principal, frame.params.channel)
    peer.replies.answer(frame.id, SubscribeResult(snapshot=snapshot))


def unsubscribe(peer: Peer, frame: frames.Unsubscribe) -> None:
    _later(peer).unsubscribe(frame.params.channel)
    if frame.id is not None:
        peer.replies.answer(frame.id, None)


def create_session(peer: Peer, frame: methods.CreateSession) -> None:
    """`config` is left out: sessions here have no settings that are chosen beforehand."""
    params = frame.params
    target = _later(peer).target(params.channel)
    if target.on_chat:
        raise CommandError(ErrorCode.INVALID_PARAMS, f"{params.channel} is not a session URI.")
    client = params.active_client
    directories = params.working_directories or ()
    made = CreateSessionParams(
        channel=target.uri,
        provider=params.provider,
        working_directory=directories[0] if directories else None,
        active_client=None if client is None else active_client(client),
    )
    request = frames.CreateSession(jsonrpc="2.0", id=frame.id, params=made)
    commands.create_session(peer, request)


def dispose_session(peer: Peer, frame: frames.DisposeSession) -> None:
    """Some of these clients dispose of sessions that they still show; nothing open is lost so."""
    uri = _later(peer).target(frame.params.channel).uri
    channel = peer.channel(uri)
    record = None if channel is None else channel.committed
    if isinstance(record, SessionRecord) and has_open_work(record):
        raise not_permitted(STILL_OPEN)
    peer.host.lifecycle.dispose(
        peer.principal,
        uri,
        done=partial(peer.replies.answer, frame.id, None),
        failed=partial(commands.not_saved, peer, frame.id),
    )


def list_sessions(peer: Peer, frame: methods.ListSessions) -> None:
    """The latest first. A cursor names the last session of a page, by its time and its URI."""
    params = frame.params
    listed = sorted((_sort_key(r), r) for r in peer.host.overviews(peer.principal))
    if params.cursor is not None:
        after = _decoded(params.cursor)
        listed = [(place, record) for place, record in listed if place > after]
    size = SESSIONS_PER_PAGE if params.limit is None else min(params.limit, SESSIONS_PER_PAGE)
    page, rest = listed[:size], listed[size:]
    result = methods.ListSessionsResult(
        items=tuple(session_summary(record, _later(peer).variant) for _, record in page),
        next_cursor=_cursor(page[-1][0]) if page and rest else None,
    )
    peer.replies.answer(frame.id, result)


Place = tuple[int, str]


def _sort_key(record: SessionRecord) -> Place:
    """Sort key, the latest first; unique."""
    return (-chat_of(record).modified_at, record.public.summary.resource)


def _cursor(place: Place) -> str:
    return f"{-place[0]}:{place[1]}"


def _decoded(cursor: str) -> Place:
    at, colon, uri = cursor.partition(":")
    if not colon or not at.isascii() or not at.isdigit():
        raise CommandError(ErrorCode.INVALID_PARAMS, "This cursor is not one of this host's.")
    return (-int(at), uri)


def fetch_turns(peer: Peer, frame: methods.FetchTurns) -> None:
    """Every snapshot has all turns, so there are none to fetch and there is no cursor."""
    target = _later(peer).target(frame.params.channel)
    if not target.on_chat or peer.channel(target.uri) is None:
        raise CommandError(ErrorCode.NOT_FOUND, f"There is no chat {frame.params.channel}.")
    if frame.params.cursor is not None:
        raise CommandError(ErrorCode.INVALID_PARAMS, "This cursor is not one of this host's.")
    peer.replies.answer(frame.id, methods.FetchTurnsResult())


def resolve_session_config(peer: Peer, frame: methods.ResolveSessionConfig) -> None:
    schema = SessionConfigSchema(type="object", properties={})
    peer.replies.answer(frame.id, ResolveSessionConfigResult(schema=schema, values={}))


def completions(peer: Peer, frame: methods.Completions) -> None:
    peer.replies.answer(frame.id, CompletionsResult(items=()))


AHP1_COMMANDS: dict[type, Callable[[Peer, Any], None]] = {
    frames.Ping: commands.ping,
    frames.Subscribe: subscribe,
    frames.Unsubscribe: unsubscribe,
    frames.DisposeSession: dispose_session,
    frames.PresenceUpdate: commands.presence_update,
    methods.CreateSession: create_session,
    methods.ListSessions: list_sessions,
    methods.FetchTurns: fetch_turns,
    methods.ResolveSessionConfig: resolve_session_config,
    methods.Completions: completions,
}
