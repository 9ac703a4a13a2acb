"""A client without a socket: frames in, frames out, and a copy of every channel it watches.

It trusts nobody. Whatever a host must never do to a client is written down in `faults`.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

from session_server.reducers.state.session import reduce_root, reduce_session
from session_server.schemas.ahp.envelopes import ActionEnvelope
from session_server.schemas.ahp.session import RootState, SessionState
from session_server.schemas.codec import (
    Decoder,
    decode_root_state,
    decode_session_state,
)
from session_server.schemas.wire import Seq, Uri, Wire

ROOT = "ahp-root://"
UNKNOWN_CLIENT = -32008

State: TypeAlias = SessionState | RootState
Frame: TypeAlias = dict[str, Any]


class _Notice(Wire, frozen=True, kw_only=True):
    server_seq: Seq = 0
    rejection_reason: str | None = None


class _Params(Wire, frozen=True, kw_only=True):
    session: Uri = ""


class _Incoming(Wire, frozen=True, kw_only=True):
    id: int | None = None
    method: str | None = None
    params: msgspec.Raw = msgspec.Raw(b"{}")
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: dict[str, Any] | None = None


class Shown(Wire, frozen=True, kw_only=True):
    resource: Uri
    state: msgspec.Raw
    from_seq: Seq


class _Outcome(Wire, frozen=True, kw_only=True):
    """The results of `initialize`, `reconnect` and `subscribe` in one."""

    type: str | None = None
    server_seq: Seq | None = None
    snapshot: Shown | None = None
    snapshots: tuple[Shown, ...] = ()
    actions: tuple[msgspec.Raw, ...] = ()
    missing: tuple[Uri, ...] = ()


class Rejection(Wire, frozen=True, kw_only=True):
    client_seq: int
    server_seq: Seq
    reason: str


class Answer(Wire, frozen=True, kw_only=True):
    id: int
    result: bytes
    error: dict[str, Any] | None


class Removed(Wire, frozen=True, kw_only=True):
    session: Uri


_incoming: Decoder[_Incoming] = Decoder(_Incoming)
_notice: Decoder[_Notice] = Decoder(_Notice)
_params: Decoder[_Params] = Decoder(_Params)
_envelope: Decoder[ActionEnvelope] = Decoder(ActionEnvelope)
_outcome: Decoder[_Outcome | None] = Decoder(_Outcome | None)


class _Echo(Wire, frozen=True, kw_only=True):
    origin: dict[str, Any]
    server_seq: Seq
    rejection_reason: str


_echo: Decoder[_Echo] = Decoder(_Echo)


@lru_cache(maxsize=4096)
def envelope_of(text: bytes) -> ActionEnvelope:
    """Everybody gets the same bytes, so they are read once for all."""
    return _envelope(text)


@lru_cache(maxsize=4096)
def understood(text: bytes) -> ActionEnvelope | Rejection | Answer | Removed | None:
    frame = _incoming(text)
    if frame.method == "action":
        params = bytes(frame.params)
        if _notice(params).rejection_reason is None:
            return envelope_of(params)
        echo = _echo(params)
        return Rejection(
            client_seq=echo.origin["clientSeq"],
            server_seq=echo.server_seq,
            reason=echo.rejection_reason,
        )
    if frame.method == "root/sessionRemoved":
        return Removed(session=_params(bytes(frame.params)).session)
    if frame.method is None and frame.id is not None:
        return Answer(id=frame.id, result=bytes(frame.result), error=frame.error)
    return None


class Stretch:
    """What came of one channel in a row, after the snapshot that it began with."""

    def __init__(self, channel: Uri, start: Seq) -> None:
        self.channel = channel
        self.start = start
        self.seqs: list[Seq] = []


class Copy:
    def __init__(self, shown: Shown) -> None:
        raw = bytes(shown.state)
        is_root = shown.resource == ROOT
        self.state: State = decode_root_state(raw) if is_root else decode_session_state(raw)
        self.stretch = Stretch(shown.resource, shown.from_seq)
        self.position = shown.from_seq

    def apply(self, envelope: ActionEnvelope) -> None:
        self.position = envelope.server_seq
        self.stretch.seqs.append(envelope.server_seq)
        if isinstance(self.state, SessionState):
            self.state = reduce_session(self.state, envelope.action, envelope.meta.at)  # type: ignore[arg-type]
        else:
            self.state = reduce_root(self.state, envelope.action)  # type: ignore[arg-type]


class Mirror:
    """`seen` can be shared by many: what one of them got under a number, all must get.

    `is_careful` ones take their position from envelopes alone; others also from the snapshots and
    rejections in between. Hosts meet both kinds.
    """

    def __init__(
        self,
        client_id: str,
        wanted: Iterable[Uri] = (ROOT,),
        *,
        is_careful: bool = False,
        seen: dict[Seq, Any] | None = None,
    ) -> None:
        self.client_id = client_id
        self.copies: dict[Uri, Any] = {}
        self.last_seen: Seq = 0
        self.is_in = False
        self.seen: dict[Seq, Any] = {} if seen is None else seen
        self.stretches: list[Stretch] = []
        self.rejections: list[Rejection] = []
        self.errors: list[dict[str, Any]] = []
        self.resumptions: list[str] = []
        self.faults: list[str] = []
        self._wanted = tuple(wanted)
        self._is_careful = is_careful
        self._is_known = False
        self._asked: dict[int, tuple[str, Uri]] = {}
        self._id = 0
        self._reached: Seq = 0
        self._client_seq = 0
        self._unanswered: set[int] = set()

    def fresh(self, seen: dict[Seq, ActionEnvelope]) -> "Mirror":
        """The same client before it has sent or received anything."""
        return Mirror(self.client_id, self._wanted, is_careful=self._is_careful, seen=seen)

    @property
    def is_waiting(self) -> bool:
        return bool(self._asked)

    @property
    def unanswered(self) -> int:
        """Actions sent on this connection that were neither echoed nor rejected yet."""
        return len(self._unanswered)

    # Frames out

    def greet(self) -> Frame:
        """The first frame on a new connection."""
        self.hang_up()
        self._id = self._reached = 0
        self._unanswered.clear()
        if not self._is_known:
            return self._initialize()
        return self.request(
            "reconnect",
            clientId=self.client_id,
            lastSeenServerSeq=self.last_seen,
            subscriptions=list(self.copies),
        )

    def _initialize(self) -> Frame:
        self.copies.clear()
        return self.request(
            "initialize",
            clientId=self.client_id,
            initialSubscriptions=list(self._wanted),
            **self.handshake(),
        )

    def request(self, method: str, channel: Uri = ROOT, **params: Any) -> Frame:
        self._id += 1
        self._asked[self._id] = (method, channel)
        params = {"channel": channel, **params}
        return {"jsonrpc": "2.0", "id": self._id, "method": method, "params": params}

    def dispatch(self, channel: Uri, action: dict[str, Any]) -> Frame:
        """A `clientSeq` is used once, whatever becomes of the connection: it names the action."""
        self._client_seq += 1
        self._unanswered.add(self._client_seq)
        params = {"channel": channel, "clientSeq": self._client_seq, "action": action}
        return {"jsonrpc": "2.0", "method": "dispatchAction", "params": params}

    def unsubscribe(self, channel: Uri) -> Frame:
        self.copies.pop(channel, None)
        for id_, asked in self._asked.items():
            if asked == ("subscribe", channel):
                self._asked[id_] = ("subscribed and left", channel)
        return {"jsonrpc": "2.0", "method": "unsubscribe", "params": {"channel": channel}}

    def hang_up(self) -> None:
        """The connection is gone, and with it every answer that was still to come."""
        self.is_in = False
        self._asked.clear()

    # Frames in

    def take(self, text: bytes) -> Frame | None:
        """Applies what came; returns what is to be said to it, if anything."""
        match self.understood(text):
            case Rejection() as rejection:
                self._rejected(rejection)
            case Removed(session=session):
                self.removed(session)
            case Answer() as answer:
                return self._answered(answer)
            case None:
                pass
            case envelope:
                self._live(envelope)
        return None

    def _live(self, envelope: Any) -> None:
        seq = envelope.server_seq
        if not self.is_in:
            self.faults.append(f"{seq} came before the handshake was answered")
        if seq <= self._reached:
            self.faults.append(f"{seq} came after {self._reached}")
        self._reached = self.last_seen = max(seq, self._reached)
        self._note_own(envelope)
        copy = self.copies.get(envelope.channel)
        if copy is None:
            return  # unsubscribed, and this was under way already
        if seq <= copy.position:
            self.faults.append(f"{seq} came although {copy.position} was known")
        self._apply(copy, envelope)

    def _apply(self, copy: Any, envelope: Any) -> None:
        known = self.seen.setdefault(envelope.server_seq, envelope)
        if known is not envelope and known != envelope:
            self.faults.append(f"{envelope.server_seq} was first {known} and then {envelope}")
        copy.apply(envelope)

    def _note_own(self, envelope: Any) -> None:
        if envelope.origin is not None and envelope.origin.client_id == self.client_id:
            self._unanswered.discard(envelope.origin.client_seq)

    def _rejected(self, rejection: Rejection) -> None:
        self.rejections.append(rejection)
        self._unanswered.discard(rejection.client_seq)
        if rejection.server_seq < self._reached:
            self.faults.append(f"a rejection went back to {rejection.server_seq}")
        self._reached = max(self._reached, rejection.server_seq)
        if not self._is_careful:
            self.last_seen = max(self.last_seen, rejection.server_seq)

    def _answered(self, answer: Answer) -> Frame | None:
        if answer.id not in self._asked:
            self.faults.append(f"an answer to {answer.id}, which was not asked")
            return None
        method, _ = self._asked.pop(answer.id)
        if answer.error is not None:
            return self._failed(method, answer.error)
        match method:
            case "initialize" | "reconnect" | "subscribe":
                outcome = _outcome(answer.result)
                assert outcome is not None
                self._take_outcome(method, outcome)
            case _:
                pass
        return None

    def _failed(self, method: str, error: dict[str, Any]) -> Frame | None:
        if method == "reconnect" and error["code"] == UNKNOWN_CLIENT:
            self._is_known = False
            return self._initialize()
        self.errors.append({"method": method, **error})
        return None

    def _take_outcome(self, method: str, outcome: _Outcome) -> None:
        if method == "subscribe":
            if outcome.snapshot is not None:
                self._show(outcome.snapshot)
            return
        self.is_in = self._is_known = True
        self.resumptions.append(outcome.type or method)
        if outcome.type == "replay":
            self._replayed(outcome)
            return
        self.copies.clear()
        for shown in outcome.snapshots:
            self._show(shown)
        position = outcome.server_seq
        if position is None:
            position = max((s.from_seq for s in outcome.snapshots), default=self.last_seen)
        self.last_seen = self._reached = position

    def _show(self, shown: Shown) -> None:
        copy = self.copies[shown.resource] = self.copied(shown)
        self.stretches.append(copy.stretch)
        if shown.from_seq < self._reached:
            self.faults.append(f"a snapshot of {shown.from_seq} came after {self._reached}")
        self._reached = max(self._reached, shown.from_seq)
        if not self._is_careful:
            self.last_seen = max(self.last_seen, shown.from_seq)

    def _replayed(self, outcome: _Outcome) -> None:
        for channel in outcome.missing:
            self.copies.pop(channel, None)
        last = self.last_seen
        for raw in outcome.actions:
            envelope = self.envelope_of(bytes(raw))
            if envelope.server_seq <= last:
                self.faults.append(f"{envelope.server_seq} was replayed after {last}")
            last = envelope.server_seq
            copy = self.copies.get(envelope.channel)
            if copy is None:
                self.faults.append(f"{envelope.channel} was replayed without being asked for")
            elif envelope.server_seq > copy.position:
                self._apply(copy, envelope)
            elif not self._is_careful:
                self.faults.append(f"{envelope.server_seq} was replayed although it was known")
        self.last_seen = self._reached = last

    # What depends on the version

    def handshake(self) -> dict[str, Any]:
        return {"protocolVersions": ["0.3.0"]}

    understood: Callable[[bytes], Any] = staticmethod(understood)
    envelope_of: Callable[[bytes], Any] = staticmethod(envelope_of)
    copied: Callable[[Shown], Any] = Copy

    def channels(self, uri: Uri) -> list[Uri]:
        """All that it watches of a session, or of the root."""
        return [uri]

    def removed(self, session: Uri) -> None:
        self.copies.pop(session, None)

    def sessions(self) -> dict[Uri, SessionState]:
        """What it sees of the sessions that it watches."""
        shown = {uri: copy.state for uri, copy in self.copies.items()}
        return {uri: state for uri, state in shown.items() if isinstance(state, SessionState)}
