"""The kinds of channels: how each reduces its entries, and what clients may see of it."""

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from session_server.host.channels.ahp1_views import ROOT_PROJECTION, SESSION_PROJECTION, Projection
from session_server.reducers.outlines import is_at_rest, outline_of
from session_server.reducers.rules.full_session import makes_room
from session_server.reducers.state.host_channels import (
    reduce_clients,
    reduce_root_channel,
    reduce_tokens,
)
from session_server.reducers.state.record import reduce_record
from session_server.schemas.ahp.session import RootState
from session_server.schemas.codec import (
    decode_issued_tokens,
    decode_known_clients,
    decode_root_state,
    decode_session_record,
    encode,
)
from session_server.schemas.log_entries import IssuedTokens, KnownClients
from session_server.schemas.record import Outline, SessionRecord

R = TypeVar("R", bound=msgspec.Struct)


class Kind(NamedTuple, Generic[R]):
    """What a channel needs to know about its state."""

    empty: R | None
    reduce: Callable[[R | None, Any, int], R]
    decode: Callable[[bytes], R]
    shown: Callable[[R], bytes]
    is_watched: bool = True
    """Whether clients can subscribe to it; otherwise its entries need not be kept for replays."""
    makes_room: Callable[[Any, Any], bool] | None = None
    """Whether a channel at its size limit accepts these actions; without it there is no limit."""
    ahp1: Projection | None = None
    """How clients of AHP 0.9 and 1.x see it, if they may."""
    outline: Callable[[R, int], Outline | None] = lambda *_: None
    """What is kept while it is not in memory, given its size; nothing if it has to stay there."""


SESSION: Kind[SessionRecord] = Kind(
    empty=None,
    reduce=reduce_record,
    decode=decode_session_record,
    shown=lambda record: encode(record.public),
    makes_room=lambda record, batch: record is None or makes_room(record, batch),
    ahp1=SESSION_PROJECTION,
    outline=lambda record, size: outline_of(record, size) if is_at_rest(record) else None,
)
ROOT: Kind[RootState] = Kind(
    empty=RootState(agents=()),
    reduce=reduce_root_channel,
    decode=decode_root_state,
    shown=encode,
    ahp1=ROOT_PROJECTION,
)
CLIENTS: Kind[KnownClients] = Kind(
    empty=KnownClients(),
    reduce=reduce_clients,
    decode=decode_known_clients,
    shown=encode,
    is_watched=False,
)
TOKENS: Kind[IssuedTokens] = Kind(
    empty=IssuedTokens(),
    reduce=reduce_tokens,
    decode=decode_issued_tokens,
    shown=encode,
    is_watched=False,
)
