"""The protocol of one client: frames in, frames out, without a socket.

A transport feeds `receive` with the text of each frame and gives an `Outbox` for the answers.
Before the handshake only `ping`, `initialize` and `reconnect` are understood.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from session_server.host.channel import Channel
from session_server.host.delivery import Outbox
from session_server.host.errors import CloseCode, CommandError, no_session, not_permitted
from session_server.host.host import Host
from session_server.host.pace import Pace
from session_server.host.replies import Replies, rejection_meta
from session_server.host.sessions import page_of_turns
from session_server.host.subscriptions import Subscriptions, check_number
from session_server.host.undecoded import Complaint, meant_by
from session_server.schemas import frames
from session_server.schemas.codec import (
    decode_agent_frame,
    decode_client_frame,
    encode,
)
from session_server.schemas.commands import (
    PROTOCOL_VERSION,
    FetchTurnsResult,
    InitializeResult,
    ListSessionsResult,
    ReconnectSnapshot,
    SubscribeResult,
)
from session_server.schemas.envelopes import ActionOrigin, RejectionMeta
from session_server.schemas.errors import (
    DecodingError,
    ErrorCode,
    RpcError,
    UnsupportedVersionData,
)
from session_server.schemas.limits import (
    ACTIONS_UNSETTLED,
    FRAMES_BEFORE_HANDSHAKE,
    ID_CHARS,
    NAME_CHARS,
    REQUESTS_IN_FLIGHT,
    TURNS_PER_PAGE,
)
from session_server.schemas.principals import Principal, Role
from session_server.schemas.record import SessionRecord
from session_server.schemas.refusals import RefusalCode
from session_server.schemas.wire import Uri, Wire

NOT_SAVED = RejectionMeta(code="notSaved")
MALFORMED = RejectionMeta(code="malformed")
TOO_MUCH = RejectionMeta(code=RefusalCode.LIMIT)
TOO_FAST = "You send faster than this host takes; wait a moment and send it again."
TOO_MANY_UNSETTLED = (
    f"{ACTIONS_UNSETTLED} of your actions are still being written; wait for some of them."
)
TOO_MANY_UNANSWERED = (
    f"{REQUESTS_IN_FLIGHT} of your requests are still unanswered; wait for some of them."
)
NO_AUTHENTICATION = "No resource here takes tokens."


class ReplayedActions(Wire, frozen=True, kw_only=True, tag_field="type", tag="replay"):
    """`ReconnectReplay` with envelopes that were encoded when they were first sent."""

    actions: tuple[msgspec.Raw, ...]
    missing: tuple[Uri, ...]


class Connection:
    def __init__(self, host: Host, principal: Principal, outbox: Outbox) -> None:
        self.host = host
        self.principal = principal
        self._may_choose_name = principal.name is None
        self.outbox = outbox
        self._subscriptions = Subscriptions(host, outbox)
        self._replies = Replies(host, outbox)
        self._ready = False
        self._gone = False
        self._waiting: list[bytes] | None = None
        self._pace = Pace(host.bounds.actions_per_second)
        self._unsettled = 0
        is_agent = principal.role is Role.AGENT
        self._decode = decode_agent_frame if is_agent else decode_client_frame
        host.connections.opened(principal, outbox, host.now())

    # Frames in

    def receive(self, text: bytes) -> None:
        if self._waiting is not None:
            self._wait_with(text)
            return
        try:
            frame = self._decode(text)
        except DecodingError as error:
            self._refuse_frame(text, error)
            frame = None
        pace = self._pace
        pace.credit -= 1
        if pace.credit < 0 and not pace.may_go_on():
            self._refuse_hasty(frame)
        elif frame is not None:
            self._handle(frame)

    def _handle(self, frame: Any) -> None:
        if isinstance(frame, frames.DispatchAction | frames.AgentDispatchAction):
            if self._ready:
                self._dispatch(frame.params)
            return
        request_id: int | None = getattr(frame, "id", None)
        if request_id is not None:
            self._replies.unanswered += 1
        try:
            self._check_order(frame)
            _COMMANDS[type(frame)](self, frame)
        except CommandError as error:
            if request_id is not None:
                self._replies.fail(request_id, error.error)

    def _refuse_hasty(self, frame: Any) -> None:
        """In words, as long as they are listened to. What only ends something is never refused."""
        if self._pace.is_abused():
            self.outbox.close(CloseCode.TOO_MANY_REQUESTS, "too fast for too long; come back later")
        elif isinstance(frame, frames.Unsubscribe):
            self._handle(frame)
        elif isinstance(frame, frames.DispatchAction | frames.AgentDispatchAction):
            if self._ready:
                self._reject_unseen(frame.params, TOO_FAST)
        elif getattr(frame, "id", None) is not None:
            self._replies.complain(frame.id, RpcError(code=ErrorCode.CONFLICT, message=TOO_FAST))

    def _check_order(self, frame: Any) -> None:
        is_handshake = isinstance(frame, frames.Initialize | frames.Reconnect)
        if is_handshake == self._ready and not isinstance(frame, frames.Ping):
            words = "The handshake is done." if self._ready else "The handshake comes first."
            raise CommandError(ErrorCode.METHOD_NOT_FOUND, words)
        if self._replies.unanswered > REQUESTS_IN_FLIGHT:
            raise CommandError(ErrorCode.CONFLICT, TOO_MANY_UNANSWERED)

    def closed(self) -> None:
        """The other side is gone."""
        if self._gone:
            return
        self._gone = True
        self.host.connections.closed(self.principal, self.outbox)
        if self._ready:
            self.host.clients.left(self.client_id, self.principal.id)
            self.host.active_clients.left(self.client_id)
        self._subscriptions.remove_all()

    # The handshake

    def initialize(self, frame: frames.Initialize) -> None:
        params = frame.params
        if PROTOCOL_VERSION not in params.protocol_versions:
            raise CommandError(
                ErrorCode.UNSUPPORTED_PROTOCOL_VERSION,
                f"This host speaks AHP {PROTOCOL_VERSION}.",
                UnsupportedVersionData(supported_versions=(PROTOCOL_VERSION,)),
            )
        check_number(params.initial_subscriptions or ())
        self._bind(params.client_id)

        def done() -> None:
            if self._gone:
                return
            self._arrive()
            channels = self._subscriptions.add_all(
                self.principal, params.initial_subscriptions or ()
            )
            snapshots = tuple(self.host.snapshot(c) for c in channels.values() if c is not None)
            result = InitializeResult(
                protocol_version=PROTOCOL_VERSION,
                server_seq=self.host.position,
                snapshots=snapshots,
            )
            self._replies.answer(frame.id, result)
            self._go_on()

        self._waiting = []
        self._know(frame.id, done)

    def reconnect(self, frame: frames.Reconnect) -> None:
        params = frame.params
        known = self.host.clients.find(params.client_id)
        if known is None:
            raise CommandError(ErrorCode.NOT_FOUND, "This clientId is not known; initialize.")
        if known.principal_id != self.principal.id:
            raise not_permitted(f"The clientId {params.client_id!r} belongs to someone else.")
        check_number(params.subscriptions)
        self._bind(params.client_id)
        self._arrive()
        channels = self._subscriptions.add_all(self.principal, params.subscriptions)
        found = [channel for channel in channels.values() if channel is not None]
        missing = tuple(uri for uri, channel in channels.items() if channel is None)
        same_epoch = self.host.clients.is_of_this_epoch(known)
        replay = self._replay(found, params.last_seen_server_seq) if same_epoch else None
        if not same_epoch or self.host.clients.is_stale(known):
            self.host.clients.know(self.principal)
        if replay is None:
            self.host.counts.snapshots += 1
            snapshots = tuple(self.host.snapshot(channel) for channel in found)
            self._replies.answer(frame.id, ReconnectSnapshot(snapshots=snapshots))
        else:
            self.host.counts.replays += 1
            self._replies.answer(frame.id, ReplayedActions(actions=replay, missing=missing))

    def _replay(
        self, channels: list[Channel[Any]], last_seen: int
    ) -> tuple[msgspec.Raw, ...] | None:
        """What the client has missed, in order; `None` if snapshots are the only way."""
        if last_seen > self.host.position:
            return None
        envelopes: list[tuple[int, bytes]] = []
        for channel in channels:
            since = channel.history.since(last_seen)
            if since is None:
                return None
            envelopes += since
        return tuple(msgspec.Raw(envelope) for _, envelope in sorted(envelopes))

    def _bind(self, client_id: str) -> None:
        if not client_id or len(client_id) > ID_CHARS:
            words = f"A clientId has between 1 and {ID_CHARS} characters."
            raise CommandError(ErrorCode.INVALID_PARAMS, words)
        self.principal = msgspec.structs.replace(self.principal, client_id=client_id)

    def _arrive(self) -> None:
        self._ready = True
        self.host.clients.arrived(self.client_id, self.principal.id)
        self.host.active_clients.arrived(self.client_id)

    def _know(self, request_id: int, done: Callable[[], None]) -> None:
        def give_up(code: ErrorCode, words: str) -> None:
            self._replies.fail(request_id, RpcError(code=code, message=words))
            self._go_on()

        try:
            self.host.clients.know(
                self.principal,
                done=done,
                refused=lambda refusal: give_up(ErrorCode.PERMISSION_DENIED, refusal.message),
                failed=partial(give_up, ErrorCode.INTERNAL_ERROR),
            )
        except CommandError:
            self._waiting = None
            raise

    def _wait_with(self, text: bytes) -> None:
        """Frames that come while the handshake is being written keep their order."""
        assert self._waiting is not None
        if len(self._waiting) >= FRAMES_BEFORE_HANDSHAKE:
            self.outbox.close(CloseCode.TOO_MANY_REQUESTS, "too many frames before the handshake")
            return
        self._waiting.append(text)

    def _go_on(self) -> None:
        waiting, self._waiting = self._waiting or [], None
        for text in waiting:
            self.receive(text)

    # Commands

    def ping(self, frame: frames.Ping) -> None:
        self._replies.answer(frame.id, None)

    def subscribe(self, frame: frames.Subscribe) -> None:
        uri = frame.params.channel
        if self._subscriptions.join(self.principal, uri):
            self._replies.answer(frame.id, SubscribeResult())
            return
        channel = self._subscriptions.add(self.principal, uri)
        if channel is None:
            raise no_session(uri)
        self._replies.answer(frame.id, SubscribeResult(snapshot=self.host.snapshot(channel)))

    def unsubscribe(self, frame: frames.Unsubscribe) -> None:
        self._subscriptions.remove(frame.params.channel)

    def create_session(self, frame: frames.CreateSession) -> None:
        self.host.create_session(
            self.principal,
            frame.params,
            done=partial(self._replies.answer, frame.id, None),
            failed=lambda words: self._replies.fail(
                frame.id, RpcError(code=ErrorCode.INTERNAL_ERROR, message=words)
            ),
        )

    def dispose_session(self, frame: frames.DisposeSession) -> None:
        uri = frame.params.channel
        self.host.dispose_session(
            self.principal,
            uri,
            done=partial(self._replies.answer, frame.id, None),
            failed=lambda words: self._replies.fail(
                frame.id, RpcError(code=ErrorCode.INTERNAL_ERROR, message=words)
            ),
        )

    def list_sessions(self, frame: frames.ListSessions) -> None:
        items = tuple(self.host.summaries(self.principal))
        self._replies.answer(frame.id, ListSessionsResult(items=items))

    def fetch_turns(self, frame: frames.FetchTurns) -> None:
        params = frame.params
        channel = self.host.channel(self.principal, params.channel)
        if channel is None or channel is self.host.root:
            raise no_session(params.channel)
        limit = min(params.limit or TURNS_PER_PAGE, TURNS_PER_PAGE)
        record = channel.committed
        assert isinstance(record, SessionRecord)
        turns, more = page_of_turns(record.public.turns, params.before, limit)
        self._replies.answer(frame.id, FetchTurnsResult(turns=turns, has_more=more))

    def authenticate(self, _: frames.Authenticate) -> None:
        raise CommandError(ErrorCode.NOT_FOUND, NO_AUTHENTICATION)

    def presence_update(self, frame: frames.PresenceUpdate) -> None:
        """A self-chosen name also stands beside the answers that follow it."""
        name = frame.params.name
        if name and self._may_choose_name:
            self.principal = msgspec.structs.replace(self.principal, name=name[:NAME_CHARS])
        self.host.presence.update(frame.params, self.principal, self.outbox)

    def not_offered(self, frame: Any) -> None:
        method = frame.__struct_config__.tag
        raise CommandError(ErrorCode.METHOD_NOT_FOUND, f"{method} is not offered here.")

    # Actions

    def _dispatch(self, params: Any) -> None:
        channel = self.host.channel(self.principal, params.channel)
        if channel is None:
            return  # the protocol asks for silence
        if self._unsettled >= ACTIONS_UNSETTLED:
            self._reject_unseen(params, TOO_MANY_UNSETTLED)
            return
        self._unsettled += 1
        origin = ActionOrigin(client_id=self.client_id, client_seq=params.client_seq)
        reject = partial(self._reject_settled, params.channel, params.action, origin)
        self.host.dispatch(
            self.principal,
            channel,
            params.action,
            origin,
            done=self._settled,
            refused=lambda refusal: reject(refusal.message, rejection_meta(refusal)),
            failed=lambda words: reject(f"This could not be saved: {words}", NOT_SAVED),
        )

    def _settled(self) -> None:
        self._unsettled -= 1

    def _reject_settled(
        self, channel: Uri, action: Any, origin: ActionOrigin, reason: str, meta: RejectionMeta
    ) -> None:
        self._unsettled -= 1
        self._replies.reject(channel, encode(action), origin, reason, meta)

    def _reject_unseen(self, params: Any, reason: str) -> None:
        """Before the rules have looked at it."""
        origin = ActionOrigin(client_id=self.client_id, client_seq=params.client_seq)
        if self._sees(params.channel):
            self._replies.reject(params.channel, encode(params.action), origin, reason, TOO_MUCH)

    @property
    def client_id(self) -> str:
        assert self.principal.client_id is not None
        return self.principal.client_id

    # Frames that cannot be read

    def _refuse_frame(self, text: bytes, error: DecodingError) -> None:
        """An action that is not understood is refused like one that is not allowed."""
        meant = meant_by(text, error)
        if isinstance(meant, Complaint):
            self._replies.complain(meant.request_id, meant.error)
        elif meant is not None and self._ready and self._sees(meant.channel):
            origin = ActionOrigin(client_id=self.client_id, client_seq=meant.client_seq)
            action = bytes(meant.action)
            self._replies.reject(meant.channel, action, origin, str(error), MALFORMED)

    def _sees(self, uri: Uri) -> bool:
        return self.host.channel(self.principal, uri) is not None


_COMMANDS: dict[type, Callable[[Connection, Any], None]] = {
    frames.Initialize: Connection.initialize,
    frames.Reconnect: Connection.reconnect,
    frames.Ping: Connection.ping,
    frames.Subscribe: Connection.subscribe,
    frames.Unsubscribe: Connection.unsubscribe,
    frames.CreateSession: Connection.create_session,
    frames.DisposeSession: Connection.dispose_session,
    frames.ListSessions: Connection.list_sessions,
    frames.FetchTurns: Connection.fetch_turns,
    frames.Authenticate: Connection.authenticate,
    frames.ResolveSessionConfig: Connection.not_offered,
    frames.SessionConfigCompletions: Connection.not_offered,
    frames.Completions: Connection.not_offered,
    frames.PresenceUpdate: Connection.presence_update,
}
