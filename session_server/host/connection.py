"""The protocol of one client: frames in, frames out, without a socket.

A transport feeds `receive` with the text of each frame and gives an `Outbox` for the answers.
Before the handshake only `ping`, `initialize` and `reconnect` are understood.
"""

import logging
from collections.abc import Callable
from typing import Any

from session_server.host.commands import COMMANDS
from session_server.host.delivery import Outbox
from session_server.host.dispatches import Dispatches
from session_server.host.errors import CloseCode, CommandError
from session_server.host.handshake import Handshake
from session_server.host.host import Host
from session_server.host.pace import Pace
from session_server.host.peer import Peer
from session_server.host.undecoded import Complaint, meant_by
from session_server.schemas import frames
from session_server.schemas.codec import decode_agent_frame, decode_client_frame
from session_server.schemas.errors import DecodingError, ErrorCode, RpcError
from session_server.schemas.limits import REQUESTS_IN_FLIGHT
from session_server.schemas.principals import Principal, Role

logger = logging.getLogger("session_server.host")

TOO_FAST = "You send faster than this host allows; wait a moment and send it again."
FLOODING = "you sent too much for too long; wait before you reconnect"
TOO_MANY_UNANSWERED = (
    f"{REQUESTS_IN_FLIGHT} of your requests are still unanswered; wait for some of them."
)

ACTIONS = (frames.DispatchAction, frames.AgentDispatchAction)


class Connection:
    def __init__(self, host: Host, principal: Principal, outbox: Outbox) -> None:
        self.peer = Peer(host, principal, outbox)
        self.dispatches = Dispatches(self.peer)
        self._handshake = Handshake(self.peer, self.receive)
        self._greetings: dict[type, Callable[[Any], None]] = {
            frames.Initialize: self._handshake.initialize,
            frames.Reconnect: self._handshake.reconnect,
        }
        self._allowance = host.allowances.of(principal.id)
        self._pace = Pace(self._allowance)
        is_agent = principal.role is Role.AGENT
        self._decode = decode_agent_frame if is_agent else decode_client_frame
        host.connections.opened(principal, outbox, host.now())

    def receive(self, text: bytes) -> None:
        if self._handshake.waiting is not None:
            self._handshake.wait_with(text)
            return
        try:
            frame = self._decode(text)
        except DecodingError as error:
            self._refuse_frame(text, error)
            frame = None
        if not self._pace.charge(1, len(text)):
            self._refuse_hasty(frame, len(text))
        elif frame is not None:
            self._handle(frame, len(text))

    def charge(self, messages: int, size: int) -> bool:
        """Counts what is not a message of its own, such as control frames and fragments.

        Whether it is within the rate limit. A sender that goes on regardless is closed here.
        """
        if self._pace.charge(messages, size):
            return True
        self._is_flooding(messages, size)
        return False

    def _handle(self, frame: Any, size: int) -> None:
        if isinstance(frame, ACTIONS):
            if self.peer.is_known:
                self.dispatches.take(frame.params, size)
            return
        request_id: int | None = getattr(frame, "id", None)
        if request_id is not None:
            self.peer.replies.unanswered += 1
        try:
            self._obey(frame)
        except CommandError as error:
            if request_id is not None:
                self.peer.replies.fail(request_id, error.error)

    def _obey(self, frame: Any) -> None:
        greet = self._greetings.get(type(frame))
        if (greet is not None) == self.peer.is_known and not isinstance(frame, frames.Ping):
            words = "The handshake is done." if greet else "The handshake comes first."
            raise CommandError(ErrorCode.METHOD_NOT_FOUND, words)
        if self.peer.replies.unanswered > REQUESTS_IN_FLIGHT:
            raise CommandError(ErrorCode.CONFLICT, TOO_MANY_UNANSWERED)
        if greet is not None:
            greet(frame)
        else:
            COMMANDS[type(frame)](self.peer, frame)

    def _is_flooding(self, messages: int, size: int) -> bool:
        """Counts a refusal; whether there were too many, so that the connection is closed."""
        if not self._pace.is_abused(messages, size):
            return False
        pause = self._allowance.flooded()
        if pause:
            logger.warning(
                "%s was disconnected for sending too fast; it may connect again in %d s",
                self.peer.principal.id,
                pause,
            )
        self.peer.outbox.close(CloseCode.TOO_MANY_REQUESTS, FLOODING)
        return True

    def _refuse_hasty(self, frame: Any, size: int) -> None:
        """With an error message, a limited number of times. `unsubscribe` is never refused."""
        if self._is_flooding(1, size):
            return
        if isinstance(frame, frames.Unsubscribe):
            self._handle(frame, size)
        elif isinstance(frame, ACTIONS):
            if self.peer.is_known:
                self.dispatches.refuse(frame.params, TOO_FAST)
        elif getattr(frame, "id", None) is not None:
            error = RpcError(code=ErrorCode.CONFLICT, message=TOO_FAST)
            self.peer.replies.complain(frame.id, error)

    def _refuse_frame(self, text: bytes, error: DecodingError) -> None:
        meant = meant_by(text, error)
        if isinstance(meant, Complaint):
            self.peer.replies.complain(meant.request_id, meant.error)
        elif meant is not None and self.peer.is_known:
            self.dispatches.refuse_undecoded(meant, str(error))

    def closed(self) -> None:
        """The other side is gone."""
        if not self._handshake.is_abandoned:
            self._handshake.abandon()
            self.peer.host.connections.closed(self.peer.principal, self.peer.outbox)
            self.peer.leave()
