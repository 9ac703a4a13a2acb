"""The actions of one client until each has its outcome, and frames that cannot be decoded."""

from typing import Any, NamedTuple

import msgspec

from session_server.host.channel import in_doubt
from session_server.host.connection.peer import Peer, rejection_meta
from session_server.host.errors import no_session
from session_server.schemas.ahp.commands import UndecodedDispatchParams
from session_server.schemas.ahp.envelopes import ActionOrigin, RejectionMeta
from session_server.schemas.ahp.frames import FrameHead, RequestId
from session_server.schemas.codec import (
    decode_frame_head,
    decode_undecoded_dispatch,
    encode,
    outline,
)
from session_server.schemas.errors import (
    DecodingError,
    ErrorCode,
    MalformedError,
    Refusal,
    RefusalCode,
    RpcError,
    UnknownKindError,
)
from session_server.schemas.limits import ACTIONS_UNSETTLED

ANSWERING = frozenset({"result", "error"})

_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class Complaint(NamedTuple):
    request_id: RequestId | None
    error: RpcError


class UnreadAction(NamedTuple):
    """An action to reject; with an id it is also answered."""

    params: UndecodedDispatchParams
    request_id: RequestId | None


def meant_by(text: bytes, error: DecodingError) -> Complaint | UnreadAction | None:
    """An error to answer with, an action to reject, or nothing.

    A notification has no answer, and neither has an answer, whatever it is meant for. Of a frame
    that is nested too deep, what stands above that is still read.
    """
    try:
        text = outline(text) if isinstance(error, MalformedError) else text
        head = decode_frame_head(text)
    except DecodingError:
        is_json = not isinstance(error, MalformedError)
        return _complaint(ErrorCode.INVALID_REQUEST if is_json else ErrorCode.PARSE_ERROR, error)
    is_rpc = isinstance(head.method, str) and head.jsonrpc == "2.0"
    request_id = head.id if _is_id(head.id) else None
    if head.method is None and not ANSWERING.isdisjoint(_decode_fields(text)):
        return None
    if is_rpc and head.method == "dispatchAction":
        return _dispatch(head, request_id, error)
    if is_rpc and head.id is None:
        return None
    is_request = is_rpc and request_id is not None
    return _complaint(_code(error) if is_request else ErrorCode.INVALID_REQUEST, error, request_id)


def _dispatch(
    head: FrameHead, request_id: RequestId | None, error: DecodingError
) -> Complaint | UnreadAction:
    try:
        return UnreadAction(decode_undecoded_dispatch(bytes(head.params)), request_id)
    except DecodingError:
        return _complaint(ErrorCode.INVALID_REQUEST, error, request_id)


def _code(error: DecodingError) -> ErrorCode:
    if isinstance(error, MalformedError):
        return ErrorCode.PARSE_ERROR
    is_unknown = isinstance(error, UnknownKindError) and error.path == "$.method"
    return ErrorCode.METHOD_NOT_FOUND if is_unknown else ErrorCode.INVALID_PARAMS


def _complaint(
    code: ErrorCode, error: DecodingError, request_id: RequestId | None = None
) -> Complaint:
    return Complaint(request_id, RpcError(code=code, message=str(error)))


def _is_id(value: Any) -> bool:
    return isinstance(value, int | float | str) and not isinstance(value, bool)


NOT_SAVED = RejectionMeta(code="notSaved")
IN_DOUBT = RejectionMeta(code="inDoubt")
MALFORMED = RejectionMeta(code="malformed")
TOO_MUCH = RejectionMeta(code=RefusalCode.LIMIT)
TOO_MANY_UNSETTLED = (
    "Too many of your actions are still being written; wait for some of them and send it again."
)


class Dispatches:
    """`unsettled` counts the actions whose sender does not know yet."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.held = peer.host.allowances.of(peer.principal.id).held
        self.unsettled = 0

    def take(self, frame: Any, size: int) -> None:
        """`size` is what it holds in memory until it is settled."""
        peer, params = self.peer, frame.params
        channel = peer.host.channel(peer.principal, params.channel)
        if channel is None:
            # The protocol asks for silence, unless somebody waits for an answer.
            self._answer(frame.id, no_session(params.channel).error)
            return
        if self.unsettled >= ACTIONS_UNSETTLED or not self.held.take(size):
            self.refuse(frame, TOO_MANY_UNSETTLED)
            return
        self.unsettled += 1
        sent = Dispatched(self, frame, size)
        peer.host.dispatch(
            peer.principal,
            channel,
            params.action,
            sent.origin,
            done=sent.done,
            refused=sent.refused,
            failed=sent.failed,
            doubted=sent.doubted,
        )

    def refuse(self, frame: Any, reason: str) -> None:
        """Before the rules have looked at it."""
        uri = frame.params.channel
        if self.peer.channel(uri) is not None or self.peer.is_opening(uri):
            self.reject(frame, reason, TOO_MUCH)
        else:
            self._answer(frame.id, no_session(frame.params.channel).error)

    def reject(self, frame: Any, reason: str, meta: RejectionMeta) -> None:
        Dispatched(self, frame, 0).reject(reason, meta)

    def refuse_undecoded(
        self, meant: UndecodedDispatchParams, request_id: RequestId | None, reason: str
    ) -> None:
        """An action that is not understood is refused like one that is not allowed."""
        if self.peer.channel(meant.channel) is not None:
            origin = ActionOrigin(client_id=self.peer.client_id, client_seq=meant.client_seq)
            action = bytes(meant.action)
            self.peer.replies.reject(meant.channel, action, origin, reason, MALFORMED)
        self._answer(request_id, RpcError(code=ErrorCode.INVALID_PARAMS, message=reason))

    def _answer(self, request_id: RequestId | None, error: RpcError) -> None:
        if request_id is not None:
            self.peer.replies.complain(request_id, error)


class Dispatched:
    """One action, and where it came from. What was put off may be done first and refused then."""

    __slots__ = (
        "_dispatches",
        "_is_doubted",
        "_is_settled",
        "_params",
        "_request_id",
        "_size",
        "origin",
    )

    def __init__(self, dispatches: Dispatches, frame: Any, size: int) -> None:
        self._dispatches = dispatches
        self._params = frame.params
        self._size = size
        self._request_id: RequestId | None = frame.id
        self._is_settled = self._is_doubted = False
        client_id = dispatches.peer.client_id
        self.origin = ActionOrigin(client_id=client_id, client_seq=frame.params.client_seq)

    def done(self) -> None:
        self._settle()
        if self._request_id is not None:
            request_id, self._request_id = self._request_id, None
            self._dispatches.peer.replies.tell(request_id, None)

    def refused(self, refusal: Refusal) -> None:
        self._settle()
        self.reject(refusal.message, rejection_meta(refusal))

    def failed(self, words: str) -> None:
        self._settle()
        if not self._is_doubted:
            self.reject(f"This could not be saved: {words}", NOT_SAVED)

    def doubted(self, words: str) -> None:
        self._settle()
        self._is_doubted = True
        self.reject(in_doubt(words), IN_DOUBT)

    def _settle(self) -> None:
        if not self._is_settled:
            self._is_settled = True
            self._dispatches.unsettled -= 1
            self._dispatches.held.give_back(self._size)

    def reject(self, reason: str, meta: RejectionMeta) -> None:
        params = self._params
        replies = self._dispatches.peer.replies
        replies.reject(params.channel, encode(params.action), self.origin, reason, meta)
        if self._request_id is not None:
            request_id, self._request_id = self._request_id, None
            replies.complain(request_id, RpcError(code=ErrorCode.CONFLICT, message=reason))
