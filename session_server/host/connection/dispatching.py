"""The actions of one client until each has its outcome, and frames that cannot be decoded."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from session_server.host.channels.changes import ActionChange, in_doubt
from session_server.host.connection.peer import Peer, rejection_meta, rpc_error
from session_server.reducers.ahp1.client_actions import own_kind, plan
from session_server.reducers.rules.judge import OTHER_CHANNEL
from session_server.schemas.ahp.actions import RootConfigChanged
from session_server.schemas.ahp.commands import ROOT_CHANNEL, UndecodedDispatchParams
from session_server.schemas.ahp.envelopes import ActionOrigin, RejectionMeta
from session_server.schemas.ahp.frames import FrameHead, RequestId
from session_server.schemas.ahp1 import methods
from session_server.schemas.codec import (
    decode_frame_head,
    decode_undecoded_dispatch,
    encode,
    outline,
)
from session_server.schemas.errors import (
    CommandError,
    DecodingError,
    ErrorCode,
    MalformedError,
    Refusal,
    RefusalCode,
    RpcError,
    no_session,
)
from session_server.schemas.limits import ACTIONS_UNSETTLED
from session_server.schemas.log_entries import LoggedAction
from session_server.schemas.principals import Stamp
from session_server.schemas.record import SessionRecord

ANSWERING = frozenset({"result", "error"})

_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class ErrorReply(NamedTuple):
    request_id: RequestId | None
    error: RpcError


class UnreadAction(NamedTuple):
    """An action to reject; with an id it is also answered."""

    params: UndecodedDispatchParams
    request_id: RequestId | None


def classify_unreadable(text: bytes, error: DecodingError) -> ErrorReply | UnreadAction | None:
    """An error to answer with, an action to reject, or nothing.

    A notification has no answer, and neither has an answer, whatever it is meant for. Of a frame
    that is nested too deep, what stands above that is still read.
    """
    try:
        text = outline(text) if isinstance(error, MalformedError) else text
        head = decode_frame_head(text)
    except DecodingError:
        is_json = not isinstance(error, MalformedError)
        return _error_reply(ErrorCode.INVALID_REQUEST if is_json else ErrorCode.PARSE_ERROR, error)
    is_rpc = isinstance(head.method, str) and head.jsonrpc == "2.0"
    request_id = head.id if _is_id(head.id) else None
    if head.method is None and not ANSWERING.isdisjoint(_decode_fields(text)):
        return None
    if is_rpc and head.method == "dispatchAction":
        return _dispatch(head, request_id, error)
    if is_rpc and head.id is None:
        return None
    if is_rpc and request_id is not None:
        return ErrorReply(request_id, rpc_error(error))
    return _error_reply(ErrorCode.INVALID_REQUEST, error, request_id)


def _dispatch(
    head: FrameHead, request_id: RequestId | None, error: DecodingError
) -> ErrorReply | UnreadAction:
    try:
        return UnreadAction(decode_undecoded_dispatch(bytes(head.params)), request_id)
    except DecodingError:
        return _error_reply(ErrorCode.INVALID_REQUEST, error, request_id)


def _error_reply(
    code: ErrorCode, error: DecodingError, request_id: RequestId | None = None
) -> ErrorReply:
    return ErrorReply(request_id, RpcError(code=code, message=str(error)))


def _is_id(value: Any) -> bool:
    return isinstance(value, int | float | str) and not isinstance(value, bool)


NOT_SAVED = RejectionMeta(code="notSaved")
IN_DOUBT = RejectionMeta(code="inDoubt")
MALFORMED = RejectionMeta(code="malformed")
TOO_MUCH = RejectionMeta(code=RefusalCode.LIMIT)
TOO_MANY_UNSETTLED = (
    "Too many of your actions are still being written; wait for some of them and send it again."
)


class Dispatcher:
    """`unsettled` counts the actions whose sender does not know yet."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.unsettled_bytes = peer.host.allowances.of(peer.principal.id).unsettled
        self.unsettled = 0

    def dispatch(self, frame: Any, size: int) -> None:
        """`size` is what it holds in memory until it is settled."""
        peer = self.peer
        change_type = ClientChange
        if peer.ahp1 is not None:
            if self.is_foreign_setting(frame):
                self.echo(frame)
                return
            change_type = Ahp1ClientChange
        if self.unsettled >= ACTIONS_UNSETTLED or not self.unsettled_bytes.acquire(size):
            self.refuse(frame, TOO_MANY_UNSETTLED)
            return
        self.unsettled += 1
        change = change_type(self, frame, size)
        try:
            peer.host.submit(peer.session_uri(frame.params.channel), change)
        except CommandError as error:
            # The protocol asks for silence, unless somebody waits for an answer.
            change.release()
            self._answer(frame.id, rpc_error(error))
        except Exception:
            change.release()
            raise

    def is_foreign_setting(self, frame: Any) -> bool:
        """Whether a client of AHP 0.9 or 1.x changes settings that this host does not have."""
        if not self.peer.is_known:
            return False
        if not isinstance(frame, methods.DispatchAction):
            return False
        action, state = frame.params.action, self.peer.host.root.committed
        if frame.params.channel != ROOT_CHANNEL or not isinstance(action, RootConfigChanged):
            return False
        known = {} if state is None or state.config is None else state.config.schema.properties
        return not action.replace and not any(name in known for name in action.config)

    def echo(self, frame: Any) -> None:
        """It changes nothing, but a client that gets no echo would show it as pending for ever."""
        peer, params = self.peer, frame.params
        envelope = methods.Envelope(
            channel=ROOT_CHANNEL,
            action=params.action,
            server_seq=peer.replies.number(peer.host.position),
            origin=ActionOrigin(client_id=peer.client_id, client_seq=params.client_seq),
        )
        peer.replies.send(methods.ActionNotification(params=envelope))
        if frame.id is not None:
            peer.replies.respond(frame.id, None)

    def refuse(self, frame: Any, reason: str) -> None:
        """Before the rules have looked at it."""
        uri = self.peer.session_uri(frame.params.channel)
        if self.peer.channel(uri) is not None or self.peer.is_opening(uri):
            self.reject(frame, reason, TOO_MUCH)
        else:
            self._answer(frame.id, rpc_error(no_session(frame.params.channel)))

    def reject(self, frame: Any, reason: str, meta: RejectionMeta) -> None:
        ClientChange(self, frame, 0).reject(reason, meta)

    def refuse_undecoded(
        self, meant: UndecodedDispatchParams, request_id: RequestId | None, reason: str
    ) -> None:
        """An action that is not understood is refused like one that is not allowed."""
        if self.peer.channel(self.peer.session_uri(meant.channel)) is not None:
            origin = ActionOrigin(client_id=self.peer.client_id, client_seq=meant.client_seq)
            action = bytes(meant.action)
            self.peer.replies.reject(meant.channel, action, origin, reason, MALFORMED)
        self._answer(request_id, RpcError(code=ErrorCode.INVALID_PARAMS, message=reason))

    def _answer(self, request_id: RequestId | None, error: RpcError) -> None:
        if request_id is not None:
            self.peer.replies.respond_with_error(request_id, error)


