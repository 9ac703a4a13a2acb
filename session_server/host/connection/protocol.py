"""The protocol of one client: frames in, frames out, without a socket.

A transport feeds `receive` with the text of each frame and gives an `Outbox` for the answers.
Before the handshake only `ping`, `initialize` and `reconnect` are understood. Frames for a session
that is being opened wait until it is there, in their order.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from session_server.host.connection.commands import COMMANDS
from session_server.host.connection.dispatching import NOT_SAVED, Complaint, Dispatches, meant_by
from session_server.host.connection.handshake import Handshake
from session_server.host.connection.peer import Peer
from session_server.host.connection.rate_limit import Pace
from session_server.host.delivery import Outbox
from session_server.host.errors import CloseCode, CommandError
from session_server.host.host import Host
from session_server.host.open_connections import EXPIRED
from session_server.host.presence import session_of
from session_server.schemas.ahp import frames
from session_server.schemas.codec import decode_agent_frame, decode_client_frame
from session_server.schemas.errors import DecodingError, ErrorCode, RpcError
from session_server.schemas.limits import HELD_FRAMES, REQUESTS_IN_FLIGHT
from session_server.schemas.principals import Principal, Role
from session_server.schemas.wire import Uri

logger = logging.getLogger("session_server.host")

TOO_FAST = "You send faster than this host allows; wait a moment and send it again."
FLOODING = "you sent too much for too long; wait before you reconnect"
TOO_MANY_UNANSWERED = (
    f"{REQUESTS_IN_FLIGHT} of your requests are still unanswered; wait for some of them."
)

TOO_MUCH_HELD = (
    "Too many of your frames wait for sessions that are being opened; wait for those sessions, then"
    " send this again."
)
NOT_OPENED = "The session could not be opened."
HANDSHAKE_FIRST = "The handshake comes first."
BROKEN = "something went wrong here; reconnect to resume"

ACTIONS = (frames.DispatchAction, frames.AgentDispatchAction)


class HeldFrame(NamedTuple):
    frame: Any
    size: int


class Connection:
    def __init__(self, host: Host, principal: Principal, outbox: Outbox) -> None:
        self.peer = Peer(host, principal, outbox)
        self.dispatches = Dispatches(self.peer)
        self._handshake = Handshake(self.peer, self.receive)
        self._greetings: dict[type, Callable[[Any], None]] = {
            frames.Initialize: self._handshake.initialize,
            frames.Reconnect: self._handshake.reconnect,
        }
        self._held: dict[Uri, list[HeldFrame]] = {}
        self._held_frames = 0
        self._allowance = host.allowances.of(principal.id)
        self._pace = Pace(self._allowance)
        is_agent = principal.role is Role.AGENT
        self._decode = decode_agent_frame if is_agent else decode_client_frame
        self._expires_at = principal.expires_at
        host.connections.opened(principal, outbox)

    def receive(self, text: bytes) -> None:
        if self._expires_at is not None and self.peer.host.now() >= self._expires_at:
            # The clock was set forward, or the machine slept: its timer comes soon.
            self.peer.outbox.close(CloseCode.NOT_ALLOWED, EXPIRED)
            return
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
            self._take(frame, len(text))

    @property
    def is_busy(self) -> bool:
        """A frame that comes now has to wait for the handshake to be answered."""
        return self._handshake.waiting is not None

    def charge(self, messages: int, size: int) -> bool:
        """Counts what is not a message of its own, such as control frames and fragments.

        Whether it is within the rate limit. A sender that goes on regardless is closed here.
        """
        if self._pace.charge(messages, size):
            return True
        self._is_flooding(messages, size)
        return False

    def _take(self, frame: Any, size: int) -> None:
        """Deals with a frame now, or once the session that it is for is there."""
        uri = frame.params.channel
        uri = session_of(uri) or uri
        if uri in self._held:
            self._hold(uri, frame, size)
        elif self.peer.is_known and self.peer.is_opening(uri):
            self._held[uri] = []
            self._hold(uri, frame, size)
            self.peer.host.when_settled((uri,), partial(self._release, uri))
        else:
            self._handle(frame, size)

    def _hold(self, uri: Uri, frame: Any, size: int) -> None:
        if self._held_frames >= HELD_FRAMES or not self._allowance.held.take(size):
            self._refuse(frame, TOO_MUCH_HELD)
            return
        self._held_frames += 1
        self._held[uri].append(HeldFrame(frame, size))

    def _release(self, uri: Uri) -> None:
        """The session is there, or will not be. One of its frames may dispose of it or make it."""
        try:
            for frame, size in self._freed(uri):
                if isinstance(frame, ACTIONS) and self.peer.channel(uri) is None:
                    self.dispatches.reject(frame, NOT_OPENED, NOT_SAVED)
                else:
                    self._take(frame, size)
        except Exception:
            logger.exception("a frame that had waited could not be dealt with")
            self.peer.outbox.close(CloseCode.INTERNAL_ERROR, BROKEN)

    def _freed(self, uri: Uri) -> list[HeldFrame]:
        freed = self._held.pop(uri, [])
        self._held_frames -= len(freed)
        self._allowance.held.give_back(sum(frame.size for frame in freed))
        return freed

    def _handle(self, frame: Any, size: int) -> None:
        if isinstance(frame, ACTIONS):
            if self.peer.is_known:
                self.dispatches.take(frame, size)
            elif frame.id is not None:
                error = RpcError(code=ErrorCode.METHOD_NOT_FOUND, message=HANDSHAKE_FIRST)
                self.peer.replies.complain(frame.id, error)
            return
        request_id: frames.RequestId | None = frame.id
        if request_id is not None:
            self.peer.replies.unanswered += 1
        try:
            self._obey(frame)
        except CommandError as error:
            if request_id is not None:
                self.peer.replies.fail(request_id, error.error)
            if error.closing is not None:
                self.peer.outbox.close(error.closing, str(error))

    def _obey(self, frame: Any) -> None:
        greet = self._greetings.get(type(frame))
        if (greet is not None) == self.peer.is_known and not isinstance(frame, frames.Ping):
            words = "The handshake is done." if greet else HANDSHAKE_FIRST
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
        elif frame is not None:
            self._refuse(frame, TOO_FAST)

    def _refuse(self, frame: Any, words: str) -> None:
        """For want of room, now; trying again later helps."""
        if isinstance(frame, ACTIONS):
            if self.peer.is_known:
                self.dispatches.refuse(frame, words)
        elif frame.id is not None:
            self.peer.replies.complain(frame.id, RpcError(code=ErrorCode.CONFLICT, message=words))

    def _refuse_frame(self, text: bytes, error: DecodingError) -> None:
        meant = meant_by(text, error)
        if isinstance(meant, Complaint):
            self.peer.replies.complain(meant.request_id, meant.error)
        elif meant is not None and self.peer.is_known:
            self.dispatches.refuse_undecoded(*meant, str(error))

    def closed(self) -> None:
        """The other side is gone."""
        if not self._handshake.is_abandoned:
            self._handshake.abandon()
            for uri in tuple(self._held):
                self._freed(uri)
            self.peer.host.connections.closed(self.peer.principal, self.peer.outbox)
            self.peer.leave()
