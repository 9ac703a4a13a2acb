"""What a host sends, decoded as far as a client needs in order to pass it on."""

from typing import Any, TypeAlias

import msgspec

from session_server.schemas.actions import Action
from session_server.schemas.codec import Decoder
from session_server.schemas.commands import InitializeResult, Snapshot, SubscribeResult
from session_server.schemas.envelopes import ActionEnvelope, ActionOrigin, EnvelopeMeta
from session_server.schemas.errors import RpcError
from session_server.schemas.frames import SessionRemovedParams
from session_server.schemas.presence import PresenceChangedParams
from session_server.schemas.wire import Extra, Json, Seq, Uri, Wire

ABSENT = msgspec.Raw(b"")


class HostMessage(Wire, frozen=True, kw_only=True):
    """Any frame: an answer has an `id`, a notification a `method`."""

    id: Json = None
    method: str | None = None
    params: msgspec.Raw = ABSENT
    result: msgspec.Raw = ABSENT
    error: RpcError | None = None


class Delivery(Wire, frozen=True, kw_only=True):
    """The params of `action`, accepted or refused; what the action says is still raw."""

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
_decode_action: Decoder[Action] = Decoder(Action)


def envelope_of(delivery: Delivery) -> ActionEnvelope:
    """Raises a `DecodingError` for an action that this version does not know."""
    return ActionEnvelope(
        channel=delivery.channel,
        action=_decode_action(bytes(delivery.action)),
        server_seq=delivery.server_seq,
        origin=delivery.origin,
        meta=_known_meta(delivery.meta),
    )


def _known_meta(meta: dict[str, Any] | None) -> EnvelopeMeta | None:
    """Another host may use `_meta` for something else."""
    try:
        return msgspec.convert(meta, EnvelopeMeta | None)
    except msgspec.ValidationError:
        return None
