"""The actions of one client: each is on its way until its sender knows what became of it."""

from typing import Any

from session_server.host.peer import Peer
from session_server.host.replies import rejection_meta
from session_server.schemas.codec import encode
from session_server.schemas.commands import UndecodedDispatchParams
from session_server.schemas.envelopes import ActionOrigin, RejectionMeta
from session_server.schemas.limits import ACTIONS_UNSETTLED
from session_server.schemas.refusals import Refusal, RefusalCode

NOT_SAVED = RejectionMeta(code="notSaved")
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

    def take(self, params: Any, size: int) -> None:
        """`size` is that of the frame: what it holds in memory until it is settled."""
        peer = self.peer
        channel = peer.host.channel(peer.principal, params.channel)
        if channel is None:
            return  # the protocol asks for silence
        if self.unsettled >= ACTIONS_UNSETTLED or not self.held.take(size):
            self.refuse(params, TOO_MANY_UNSETTLED)
            return
        self.unsettled += 1
        sent = Dispatched(self, params, size)
        peer.host.dispatch(
            peer.principal,
            channel,
            params.action,
            sent.origin,
            done=sent.done,
            refused=sent.refused,
            failed=sent.failed,
        )

    def refuse(self, params: Any, reason: str) -> None:
        """Before the rules have looked at it."""
        if self.peer.channel(params.channel) is not None:
            Dispatched(self, params, 0).reject(reason, TOO_MUCH)

    def refuse_undecoded(self, meant: UndecodedDispatchParams, reason: str) -> None:
        """An action that is not understood is refused like one that is not allowed."""
        if self.peer.channel(meant.channel) is not None:
            origin = ActionOrigin(client_id=self.peer.client_id, client_seq=meant.client_seq)
            action = bytes(meant.action)
            self.peer.replies.reject(meant.channel, action, origin, reason, MALFORMED)


class Dispatched:
    """One action, and where it came from. What was put off may be done first and refused then."""

    __slots__ = ("_dispatches", "_is_settled", "_params", "_size", "origin")

    def __init__(self, dispatches: Dispatches, params: Any, size: int) -> None:
        self._dispatches = dispatches
        self._params = params
        self._size = size
        self._is_settled = False
        client_id = dispatches.peer.client_id
        self.origin = ActionOrigin(client_id=client_id, client_seq=params.client_seq)

    def done(self) -> None:
        if not self._is_settled:
            self._is_settled = True
            self._dispatches.unsettled -= 1
            self._dispatches.held.give_back(self._size)

    def refused(self, refusal: Refusal) -> None:
        self.done()
        self.reject(refusal.message, rejection_meta(refusal))

    def failed(self, words: str) -> None:
        self.done()
        self.reject(f"This could not be saved: {words}", NOT_SAVED)

    def reject(self, reason: str, meta: RejectionMeta) -> None:
        params = self._params
        replies = self._dispatches.peer.replies
        replies.reject(params.channel, encode(params.action), self.origin, reason, meta)
