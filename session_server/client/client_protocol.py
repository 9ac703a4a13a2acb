"""The client's side of AHP without a socket: frames in, frames out, and its status."""

import logging
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, Protocol

from session_server.client.channels import Channels, Watched
from session_server.client.dialects import Dialect, dialect_of
from session_server.client.errors import (
    ClientError,
    CommandFailed,
    ConnectionLost,
    GaveUp,
    NotUnderstood,
    TooLarge,
    TooManyPending,
    command_failed,
)
from session_server.client.json_rpc import (
    Callback,
    HostMessage,
    JsonRpcClient,
    Replay,
    Response,
    decode_delivery,
    decode_initialized,
    decode_message,
    decode_presence,
    decode_removed,
    decode_resumption,
)
from session_server.client.mirror import Mirror, Pending, Verdict
from session_server.reducers.version_negotiation import SUPPORTED_VERSIONS
from session_server.schemas.ahp import frames
from session_server.schemas.ahp.actions import Action
from session_server.schemas.ahp.commands import (
    PROTOCOL_VERSION,
    ROOM_PREFIX,
    ROOT_CHANNEL,
    SESSION_PREFIX,
    AgentDispatchActionParams,
    EditingPlace,
    Implementation,
    InitializeParams,
    Params,
    PresenceUpdateParams,
    Present,
    ReconnectParams,
)
from session_server.schemas.ahp.frames import JSONRPC, Subscribe
from session_server.schemas.codec import encode
from session_server.schemas.errors import DecodingError, ErrorCode
from session_server.schemas.limits import FRAME_BYTES
from session_server.schemas.wire import Uri


class Phase(StrEnum):
    CONNECTING = "connecting"
    """Not connected yet."""
    LIVE = "live"
    """Connected, and everything we did is confirmed."""
    SYNCING = "syncing"
    """Connected; some of what we did is not confirmed yet."""
    OFFLINE = "offline"
    """The connection broke; it is being made again."""
    CLOSED = "closed"
    """Closed by this client, or reconnecting would not help."""


class Status(NamedTuple):
    """`waiting` is how many of our own actions the host has not confirmed."""

    phase: Phase
    waiting: int = 0

    @property
    def is_connected(self) -> bool:
        return self.phase in (Phase.LIVE, Phase.SYNCING)

    def __str__(self) -> str:
        match self.phase:
            case Phase.SYNCING:
                return f"syncing {self.waiting}"
            case Phase.OFFLINE if self.waiting:
                return f"offline, {self.waiting} waiting"
            case phase:
                return phase.value


class Presence:
    """One session's presence channel, while we are in it."""

    def __init__(self, session: Uri, rpc: JsonRpcClient) -> None:
        self.room: Uri = f"{ROOM_PREFIX}{session.removeprefix(SESSION_PREFIX)}"
        self.present: tuple[Present, ...] = ()
        self.on_change: Callable[[], None] = lambda: None
        self._rpc = rpc
        self._is_live = False

    def live(self) -> None:
        """Joins again on a new connection."""
        self._is_live = True
        self._rpc.request(Subscribe, Params(channel=self.room), self._joined)

    def _joined(self, response: Response) -> None:
        """A host without presence refuses it, and nothing is shown or reported."""
        self._is_live = not isinstance(response, ClientError)

    def lost(self) -> None:
        self._is_live = False
        self.changed(())

    def leave(self) -> None:
        if self._is_live:
            self._rpc.unsubscribe(self.room)
        self.lost()

    def edits(self, place: EditingPlace | None) -> None:
        """Reports where we write; the host forgets it after some seconds or with the connection."""
        if self._is_live:
            self._rpc.report(PresenceUpdateParams(channel=self.room, editing=place))

    def changed(self, present: tuple[Present, ...]) -> None:
        if present != self.present:
            self.present = present
            self.on_change()


logger = logging.getLogger("session_server.client")

PENDING_LIMIT = 1_000
"""Own actions that may wait for confirmation; one more is refused."""


CLIENT = Implementation(name="session-server-client")
OURS = "session-server"
"""Hosts of this name accept names of people, an extension; 0.3.0 has no host names."""

OTHER_ID = " Connect with another client_id, or leave it out to get a new one."