class ClientChange(ActionChange):
    """One action of a client, until its outcome is known."""

    __slots__ = ("_dispatcher", "_is_doubted", "_is_settled", "_request_id", "_size", "_uri")

    def __init__(self, dispatcher: Dispatcher, frame: Any, size: int) -> None:
        peer, params = dispatcher.peer, frame.params
        origin = ActionOrigin(client_id=peer.client_id, client_seq=params.client_seq)
        super().__init__(peer.principal, params.action, origin, peer.author)
        self._dispatcher = dispatcher
        self._uri = params.channel
        self._size = size
        self._request_id: RequestId | None = frame.id
        self._is_settled = self._is_doubted = False

    def done(self) -> None:
        self.release()
        if self._request_id is not None:
            request_id, self._request_id = self._request_id, None
            self._dispatcher.peer.replies.respond(request_id, None)

    def refused(self, refusal: Refusal) -> None:
        self.release()
        self.reject(refusal.message, rejection_meta(refusal))

    def failed(self, reason: str) -> None:
        self.release()
        if not self._is_doubted:
            self.reject(f"This could not be saved: {reason}", NOT_SAVED)

    def doubted(self, reason: str) -> None:
        self.release()
        self._is_doubted = True
        self.reject(in_doubt(reason), IN_DOUBT)

    def release(self) -> None:
        if not self._is_settled:
            self._is_settled = True
            self._dispatcher.unsettled -= 1
            self._dispatcher.unsettled_bytes.release(self._size)

    def reject(self, reason: str, meta: RejectionMeta) -> None:
        assert self.origin is not None
        replies = self._dispatcher.peer.replies
        replies.reject(self._uri, encode(self._action), self.origin, reason, meta)
        if self._request_id is not None:
            request_id, self._request_id = self._request_id, None
            replies.respond_with_error(
                request_id, RpcError(code=ErrorCode.CONFLICT, message=reason)
            )


class Ahp1ClientChange(ClientChange):
    """One action of a client of AHP 0.9 or 1.x."""

    __slots__ = ("_on_chat",)

    def __init__(self, dispatcher: Dispatcher, frame: Any, size: int) -> None:
        super().__init__(dispatcher, frame, size)
        ahp1 = dispatcher.peer.ahp1
        assert ahp1 is not None
        self._on_chat = ahp1.target(frame.params.channel).on_chat
        self.origin_type = own_kind(frame.params.action)

    def plan(self, record: Any, stamp: Stamp) -> Sequence[LoggedAction] | Refusal:
        assert self.principal is not None
        if isinstance(record, SessionRecord):
            return plan(
                self.principal,
                record,
                self._action,
                stamp,
                on_chat=self._on_chat,
                origin=self.origin,
            )
        is_roots = isinstance(self._action, RootConfigChanged)
        return super().plan(record, stamp) if is_roots else OTHER_CHANNEL
