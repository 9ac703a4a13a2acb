"""How a connection begins: `initialize` for who is new, `reconnect` for who comes back.

A new client is durable before it is answered; frames that come meanwhile wait, in their order.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from session_server.host.channel import Channel
from session_server.host.channel_kinds import KnownClient
from session_server.host.connection.peer import Peer
from session_server.host.connection.subscriptions import check_number
from session_server.host.errors import CloseCode, CommandError, not_permitted
from session_server.host.presence import session_of
from session_server.schemas.ahp import frames
from session_server.schemas.ahp.commands import (
    PROTOCOL_VERSION,
    InitializeResult,
    ReconnectSnapshot,
)
from session_server.schemas.errors import ErrorCode, Refusal, RpcError, UnsupportedVersionData
from session_server.schemas.limits import FRAMES_BEFORE_HANDSHAKE
from session_server.schemas.wire import Uri, Wire


class ReplayedActions(Wire, frozen=True, kw_only=True, tag_field="type", tag="replay"):
    """`ReconnectReplay` with envelopes that were encoded when they were first sent."""

    actions: tuple[msgspec.Raw, ...]
    missing: tuple[Uri, ...]


class Handshake:
    """`waiting` holds the frames that came while it is being written, and otherwise nothing."""

    def __init__(self, peer: Peer, receive: Callable[[bytes], None]) -> None:
        self.waiting: list[bytes] | None = None
        self.is_abandoned = False
        self._peer = peer
        self._held = peer.host.allowances.of(peer.principal.id).held
        self._receive = receive

    def initialize(self, frame: frames.Initialize) -> None:
        params = frame.params
        if PROTOCOL_VERSION not in params.protocol_versions:
            raise CommandError(
                ErrorCode.UNSUPPORTED_PROTOCOL_VERSION,
                f"This host speaks AHP {PROTOCOL_VERSION}.",
                UnsupportedVersionData(supported_versions=(PROTOCOL_VERSION,)),
                closing=CloseCode.UNSUPPORTED_VERSION,
            )
        wanted = params.initial_subscriptions or ()
        check_number(wanted)
        self._peer.bind(params.client_id)
        self.waiting = []
        welcome = partial(self._welcome, frame.id, wanted)
        self._know(frame.id, partial(self._when_settled, wanted, welcome))

    def _when_settled(self, wanted: tuple[Uri, ...], then: Callable[[], None]) -> None:
        """Once sessions that are being opened are there, or will not be."""
        sessions = [session_of(uri) or uri for uri in wanted]
        self._peer.host.when_settled(sessions, then)

    def _welcome(self, request_id: frames.RequestId, wanted: tuple[Uri, ...]) -> None:
        peer, host = self._peer, self._peer.host
        if self.is_abandoned:
            return
        peer.arrive()
        channels = peer.subscriptions.add_all(peer.principal, wanted)
        snapshots = tuple(host.snapshot(c) for c in channels.values() if c is not None)
        result = InitializeResult(
            protocol_version=PROTOCOL_VERSION, server_seq=host.position, snapshots=snapshots
        )
        peer.replies.answer(request_id, result)
        self._go_on()

    def _know(self, request_id: frames.RequestId, done: Callable[[], None]) -> None:
        peer = self._peer

        def refused(refusal: Refusal) -> None:
            error = RpcError(code=ErrorCode.PERMISSION_DENIED, message=refusal.message)
            peer.replies.fail(request_id, error)
            self._go_on()

        try:
            peer.host.clients.know(peer.principal, done=done, refused=refused)
        except CommandError:
            self.waiting = None
            raise

    def wait_with(self, text: bytes) -> None:
        assert self.waiting is not None
        if len(self.waiting) >= FRAMES_BEFORE_HANDSHAKE or not self._held.take(len(text)):
            reason = "too many frames before the handshake"
            self._peer.outbox.close(CloseCode.TOO_MANY_REQUESTS, reason)
            return
        self.waiting.append(text)

    def _go_on(self) -> None:
        for text in self._released():
            if not self.is_abandoned:
                self._receive(text)

    def abandon(self) -> None:
        """The other side is gone."""
        self.is_abandoned = True
        self._released()

    def _released(self) -> list[bytes]:
        waiting, self.waiting = self.waiting or [], None
        self._held.give_back(sum(map(len, waiting)))
        return waiting

    def reconnect(self, frame: frames.Reconnect) -> None:
        peer, params, clients = self._peer, frame.params, self._peer.host.clients
        known = clients.find(params.client_id)
        if known is None:
            raise CommandError(ErrorCode.NOT_FOUND, "This clientId is not known; initialize.")
        if known.principal_id != peer.principal.id:
            raise not_permitted(f"The clientId {params.client_id!r} belongs to someone else.")
        check_number(params.subscriptions)
        peer.bind(params.client_id)
        self.waiting = []
        self._when_settled(params.subscriptions, partial(self._resume, frame, known))

    def _resume(self, frame: frames.Reconnect, known: KnownClient) -> None:
        peer, params, clients = self._peer, frame.params, self._peer.host.clients
        if self.is_abandoned:
            return
        peer.arrive()
        channels = peer.subscriptions.add_all(peer.principal, params.subscriptions)
        if clients.is_stale(known):
            clients.know(peer.principal)
        peer.replies.answer(frame.id, self._missed(channels, params.last_seen_server_seq))
        self._go_on()

    def _missed(
        self, channels: dict[Uri, Channel[Any] | None], last_seen: int
    ) -> ReplayedActions | ReconnectSnapshot:
        host = self._peer.host
        found = [channel for channel in channels.values() if channel is not None]
        replay = self._replay(found, last_seen)
        if replay is None:
            host.counts.snapshots += 1
            return ReconnectSnapshot(snapshots=tuple(host.snapshot(channel) for channel in found))
        host.counts.replays += 1
        missing = tuple(uri for uri, channel in channels.items() if channel is None)
        return ReplayedActions(actions=replay, missing=missing)

    def _replay(
        self, channels: list[Channel[Any]], last_seen: int
    ) -> tuple[msgspec.Raw, ...] | None:
        """What the client has missed, in order; `None` if snapshots are the only way."""
        if not self._peer.host.is_position(last_seen):
            return None
        envelopes: list[tuple[int, bytes]] = []
        for channel in channels:
            since = channel.history.since(last_seen)
            if since is None:
                return None
            envelopes += since
        return tuple(msgspec.Raw(envelope) for _, envelope in sorted(envelopes))