ANNOUNCEMENTS = frozenset(
    {"root/sessionAdded", "root/sessionRemoved", "root/sessionSummaryChanged"}
)


class Listener(Protocol):
    """Is notified about all sessions, watched or not."""

    def announced(self, message: HostMessage) -> None: ...

    def look(self) -> None:
        """The status of the connection has changed."""
        ...


class ClientProtocol:
    """`versions` are offered to the host; `version` is the one that it has chosen."""

    def __init__(
        self,
        client_id: str,
        clock: Callable[[], int],
        *,
        name: str | None = None,
        versions: Sequence[str] = SUPPORTED_VERSIONS,
    ) -> None:
        self.client_id = client_id
        self.version: str | None = None
        self._versions = tuple(versions)
        self._name = name
        self.error: ClientError | None = None
        self.on_status: Callable[[], None] = lambda: None
        self.listings: set[Listener] = set()
        self.rooms: set[Presence] = set()
        self.rpc = JsonRpcClient()
        self.channels = Channels(client_id, clock, self.rpc)
        self._clock = clock
        self._client_seq = 0
        self._takes_names = False
        self._resumed: tuple[Uri, ...] = ()

    @property
    def dialect(self) -> Dialect:
        return self.channels.dialect

    @property
    def is_live(self) -> bool:
        return self.channels.is_live

    @property
    def status(self) -> Status:
        waiting = self.channels.waiting
        if self.error is not None:
            return Status(Phase.CLOSED)
        if self.is_live:
            return Status(Phase.SYNCING if waiting else Phase.LIVE, waiting)
        return Status(Phase.CONNECTING if self.version is None else Phase.OFFLINE, waiting)

    # The transport's side

    def connected(self) -> None:
        """A new socket: the handshake comes first."""
        if self.version is None:
            self._initialize()
            return
        self._resumed = self.channels.uris
        params = ReconnectParams(
            channel=ROOT_CHANNEL,
            client_id=self.client_id,
            last_seen_server_seq=self.channels.last_seen,
            subscriptions=self._resumed,
        )
        self.rpc.request(frames.Reconnect, params, self._reconnected)

    def disconnected(self) -> None:
        """Requests are lost; actions wait for the next connection."""
        self.channels.lost()
        for room in tuple(self.rooms):
            room.lost()
        self.rpc.end(ConnectionLost("The connection broke."))
        self.on_status()

    def receive(self, text: bytes | str) -> None:
        """Raises `GaveUp` when the host refuses us, and `NotUnderstood` for what is not AHP."""
        try:
            self._receive(decode_message(text))
        except DecodingError as error:
            raise NotUnderstood(f"The host sent something that is not AHP: {error}") from error
        self.on_status()

    def close(self, error: ClientError) -> None:
        """Ends everything: all that wait for something get this error."""
        if self.error is None:
            self.error = error
            self.channels.end(error)
            for room in tuple(self.rooms):
                room.lost()
            self.rpc.end(error)
            self.on_status()

    # The user's side

    def request(self, frame: Any, params: Any, callback: Callback) -> None:
        """Sends a command now; without a connection it fails now."""
        if self.is_live:
            self.rpc.request(frame, params, callback)
        else:
            callback(self.error or ConnectionLost("There is no connection."))

    def watch(
        self, channel: Uri, found: Callable[[Watched], None], chat: Uri | None = None
    ) -> None:
        """Returns the channel's mirror as soon as there is one. Each `watch` needs an `unwatch`."""
        self.channels.watch(channel, found, chat)
        if self.error is not None:
            self.channels.end(self.error)

    def unwatch(self, channel: Uri, chat: Uri | None = None) -> None:
        self.channels.unwatch(channel, chat)
        self.on_status()

    def join(self, room: Presence) -> None:
        """Shows others that we are in this session, until `leave`."""
        self.rooms.add(room)
        if self.is_live:
            room.live()

    def leave(self, room: Presence) -> None:
        self.rooms.discard(room)
        room.leave()

    def dispatch(
        self, mirror: Mirror[Any], action: Action, settled: Callable[[Verdict], None]
    ) -> None:
        """Takes effect in the mirror now, and at the host as soon as that can be reached.

        The number of an action never changes and is never used again, so that its echo is known on
        whichever connection it comes.
        """
        if mirror.error is not None:
            raise mirror.error
        if self.channels.waiting >= PENDING_LIMIT:
            raise TooManyPending(f"{PENDING_LIMIT} actions are waiting to be confirmed already.")
        at = self._clock()
        channel, worded = self.dialect.outgoing(mirror, action, at)
        params = AgentDispatchActionParams(
            channel=channel, client_seq=self._client_seq + 1, action=worded
        )
        frame = encode(frames.AgentDispatchAction(jsonrpc=JSONRPC, params=params))
        if len(frame) > FRAME_BYTES:
            raise TooLarge(f"This action has {len(frame)} bytes; a frame may have {FRAME_BYTES}.")
        self._client_seq += 1
        pending = Pending(self._client_seq, channel, worded, at, frame, [settled])
        mirror.dispatch(pending)
        if not self.channels.send(mirror, pending):
            mirror.supersede(pending)
        self.on_status()

    # The handshake

    def _initialize(self) -> None:
        self._resumed = tuple(dict.fromkeys((ROOT_CHANNEL, *self.channels.uris)))
        params = InitializeParams(
            channel=ROOT_CHANNEL,
            protocol_versions=self._versions,
            client_id=self.client_id,
            client_info=CLIENT,
            initial_subscriptions=self._resumed,
        )
        self.rpc.request(frames.Initialize, params, self._initialized)

    def _initialized(self, response: Response) -> None:
        if isinstance(response, ClientError):
            _refused(response)
            return
        result = decode_initialized(bytes(response))
        version = result.protocol_version
        if version not in self._versions:
            raise GaveUp(f"The host speaks AHP {version}, not {' or '.join(self._versions)}.")
        self.channels.dialect = dialect_of(version)
        self.version, self._versions = version, (version,)  # it stays, on every connection
        host = result.server_info
        self._takes_names = version == PROTOCOL_VERSION or (host is not None and host.name == OURS)
        self.channels.restart(result.snapshots, result.server_seq)
        self._go_live()

    def _reconnected(self, response: Response) -> None:
        if isinstance(response, CommandFailed) and response.rpc_code == ErrorCode.NOT_FOUND:
            self._initialize()
            return
        if isinstance(response, ClientError):
            _refused(response)
            return
        result = decode_resumption(bytes(response))
        if isinstance(result, Replay):
            for delivery in result.actions:
                self.channels.deliver(delivery)
            self.channels.missing(result.missing)
        else:
            position = max((snapshot.from_seq for snapshot in result.snapshots), default=0)
            self.channels.restart(result.snapshots, position)
        self._go_live()

    def _go_live(self) -> None:
        """Sends the name first: it counts only for actions after it."""
        if self._name is not None and self._takes_names:
            self.rpc.report(PresenceUpdateParams(channel=ROOT_CHANNEL, name=self._name))
        self.channels.go_live(self._resumed)
        for room in tuple(self.rooms):
            room.live()

    # From the host

    def _receive(self, message: HostMessage) -> None:
        if message.method == "action":
            self.channels.deliver(decode_delivery(bytes(message.params)))
        elif message.method in ANNOUNCEMENTS:
            if message.method == "root/sessionRemoved":
                self.channels.gone(decode_removed(bytes(message.params)).session)
            for listing in tuple(self.listings):
                listing.announced(message)
        elif message.method == "presence/changed":
            params = decode_presence(bytes(message.params))
            for room in tuple(self.rooms):
                if room.room == params.channel:
                    room.changed(params.present)
        elif message.method is None and message.id is not None:
            failure = None if message.error is None else command_failed(message.error)
            self.rpc.receive(message.id, failure or message.result)
        elif message.method is None:
            logger.warning("the host could not read a frame: %s", message.error)


def _refused(error: ClientError) -> None:
    """A handshake failed: the connection broke, the host could not save it, or refuses us."""
    if not isinstance(error, CommandFailed):
        return  # the transport reports it
    if error.rpc_code == ErrorCode.INTERNAL_ERROR:
        raise ConnectionLost(str(error))
    advice = OTHER_ID if error.rpc_code == ErrorCode.PERMISSION_DENIED else ""
    raise GaveUp(f"{error}{advice}") from error
