"""How a connection begins: `initialize` for a new client, `reconnect` for a returning one.

A new client is durable before it is answered; frames that come meanwhile wait, in their order.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from session_server.host.channels.messages import BROKEN
from session_server.host.connection.ahp1_client import (
    PLAIN_URIS,
    Ahp1Client,
    spelling_for,
)
from session_server.host.connection.peer import Peer
from session_server.host.connection.reconnect import missed
from session_server.host.connection.subscriptions import check_number
from session_server.reducers.version_negotiation import negotiated
from session_server.schemas.ahp import frames
from session_server.schemas.ahp.commands import (
    PROTOCOL_VERSION,
    Implementation,
    InitializeResult,
)
from session_server.schemas.ahp1 import methods
from session_server.schemas.errors import (
    CloseCode,
    CommandError,
    ErrorCode,
    Refusal,
    RpcError,
    not_permitted,
)
from session_server.schemas.limits import FRAMES_BEFORE_HANDSHAKE
from session_server.schemas.log_entries import KnownClient, Spelling
from session_server.schemas.wire import Uri


class Handshake:
    """`waiting` holds the frames that arrived while the client is being written to the log."""

    def __init__(self, peer: Peer, receive: Callable[[bytes], None]) -> None:
        self.waiting: list[bytes] | None = None
        self.is_abandoned = False
        self._peer = peer
        self._unsettled = peer.host.allowances.of(peer.principal.id).unsettled
        self._receive = receive

    def initialize(self, frame: frames.Initialize) -> None:
        params = frame.params
        version = negotiated(params.protocol_versions)
        wanted = params.initial_subscriptions or ()
        check_number(wanted)
        self._peer.bind(params.client_id)
        self._peer.speak(version, spelling_for(params))
        self.waiting = []
        welcome = partial(self._welcome, frame, wanted)
        self._know(frame.id, partial(self._when_settled, wanted, welcome))

    def _when_settled(self, wanted: tuple[Uri, ...], then: Callable[[], None]) -> None:
        """Once sessions that are being opened or loaded are there, or will not be."""
        peer, host = self._peer, self._peer.host
        sessions = [peer.session_uri(uri) for uri in wanted]

        def settled() -> None:
            if any(peer.principal.reaches(uri) and host.loaded.is_evicted(uri) for uri in sessions):
                peer.outbox.close(CloseCode.INTERNAL_ERROR, BROKEN)
            else:
                then()

        reached = [uri for uri in sessions if peer.principal.reaches(uri)]
        host.lifecycle.when_settled(reached, settled)

    def _welcome(self, frame: frames.Initialize, wanted: tuple[Uri, ...]) -> None:
        peer, host = self._peer, self._peer.host
        if self.is_abandoned:
            return
        peer.arrive()
        if peer.ahp1 is not None:
            peer.replies.answer(frame.id, self._ahp1_welcome(peer.ahp1, frame, wanted))
            self._receive_waiting()
            return
        channels = peer.subscriptions.add_all(peer.principal, wanted)
        snapshots = tuple(host.snapshot(c) for c in channels.values() if c is not None)
        result = InitializeResult(
            protocol_version=PROTOCOL_VERSION, server_seq=host.position, snapshots=snapshots
        )
        peer.replies.answer(frame.id, result)
        self._receive_waiting()

    def _ahp1_welcome(
        self, ahp1: Ahp1Client, frame: frames.Initialize, wanted: tuple[Uri, ...]
    ) -> methods.InitializeResult:
        """An unknown channel has no snapshot; this is not an error."""
        peer, snapshots = self._peer, []
        for uri in wanted:
            with suppress(CommandError):
                snapshots.append(ahp1.subscribe(peer.principal, uri))
        takes_plain = (frame.params.meta or {}).get(PLAIN_URIS) is True
        return methods.InitializeResult(
            protocol_version=ahp1.version.text,
            server_seq=peer.replies.number(peer.host.position),
            snapshots=tuple(snapshot for snapshot in snapshots if snapshot is not None),
            server_info=Implementation(name="session-server"),
            meta={PLAIN_URIS: True} if takes_plain else None,
        )

    def _know(self, request_id: frames.RequestId, done: Callable[[], None]) -> None:
        peer = self._peer

        def refused(refusal: Refusal) -> None:
            error = RpcError(code=ErrorCode.PERMISSION_DENIED, message=refusal.message)
            peer.replies.fail(request_id, error)
            self._receive_waiting()

        try:
            peer.host.clients.know(peer.principal, *self._spoken(), done=done, refused=refused)
        except CommandError:
            self.waiting = None
            raise

    def _spoken(self) -> tuple[str, Spelling | None]:
        """What is remembered of the client's version, for when it comes back."""
        ahp1 = self._peer.ahp1
        return (PROTOCOL_VERSION, None) if ahp1 is None else (ahp1.version.text, ahp1.spelling)

    def wait_with(self, text: bytes) -> None:
        assert self.waiting is not None
        if len(self.waiting) >= FRAMES_BEFORE_HANDSHAKE or not self._unsettled.acquire(len(text)):
            reason = "too many frames before the handshake"
            self._peer.outbox.close(CloseCode.TOO_MANY_REQUESTS, reason)
            return
        self.waiting.append(text)

    def _receive_waiting(self) -> None:
        for text in self._released():
            if not self.is_abandoned:
                self._receive(text)

    def abandon(self) -> None:
        """The client has disconnected."""
        self.is_abandoned = True
        self._released()
        del self._receive  # a cycle, which would keep the connection until a garbage collection

    def _released(self) -> list[bytes]:
        waiting, self.waiting = self.waiting or [], None
        self._unsettled.release(sum(map(len, waiting)))
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
        peer.speak(negotiated((known.version,)), known.spelling or Spelling.PLAIN)
        self.waiting = []
        self._when_settled(params.subscriptions, partial(self._resume, frame, known))

    def _resume(self, frame: frames.Reconnect, known: KnownClient) -> None:
        peer, params, clients = self._peer, frame.params, self._peer.host.clients
        if self.is_abandoned:
            return
        peer.arrive()
        if clients.is_stale(known):
            clients.know(peer.principal, *self._spoken())
        uris, last_seen = params.subscriptions, params.last_seen_server_seq
        if peer.ahp1 is not None:
            peer.replies.answer(frame.id, peer.ahp1.resume(peer.principal, uris, last_seen))
        else:
            channels = peer.subscriptions.add_all(peer.principal, uris)
            found = [channel for channel in channels.values() if channel is not None]
            result = missed(
                peer.host,
                last_seen,
                (channel.publisher.history.since(last_seen) for channel in found),
                lambda: map(peer.host.snapshot, found),
                (uri for uri, channel in channels.items() if channel is None),
            )
            peer.replies.answer(frame.id, result)
        self._receive_waiting()
