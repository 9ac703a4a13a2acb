"""The model host as one that speaks AHP 1.0: every entry makes envelopes on two channels."""

import json
from typing import Any

import msgspec

from session_server.client.conversations import Conversation
from session_server.reducers.ahp1.chat_mirror import reduce_chat
from session_server.reducers.ahp1.client_actions import own_kind, plan
from session_server.reducers.ahp1.envelopes import Committed, envelopes
from session_server.reducers.ahp1.numbering import number_after
from session_server.reducers.ahp1.session_mirror import reduce_session_mirror
from session_server.reducers.ahp1.snapshots import Variant, chat_name, chat_state, session_state
from session_server.reducers.state.record import reduce_record
from session_server.schemas.ahp import frames
from session_server.schemas.ahp.commands import ReconnectSnapshot, Snapshot, SubscribeResult
from session_server.schemas.ahp.envelopes import ActionOrigin, RejectionEnvelope
from session_server.schemas.ahp.frames import RejectionNotification
from session_server.schemas.ahp1 import methods
from session_server.schemas.codec import decode_ahp1_frame, encode
from session_server.schemas.errors import ErrorCode, Refusal
from session_server.schemas.log_entries import Spelling
from session_server.schemas.principals import Principal, Stamp
from session_server.schemas.record import SessionRecord
from tests.client.model_host import ModelHost, ModelSocket
from tests.sessions import SESSION

VARIANT = Variant(has_chat_marks=True, spelling=Spelling.PLAIN)


def document(state: Any) -> Any:
    return json.loads(encode(state))


class Ahp1ModelHost(ModelHost):
    """`seen`: what each channel showed after each envelope of it. If it `unloads` what is not
    watched, channels are missing to a client that comes back until it subscribes to them.
    """

    def __init__(self, record: SessionRecord, *, overlap: int = 0) -> None:
        super().__init__(record, overlap=overlap)
        self.chat = chat_name(record, VARIANT)
        self.unloads = False
        self.wire_log: list[methods.Envelope] = []
        self.seen: dict[str, dict[int, Any]] = {
            SESSION: {0: document(session_state(record, VARIANT))},
            self.chat: {0: document(chat_state(record, VARIANT))},
        }

    def socket(self, principal: Principal) -> ModelSocket:
        return Ahp1ModelSocket(self, principal)

    @property
    def number(self) -> int:
        return number_after(self.seq)

    def _write(self, batch: Any, cause: Any, stamp: Stamp, origin: ActionOrigin | None) -> None:
        for action in batch:
            self.seq += 1
            is_own = type(action) is cause or type(action) is type(cause)
            entry = Committed(self.seq, action, stamp.at, stamp.by, origin if is_own else None)
            for envelope in envelopes(self.record, (entry,), VARIANT):
                self._show(envelope)
            self.record = reduce_record(self.record, action, stamp.at)

    def _show(self, envelope: methods.Envelope) -> None:
        self.wire_log.append(envelope)
        seen = self.seen[envelope.channel]
        reduce = reduce_chat if envelope.channel == self.chat else reduce_session_mirror
        seen[envelope.server_seq] = reduce(seen[max(seen)], document(envelope.action))
        for socket in self.sockets:
            assert isinstance(socket, Ahp1ModelSocket)
            if envelope.channel in socket.watched:
                socket.send(methods.ActionNotification(params=envelope))

    def perform(self, params: Any, principal: Principal, origin: ActionOrigin) -> str | None:
        self.clock += 1
        stamp = Stamp(at=self.clock, by=principal.author)
        on_chat = params.channel == self.chat
        made = plan(principal, self.record, params.action, stamp, on_chat=on_chat, origin=origin)
        if isinstance(made, Refusal):
            return made.message
        self._write(made, own_kind(params.action), stamp, origin)
        return None

    def snapshot_of(self, uri: str) -> Snapshot | None:
        states = {SESSION: session_state, self.chat: chat_state}
        if uri not in states:
            return None
        state = msgspec.Raw(encode(states[uri](self.record, VARIANT)))
        return Snapshot(resource=uri, state=state, from_seq=self.number)

    def snapshots_of(self, uris: Any) -> tuple[Snapshot, ...]:
        return tuple(found for uri in uris if (found := self.snapshot_of(uri)) is not None)

    def is_shown(self, mirror: Any) -> bool:
        """Whether a client's mirror has what each channel showed at its position there."""
        state = mirror.confirmed
        assert isinstance(state, Conversation)
        shown = {SESSION: state.session, self.chat: state.chat}
        return all(
            shown[uri] == seen[max(number for number in seen if number <= mirror.positions[uri])]
            for uri, seen in self.seen.items()
        )

    def is_complete(self, state: Any) -> bool:
        assert isinstance(state, Conversation)
        return (state.session, state.chat) == (
            document(session_state(self.record, VARIANT)),
            document(chat_state(self.record, VARIANT)),
        )


class Ahp1ModelSocket(ModelSocket):
    host: Ahp1ModelHost

    def __init__(self, host: Ahp1ModelHost, principal: Principal) -> None:
        super().__init__(host, principal)
        self.watched: set[str] = set()

    def receive(self, text: bytes) -> None:
        frame = decode_ahp1_frame(text)
        self.heard.append(frame)
        match frame:
            case frames.Initialize():
                self._initialize(frame)
            case frames.Reconnect():
                self._reconnect(frame)
            case frames.Subscribe():
                uri = frame.params.channel
                is_new = uri not in self.watched
                self.watched.add(uri)
                snapshot = self.host.snapshot_of(uri) if is_new else None
                self.answer(frame.id, SubscribeResult(snapshot=snapshot))
            case frames.Unsubscribe():
                self.watched.discard(frame.params.channel)
            case methods.DispatchAction():
                self._dispatch(frame.params)
            case _:
                raise AssertionError(f"the model does not know {frame}")

    def _initialize(self, frame: frames.Initialize) -> None:
        self._client_id = frame.params.client_id
        self.host.known.add(self._client_id)
        self.watched = set(frame.params.initial_subscriptions or ())
        self.answer(
            frame.id,
            methods.InitializeResult(
                protocol_version=frame.params.protocol_versions[0],
                server_seq=self.host.number,
                snapshots=self.host.snapshots_of(self.watched),
            ),
        )

    def _reconnect(self, frame: frames.Reconnect) -> None:
        params, host = frame.params, self.host
        if params.client_id not in host.known:
            self.fail(frame.id, ErrorCode.NOT_FOUND)
            return
        self._client_id = params.client_id
        self.watched = set(params.subscriptions)
        seen = params.last_seen_server_seq
        if seen < number_after(host.floor) or seen > host.number:
            snapshots = host.snapshots_of(self.watched)
            self.answer(frame.id, ReconnectSnapshot(snapshots=snapshots))
            return
        if host.unloads:
            missing = {"type": "replay", "actions": [], "missing": list(params.subscriptions)}
            self.watched = set()
            self.answer(frame.id, missing)
            return
        missed = [e for e in host.wire_log if e.channel in self.watched]
        newer = [e for e in missed if e.server_seq > seen]
        known = missed[: len(missed) - len(newer)]
        repeated = known[len(known) - host.overlap :] if host.overlap else []
        replay = {"type": "replay", "actions": [*repeated, *newer], "missing": []}
        self.answer(frame.id, replay)

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
