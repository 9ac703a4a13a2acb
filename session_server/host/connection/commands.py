"""Commands of a client after the handshake."""

from collections.abc import Callable
from functools import partial
from typing import Any

from session_server.host.connection.peer import Peer, rpc_error
from session_server.host.lifecycle import loaded_record
from session_server.reducers.state.opening import page_of_turns
from session_server.schemas.ahp import frames
from session_server.schemas.ahp.commands import (
    FetchTurnsResult,
    ListSessionsResult,
    SubscribeResult,
)
from session_server.schemas.codec import encode
from session_server.schemas.errors import CommandError, ErrorCode
from session_server.schemas.limits import TURNS_PER_PAGE

TOO_MUCH_WAITS = "Too much of what you sent is still being written; wait, then send it again."
NO_AUTHENTICATION = "No resource here takes tokens."


def ping(peer: Peer, frame: frames.Ping) -> None:
    peer.replies.answer(frame.id, None)


def subscribe(peer: Peer, frame: frames.Subscribe) -> None:
    """A channel that is already subscribed to has no second snapshot: its actions are complete.

    A client that wants the state again unsubscribes first.
    """
    uri = frame.params.channel
    if peer.subscriptions.has(uri) or peer.subscriptions.join(peer.principal, uri):
        peer.replies.answer(frame.id, SubscribeResult())
        return
    channel = peer.subscriptions.add(peer.principal, uri)
    if channel is None:
        raise peer.host.missing(peer.principal, uri)
    peer.replies.answer(frame.id, SubscribeResult(snapshot=peer.host.snapshot(channel)))


def unsubscribe(peer: Peer, frame: frames.Unsubscribe) -> None:
    peer.subscriptions.remove(frame.params.channel)
    _acknowledge(peer, frame)


def _acknowledge(peer: Peer, frame: frames.ClientNotificationBase) -> None:
    """A notification that came with an id is answered like any request."""
    if frame.id is not None:
        peer.replies.answer(frame.id, None)


def create_session(peer: Peer, frame: frames.CreateSession) -> None:
    """The parameters stay in memory until they are written, and count towards the limit."""
    unsettled = peer.host.allowances.of(peer.principal.id).unsettled
    size = len(encode(frame.params))
    if not unsettled.acquire(size):
        raise CommandError(ErrorCode.CONFLICT, TOO_MUCH_WAITS)

    def done() -> None:
        unsettled.release(size)
        peer.replies.answer(frame.id, None)

    def failed(reason: str) -> None:
        unsettled.release(size)
        not_saved(peer, frame.id, reason)

    try:
        peer.host.lifecycle.create(peer.principal, frame.params, done=done, failed=failed)
    except CommandError:
        unsettled.release(size)
        raise


def dispose_session(peer: Peer, frame: frames.DisposeSession) -> None:
    peer.host.lifecycle.dispose(
        peer.principal,
        frame.params.channel,
        done=partial(peer.replies.answer, frame.id, None),
        failed=partial(not_saved, peer, frame.id),
    )


def not_saved(peer: Peer, request_id: frames.RequestId, reason: str) -> None:
    peer.replies.fail(request_id, rpc_error(CommandError(ErrorCode.INTERNAL_ERROR, reason)))


def list_sessions(peer: Peer, frame: frames.ListSessions) -> None:
    items = tuple(peer.host.summaries(peer.principal))
    peer.replies.answer(frame.id, ListSessionsResult(items=items))


def fetch_turns(peer: Peer, frame: frames.FetchTurns) -> None:
    params = frame.params
    channel = peer.channel(params.channel)
    if channel is None or channel is peer.host.root:
        raise peer.host.missing(peer.principal, params.channel)
    limit = TURNS_PER_PAGE if params.limit is None else min(params.limit, TURNS_PER_PAGE)
    turns, more = page_of_turns(loaded_record(channel).public.turns, params.before, limit)
    peer.replies.answer(frame.id, FetchTurnsResult(turns=turns, has_more=more))


def authenticate(_: Peer, __: frames.Authenticate) -> None:
    raise CommandError(ErrorCode.NOT_FOUND, NO_AUTHENTICATION)


def presence_update(peer: Peer, frame: frames.PresenceUpdate) -> None:
    if frame.params.name is not None:
        peer.choose_name(frame.params.name)
    peer.host.presence.update(frame.params, peer.principal, peer.outbox)
    _acknowledge(peer, frame)


def not_offered(_: Peer, frame: Any) -> None:
    method = frame.__struct_config__.tag
    raise CommandError(ErrorCode.METHOD_NOT_FOUND, f"{method} is not offered here.")


COMMANDS: dict[type, Callable[[Peer, Any], None]] = {
    frames.Ping: ping,
    frames.Subscribe: subscribe,
    frames.Unsubscribe: unsubscribe,
    frames.CreateSession: create_session,
    frames.DisposeSession: dispose_session,
    frames.ListSessions: list_sessions,
    frames.FetchTurns: fetch_turns,
    frames.Authenticate: authenticate,
    frames.ResolveSessionConfig: not_offered,
    frames.SessionConfigCompletions: not_offered,
    frames.Completions: not_offered,
    frames.PresenceUpdate: presence_update,
}
