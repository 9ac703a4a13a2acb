"""A host in a few lines, to speak with a client's protocol without sockets or time.

It judges and reduces with the real rules and reducers, keeps its log in a list, and can be told to
forget things. `Wire` is the network between the two: frames wait in it until they are let through.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from session_server.client.client_protocol import ClientProtocol
from session_server.reducers.batches import batch_of
from session_server.reducers.rules.judge import judge
from session_server.reducers.state.record import PRIVATE_TRANSITIONS, reduce_record
from session_server.schemas.ahp import frames
from session_server.schemas.ahp.actions import SessionAction
from session_server.schemas.ahp.commands import (
    PROTOCOL_VERSION,
    InitializeResult,
    ListSessionsResult,
    ReconnectReplay,
    ReconnectSnapshot,
    Snapshot,
    SubscribeResult,
)
from session_server.schemas.ahp.envelopes import (
    ActionEnvelope,
    ActionOrigin,
    EnvelopeMeta,
    RejectionEnvelope,
)
from session_server.schemas.ahp.frames import ActionNotification, RejectionNotification
from session_server.schemas.ahp.session import SessionState
from session_server.schemas.ahp1 import methods
from session_server.schemas.codec import decode_agent_frame, encode
from session_server.schemas.errors import ErrorCode, RpcError
from session_server.schemas.principals import HOST, Principal, Stamp
from session_server.schemas.record import SessionRecord
from tests.sessions import AGENT, OWNER, SESSION


class ModelHost:
    """`origin_on_all`: all of a client's batch carries its origin, the host's own notes included.
    `overlap`: how many envelopes a replay holds that the client has already seen.
    """

    version = PROTOCOL_VERSION

    def __init__(
        self, record: SessionRecord, *, origin_on_all: bool = False, overlap: int = 0
    ) -> None:
        self.record = record
        self.seq = 10
        self.floor = 0
        self.clock = 1_000
        self.known: set[str] = set()
        self.log: list[ActionEnvelope] = []
        self.states: dict[int, SessionState] = {self.seq: record.public}
        self.sockets: list[ModelSocket] = []
        self.origin_on_all = origin_on_all
        self.overlap = overlap

    @property
    def number(self) -> int:
        """What clients know as the latest `serverSeq`."""
        return self.seq

    @property
    def oldest(self) -> int:
        """A client that has not seen this gets snapshots."""
        return self.floor

    def perform(self, params: Any, principal: Principal, origin: ActionOrigin) -> str | None:
        """What a client dispatched; why it was refused, if it was."""
        return self.act(params.action, principal, origin)

    def act(
        self,
        action: SessionAction,
        principal: Principal = AGENT,
        origin: ActionOrigin | None = None,
    ) -> str | None:
        """Why it was refused, if it was."""
        refusal = judge(principal, self.record, action)
        if refusal is not None:
            return refusal.message
        self.clock += 1
        stamp = Stamp(at=self.clock, by=principal.author)
        self._write(batch_of(self.record, action, stamp), action, stamp, origin)
        while self.record.public.active_turn is None and self.record.private.deferred:
            change = self.record.private.deferred[0].change
            self.clock += 1
            self._write((change,), change, Stamp(at=self.clock, by=HOST), None)
        return None

    def _write(self, batch: Any, cause: Any, stamp: Stamp, origin: ActionOrigin | None) -> None:
        for action in batch:
            self.record = reduce_record(self.record, action, stamp.at)
            self.seq += 1
            self.states[self.seq] = self.record.public
            if type(action) not in PRIVATE_TRANSITIONS:
                is_own = self.origin_on_all or type(action) is type(cause)
                self._publish(action, stamp, origin if is_own else None)

    def _publish(self, action: Any, stamp: Stamp, origin: ActionOrigin | None) -> None:
        meta = EnvelopeMeta(at=stamp.at, by=stamp.by)
        envelope = ActionEnvelope(
            channel=SESSION, action=action, server_seq=self.seq, origin=origin, meta=meta
        )
        self.log.append(envelope)
        for socket in self.sockets:
            if SESSION in socket.watched:
                socket.send(ActionNotification(params=envelope))

    def socket(self, principal: Principal) -> "ModelSocket":
        return ModelSocket(self, principal)

    def is_shown(self, mirror: Any) -> bool:
        """Whether a client's mirror has what this host had at the mirror's position."""
        return bool(mirror.confirmed == self.state_at(mirror.position))

    def is_complete(self, state: Any) -> bool:
        return bool(state == self.record.public)

    def state_at(self, seq: int) -> SessionState:
        return self.states[max(known for known in self.states if known <= seq)]

    def snapshot_of(self, uri: str) -> Snapshot | None:
        if uri != SESSION:
            return None
        state = msgspec.Raw(encode(self.record.public))
        return Snapshot(resource=SESSION, state=state, from_seq=self.seq)

    def snapshots_of(self, uris: Iterable[str]) -> tuple[Snapshot, ...]:
        return tuple(found for uri in uris if (found := self.snapshot_of(uri)) is not None)

    def forget_history(self) -> None:
        self.floor = self.seq

    def forget_clients(self) -> None:
        self.known.clear()


class ModelSocket:
    """The host's end of a connection."""

    decode: Callable[[bytes], Any] = staticmethod(decode_agent_frame)
    initialize_result: type[Any] = InitializeResult

    def __init__(self, host: ModelHost, principal: Principal = OWNER) -> None:
        self.host = host
        self.principal = principal
        self.out: deque[bytes] = deque()
        self.watched: set[str] = set()
        self.heard: list[Any] = []
        self._client_id = ""
        host.sockets.append(self)

    def close(self) -> None:
        self.host.sockets.remove(self)

    def send(self, frame: Any) -> None:
        self.out.append(encode(frame))

    def answer(self, request_id: int, result: Any) -> None:
        self.send(frames.Result(id=request_id, result=result))

    def fail(self, request_id: int, code: ErrorCode) -> None:
        error = RpcError(code=code, message=code.name)
        self.send(frames.Failure(id=request_id, error=error))

    def receive(self, text: bytes) -> None:
        frame = self.decode(text)
        self.heard.append(frame)
        match frame:
            case frames.Initialize():
                self._initialize(frame)
            case frames.Reconnect():
                self._reconnect(frame)
            case frames.Subscribe():
                self._subscribe(frame)
            case frames.Ping():
                self.answer(frame.id, None)
            case frames.ListSessions():
                items = (self.host.record.public.summary,)
                self.answer(frame.id, ListSessionsResult(items=items))
            case frames.Unsubscribe():
                self.watched.discard(frame.params.channel)
            case frames.AgentDispatchAction() | methods.DispatchAction():
                self._dispatch(frame.params)
            case _:
                raise AssertionError(f"the model does not know {frame}")

    def _initialize(self, frame: frames.Initialize) -> None:
        self._client_id = frame.params.client_id
        self.host.known.add(self._client_id)
        self.watched = set(frame.params.initial_subscriptions or ())
        result = self.initialize_result(
            protocol_version=self.host.version,
            server_seq=self.host.number,
            snapshots=self.host.snapshots_of(self.watched),
        )
        self.answer(frame.id, result)

    def _subscribe(self, frame: frames.Subscribe) -> None:
        uri = frame.params.channel
        self.watched.add(uri)
        self.answer(frame.id, SubscribeResult(snapshot=self.host.snapshot_of(uri)))

    def _reconnect(self, frame: frames.Reconnect) -> None:
        params = frame.params
        if params.client_id not in self.host.known:
            self.fail(frame.id, ErrorCode.NOT_FOUND)
            return
        self._client_id = params.client_id
        self.watched = set(params.subscriptions)
        seen = params.last_seen_server_seq
        if self.host.oldest <= seen <= self.host.number:
            self.answer(frame.id, self._replay(params.subscriptions, seen))
        else:
            snapshots = self.host.snapshots_of(self.watched)
            self.answer(frame.id, ReconnectSnapshot(snapshots=snapshots))

    def _replay(self, uris: Iterable[str], seen: int) -> Any:
        first = seen - self.host.overlap
        missed = (e for e in self.host.log if e.server_seq > first and SESSION in self.watched)
        missing = tuple(uri for uri in uris if uri != SESSION)
        return ReconnectReplay(actions=tuple(missed), missing=missing)

    def _dispatch(self, params: Any) -> None:
        origin = ActionOrigin(client_id=self._client_id, client_seq=params.client_seq)
        principal = msgspec.structs.replace(self.principal, client_id=self._client_id)
        reason = self.host.perform(params, principal, origin)
        if reason is not None:
            rejection = RejectionEnvelope(
                channel=params.channel,
                action=msgspec.Raw(encode(params.action)),
                server_seq=self.host.number,
                origin=origin,
                rejection_reason=reason,
            )
            self.send(RejectionNotification(params=rejection))


