"""The JSON-RPC messages of one connection: requests with their responses, and notifications."""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import msgspec

from session_server.client.errors import ClientError
from session_server.client.mirror import Pending
from session_server.schemas.ahp import frames
from session_server.schemas.ahp.commands import (
    Params,
    PresenceChangedParams,
    PresenceUpdateParams,
    Snapshot,
    SubscribeResult,
)
from session_server.schemas.ahp.envelopes import ActionOrigin
from session_server.schemas.ahp.frames import JSONRPC, SessionRemovedParams
from session_server.schemas.ahp1.methods import InitializeResult
from session_server.schemas.codec import Decoder, encode
from session_server.schemas.errors import RpcError
from session_server.schemas.wire import Extra, Json, Seq, Uri, Wire

ABSENT = msgspec.Raw(b"")


class HostMessage(Wire, frozen=True, kw_only=True):
    """Any frame: a response has an `id`, a notification a `method`."""

    jsonrpc: Literal["2.0"]
    id: Json = None
    method: str | None = None
    params: msgspec.Raw = ABSENT
    result: msgspec.Raw = ABSENT
    error: RpcError | None = None


class Delivery(Wire, frozen=True, kw_only=True):
    """The params of `action`, accepted or refused; the action itself is still raw."""

    channel: Uri
    action: msgspec.Raw
    server_seq: Seq
    origin: ActionOrigin | None = None
    rejection_reason: str | None = None
    meta: Extra | None = msgspec.field(default=None, name="_meta")


class Replay(Wire, frozen=True, kw_only=True, tag_field="type", tag="replay"):
    actions: tuple[Delivery, ...]
    missing: tuple[Uri, ...] = ()


class Snapshots(Wire, frozen=True, kw_only=True, tag_field="type", tag="snapshot"):
    snapshots: tuple[Snapshot, ...]


Resumption: TypeAlias = Replay | Snapshots

decode_message: Decoder[HostMessage] = Decoder(HostMessage)
decode_delivery: Decoder[Delivery] = Decoder(Delivery)
decode_resumption: Decoder[Resumption] = Decoder(Resumption)
decode_initialized: Decoder[InitializeResult] = Decoder(InitializeResult)
decode_subscribed: Decoder[SubscribeResult] = Decoder(SubscribeResult)
decode_presence: Decoder[PresenceChangedParams] = Decoder(PresenceChangedParams)
decode_removed: Decoder[SessionRemovedParams] = Decoder(SessionRemovedParams)


Response: TypeAlias = msgspec.Raw | ClientError
Callback: TypeAlias = Callable[[Response], None]


class JsonRpcClient:
    def __init__(self) -> None:
        self.on_output: Callable[[], None] = lambda: None
        self._out: list[bytes | Pending] = []
        self._requests: dict[int, Callback] = {}
        self._request_id = 0

    def request(self, frame: Any, params: Any, callback: Callback) -> None:
        """`frame` is the class of the command."""
        self._request_id += 1
        self._requests[self._request_id] = callback
        self._put(encode(frame(jsonrpc=JSONRPC, id=self._request_id, params=params)))

    def send(self, pending: Pending) -> None:
        """For the first time or once more: its frame stays the same."""
        pending.is_repeated |= pending.is_sent
        self._put(pending)

    def report(self, params: PresenceUpdateParams) -> None:
        self._put(encode(frames.PresenceUpdate(jsonrpc=JSONRPC, params=params)))

    def unsubscribe(self, channel: Uri) -> None:
        self._put(encode(frames.Unsubscribe(jsonrpc=JSONRPC, params=Params(channel=channel))))

    def receive(self, request_id: object, response: Response) -> None:
        callback = self._requests.pop(request_id, None) if isinstance(request_id, int) else None
        if callback is not None:
            callback(response)

    def drain(self) -> list[bytes]:
        """Returns and clears the frames to write now; only these can have arrived."""
        taken, self._out = self._out, []
        sent: list[bytes] = []
        for outgoing in taken:
            if isinstance(outgoing, Pending):
                outgoing.is_sent = True
            sent.append(outgoing.frame if isinstance(outgoing, Pending) else outgoing)
        return sent

    def end(self, error: ClientError) -> None:
        """The connection has ended: no response will come. Ids start again on the next one."""
        self._out.clear()
        self._request_id = 0
        requests, self._requests = self._requests, {}
        for callback in requests.values():
            callback(error)

    def _put(self, outgoing: bytes | Pending) -> None:
        self._out.append(outgoing)
        self.on_output()
