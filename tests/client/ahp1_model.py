"""The model host as one that speaks AHP 1.0: every entry makes envelopes on two channels."""

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from session_server.client.conversations import Conversation
from session_server.reducers.ahp1.client_actions import own_kind, plan
from session_server.reducers.ahp1.client_chat_reducer import reduce_client_chat
from session_server.reducers.ahp1.client_session_reducer import reduce_client_session
from session_server.reducers.ahp1.envelopes import Committed, envelopes
from session_server.reducers.ahp1.numbering import number_after
from session_server.reducers.ahp1.snapshots import Variant, chat_name, chat_state, session_state
from session_server.reducers.state.record import reduce_record
from session_server.schemas.ahp import frames
from session_server.schemas.ahp.commands import Snapshot, SubscribeResult
from session_server.schemas.ahp.envelopes import ActionOrigin
from session_server.schemas.ahp1 import methods
from session_server.schemas.codec import decode_ahp1_frame, encode
from session_server.schemas.errors import Refusal
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

    version = "1.0.0"

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

    @property
    def oldest(self) -> int:
        return number_after(self.floor)

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
        reduce = reduce_client_chat if envelope.channel == self.chat else reduce_client_session
        seen[envelope.server_seq] = reduce(seen[max(seen)], document(envelope.action))
        for socket in self.sockets:
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
    decode = staticmethod(decode_ahp1_frame)
    initialize_result = methods.InitializeResult

    def _subscribe(self, frame: frames.Subscribe) -> None:
        """A second time without a snapshot."""
        uri = frame.params.channel
        snapshot = None if uri in self.watched else self.host.snapshot_of(uri)
        self.watched.add(uri)
        self.answer(frame.id, SubscribeResult(snapshot=snapshot))

    def _replay(self, uris: Iterable[str], seen: int) -> Any:
        if self.host.unloads:
            self.watched = set()
            return {"type": "replay", "actions": [], "missing": list(uris)}
        missed = [e for e in self.host.wire_log if e.channel in self.watched]
        newer = [e for e in missed if e.server_seq > seen]
        known = missed[: len(missed) - len(newer)]
        repeated = known[len(known) - self.host.overlap :] if self.host.overlap else []
        return {"type": "replay", "actions": [*repeated, *newer], "missing": []}