class Wire:
    """Between one client's protocol and the host: at most one live connection, and late frames."""

    def __init__(self, host: ModelHost, protocol: ClientProtocol, principal: Principal) -> None:
        self.host = host
        self.protocol = protocol
        self.socket: ModelSocket | None = None
        self._principal = principal
        self._up: deque[bytes] = deque()
        self._late: list[tuple[ModelSocket, deque[bytes]]] = []

    def connect(self) -> None:
        self.socket = self.host.socket(self._principal)
        self.protocol.connected()

    def deliver_up(self) -> bool:
        self._up += self.protocol.rpc.drain()
        if self.socket is None or not self._up:
            return False
        self.socket.receive(self._up.popleft())
        return True

    def deliver_down(self) -> bool:
        if self.socket is None or not self.socket.out:
            return False
        self.protocol.receive(self.socket.out.popleft())
        return True

    def settle(self) -> None:
        """Lets everything through until nothing moves any more."""
        while self.deliver_up() or self.deliver_down():
            pass

    def cut(self, arriving: int = 0) -> None:
        """Breaks the connection; the first few frames under way still reach the host, later."""
        assert self.socket is not None
        self._up += self.protocol.rpc.drain()
        self._late.append((self.socket, deque(list(self._up)[:arriving])))
        self._up.clear()
        self.socket = None
        self.protocol.disconnected()

    def deliver_late(self) -> bool:
        """A frame of a connection that the client has given up already."""
        for socket, up in self._late:
            if up:
                socket.receive(up.popleft())
                return True
        return False

    def forget_late(self) -> None:
        for socket, _ in self._late:
            socket.close()
        self._late.clear()
