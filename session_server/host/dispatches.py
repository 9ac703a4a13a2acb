"""The actions of one client: each is on its way until its sender knows what became of it.

An action is a notification, and its verdict an envelope. Who sends one as a request gets an answer
besides: `null` once it is accepted, or an error.
"""

from typing import Any

from session_server.host.channel import in_doubt
from session_server.host.errors import no_session
from session_server.host.peer import Peer
from session_server.host.replies import rejection_meta
from session_server.schemas.codec import encode
from session_server.schemas.commands import UndecodedDispatchParams
from session_server.schemas.envelopes import ActionOrigin, RejectionMeta
from session_server.schemas.errors import ErrorCode, RpcError
from session_server.schemas.frames import RequestId
from session_server.schemas.limits import ACTIONS_UNSETTLED
from session_server.schemas.refusals import Refusal, RefusalCode

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
