"""The protocol of one client: frames in, frames out, without a socket.

A transport feeds `receive` with the text of each frame and gives an `Outbox` for the answers.
Before the handshake only `ping`, `initialize` and `reconnect` are understood. Frames for a session
that is being opened wait until it is there, in their order; so do frames that read a session which
is not in memory.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from session_server.host.channels.messages import BROKEN, Outbox
from session_server.host.clients.open_connections import EXPIRED
from session_server.host.connection.ahp1_commands import AHP1_COMMANDS
from session_server.host.connection.commands import COMMANDS
from session_server.host.connection.dispatching import (
    NOT_SAVED,
    Dispatcher,
    ErrorReply,
    classify_unreadable,
)
from session_server.host.connection.handshake import Handshake
from session_server.host.connection.peer import Peer, rpc_error
from session_server.host.connection.rate_limit import Pace
from session_server.host.host import Host
from session_server.schemas.ahp import frames
from session_server.schemas.ahp.commands import ROOT_CHANNEL
from session_server.schemas.ahp1 import methods
from session_server.schemas.codec import decode_agent_frame, decode_ahp1_frame, decode_client_frame
from session_server.schemas.errors import (
    CloseCode,
    CommandError,
    DecodingError,
    ErrorCode,
    RpcError,
)
from session_server.schemas.limits import FOREIGN_SETTINGS, HELD_FRAMES, REQUESTS_IN_FLIGHT
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

MAY_BE_OUTDATED = (ErrorCode.SESSION_NOT_FOUND, ErrorCode.SESSION_EXISTS)
"""What another node may just have changed."""

ACTIONS = (frames.DispatchAction, frames.AgentDispatchAction, methods.DispatchAction)
READING = frozenset((frames.Subscribe, frames.FetchTurns, frames.CreateSession, methods.FetchTurns))
"""What needs a session's record. An action waits in its channel, and the rest needs none."""


class HeldFrame(NamedTuple):
    frame: Any
    size: int


class Connection:
    def __init__(self, host: Host, principal: Principal, outbox: Outbox) -> None:
        self.peer = Peer(host, principal, outbox)
        self.dispatcher = Dispatcher(self.peer)
        self._handshake = Handshake(self.peer, self.receive)
        self._greetings: dict[type, Callable[[Any], None]] = {
            frames.Initialize: self._handshake.initialize,
            frames.Reconnect: self._handshake.reconnect,
        }
        self._held: dict[Uri, list[HeldFrame]] = {}
        self._held_frames = 0
        self._openings = host.lifecycle.openings
        self._states = host.states
        self._is_up_to_date = False
        self._free_settings = FOREIGN_SETTINGS
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
        ahp1, size = self.peer.ahp1, len(text)
        try:
            frame = self._decode(text) if ahp1 is None else decode_ahp1_frame(text)
        except DecodingError as error:
            self._refuse_frame(text, error)
            frame = None
        if ahp1 is not None and self._take_free_setting(frame):
            self.dispatcher.echo(frame)
        elif not self._pace.charge(1, size):
            self._refuse_over_rate(frame, size)
        elif (
            self._held
            or self._openings
            or (self._states.evicted_sessions and type(frame) in READING)
        ):
            self._route(frame, size)
        elif frame is not None:
            self._handle(frame, size)

    def _take_free_setting(self, frame: Any) -> bool:
        """Whether it costs nothing: some clients begin with a burst of settings of their own, which
        change nothing here.
        """
        if self._free_settings and self.dispatcher.is_foreign_setting(frame):
            self._free_settings -= 1
            return True
        return False

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
        self._close_if_flooding(messages, size)
        return False

    def _route(self, frame: Any, size: int) -> None:
        """Handles a frame now, or once its session is open and in memory."""
        if frame is None:
            return
        uri = self.peer.session_uri(frame.params.channel or ROOT_CHANNEL)
        if uri in self._held:
            self._hold(uri, frame, size)
            return
        awaited = self._awaited(uri, frame) if self.peer.is_known else None
        if awaited is None:
            self._handle(frame, size)
        else:
            self._held[uri] = []
            self._hold(uri, frame, size)
            settled = partial(self._release, uri, awaited)
            self.peer.host.lifecycle.when_settled((awaited,), settled)

    def _awaited(self, uri: Uri, frame: Any) -> Uri | None:
        """The session that has to be there first, and is not."""
        if self.peer.is_opening(uri):
            return uri
        if type(frame) not in READING:
            return None
        fork = frame.params.fork if isinstance(frame, frames.CreateSession) else None
        read = uri if fork is None else fork.session
        is_seen = self.peer.channel(read) is not None
        return read if is_seen and self.peer.host.loaded.is_evicted(read) else None

    def _hold(self, uri: Uri, frame: Any, size: int) -> None:
        if self._held_frames >= HELD_FRAMES or not self._allowance.unsettled.acquire(size):
            self._refuse(frame, TOO_MUCH_HELD)
            return
        self._held_frames += 1
        self._held[uri].append(HeldFrame(frame, size))

    def _release(self, uri: Uri, awaited: Uri) -> None:
        """The session is there, or will not be. One of its frames may dispose of it or make it."""
        try:
            for frame, size in self._freed(uri):
                if isinstance(frame, ACTIONS) and self.peer.channel(uri) is None:
                    self.dispatcher.reject(frame, NOT_OPENED, NOT_SAVED)
                elif self.peer.host.loaded.is_evicted(awaited):
                    self._handle(frame, size)  # it could not be loaded, and its sender is told so
                else:
                    self._route(frame, size)
        except Exception:
            logger.exception("a frame that had waited could not be dealt with")
            self.peer.outbox.close(CloseCode.INTERNAL_ERROR, BROKEN)

    def _freed(self, uri: Uri) -> list[HeldFrame]:
        freed = self._held.pop(uri, [])
        self._held_frames -= len(freed)
        self._allowance.unsettled.release(sum(frame.size for frame in freed))
        return freed

    def _handle(self, frame: Any, size: int) -> None:
        if isinstance(frame, ACTIONS):
            if self.peer.is_known:
                self.dispatcher.dispatch(frame, size)
            elif frame.id is not None:
                error = RpcError(code=ErrorCode.METHOD_NOT_FOUND, message=HANDSHAKE_FIRST)
                self.peer.replies.respond_with_error(frame.id, error)
            return
        request_id: frames.RequestId | None = frame.id
        if request_id is not None:
            self.peer.replies.unanswered += 1
        try:
            self._execute(frame)
        except CommandError as error:
            if error.rpc_code in MAY_BE_OUTDATED and self._look_again(frame, size):
                return
            if request_id is not None:
                self.peer.replies.fail(request_id, rpc_error(error))
            if error.closing is not None:
                self.peer.outbox.close(error.closing, str(error))

    def _look_again(self, frame: Any, size: int) -> bool:
        """Holds a request until what other nodes wrote is here; whether it is worth that."""
        if self.peer.host.follower is None or self._is_up_to_date or frame.id is None:
            return False
        self.peer.replies.unanswered -= 1
        uri = self.peer.session_uri(frame.params.channel or ROOT_CHANNEL)
        is_new = uri not in self._held
        self._held.setdefault(uri, [])
        self._hold(uri, frame, size)
        if is_new:
            self.peer.host.spawn(self._caught_up(uri))
        return True

    async def _caught_up(self, uri: Uri) -> None:
        await self.peer.host.caught_up()
        self._is_up_to_date = True
        self._release(uri, uri)
        self._is_up_to_date = False

    def _execute(self, frame: Any) -> None:
        greet = self._greetings.get(type(frame))
        if (greet is not None) == self.peer.is_known and not isinstance(frame, frames.Ping):
            reason = "The handshake is done." if greet else HANDSHAKE_FIRST
            raise CommandError(ErrorCode.METHOD_NOT_FOUND, reason)
        if self.peer.replies.unanswered > REQUESTS_IN_FLIGHT:
            raise CommandError(ErrorCode.CONFLICT, TOO_MANY_UNANSWERED)
        if greet is not None:
            greet(frame)
        else:
            table = COMMANDS if self.peer.ahp1 is None else AHP1_COMMANDS
            table[type(frame)](self.peer, frame)

    def _close_if_flooding(self, messages: int, size: int) -> bool:
        """Counts a refusal; whether there were too many, so that the connection was closed."""
        if not self._pace.count_refusal(messages, size):
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

    def _refuse_over_rate(self, frame: Any, size: int) -> None:
        """With an error message, a limited number of times. `unsubscribe` is never refused."""
        if self._close_if_flooding(1, size):
            return
        if isinstance(frame, frames.Unsubscribe):
            self._handle(frame, size)
        elif frame is not None:
            self._refuse(frame, TOO_FAST)

    def _refuse(self, frame: Any, reason: str) -> None:
        """For want of room, now; trying again later helps."""
        if isinstance(frame, ACTIONS):
            if self.peer.is_known:
                self.dispatcher.refuse(frame, reason)
        elif frame.id is not None:
            self.peer.replies.respond_with_error(
                frame.id, RpcError(code=ErrorCode.CONFLICT, message=reason)
            )

    def _refuse_frame(self, text: bytes, error: DecodingError) -> None:
        meant = classify_unreadable(text, error)
        if isinstance(meant, ErrorReply):
            self.peer.replies.respond_with_error(meant.request_id, meant.error)
        elif meant is not None and self.peer.is_known:
            self.dispatcher.refuse_undecoded(*meant, str(error))

    def closed(self) -> None:
        """The other side is gone."""
        if not self._handshake.is_abandoned:
            self._handshake.abandon()
            for uri in tuple(self._held):
                self._freed(uri)
            self.peer.host.connections.closed(self.peer.principal, self.peer.outbox)
            self.peer.leave()
