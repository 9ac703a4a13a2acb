"""The kinds of channels: how each folds its entries, and what of it clients may see."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from session_server.host.logged import (
    ClientSeen,
    IssuedTokens,
    KnownClient,
    KnownClients,
    LoggedAction,
    SessionOpened,
    TokenIssued,
    TokenRevoked,
    decode_clients,
    decode_record,
    decode_root,
    decode_tokens,
)
from session_server.reducers.batches import makes_room
from session_server.reducers.record import PRIVATE_TRANSITIONS, reduce_record
from session_server.reducers.root import reduce_root
from session_server.schemas.codec import encode
from session_server.schemas.limits import (
    CLIENT_LIFETIME_MS,
    CLIENTS_KEPT,
    CLIENTS_PER_PRINCIPAL,
)
from session_server.schemas.record import SessionRecord
from session_server.schemas.root import RootState

R = TypeVar("R", bound=msgspec.Struct)


class Kind(NamedTuple, Generic[R]):
    """Everything a channel has to know about what it holds."""

    empty: R | None
    reduce: Callable[[R | None, Any, int], R]
    decode: Callable[[bytes], R]
    shown: Callable[[R], bytes]
    is_public: Callable[[LoggedAction], bool]
    is_watched: bool = True
    """Whether clients can subscribe to it; otherwise nobody ever comes back for its entries."""
    makes_room: Callable[[Any, Any], bool] | None = None
    """Whether a full channel takes these actions all the same; without it, it is never full."""


def _reduce_session(record: SessionRecord | None, action: Any, at: int) -> SessionRecord:
    if record is None:
        assert isinstance(action, SessionOpened), "a session's log begins with its opening"
        return action.record
    return reduce_record(record, action, at)


def _makes_room(record: SessionRecord | None, batch: Sequence[Any]) -> bool:
    return record is None or makes_room(record, batch)


def _reduce_root(state: RootState | None, action: Any, _at: int) -> RootState:
    return reduce_root(state or RootState(agents=()), action)


def _reduce_clients(known: KnownClients | None, action: ClientSeen, at: int) -> KnownClients:
    seen = KnownClient(principal_id=action.principal_id, version=action.version, seen_at=at)
    clients = {} if known is None else dict(known.clients)
    clients.pop(action.client_id, None)
    _forget_clients(clients, action.principal_id, at)
    clients[action.client_id] = seen
    return KnownClients(clients=clients)


def _forget_clients(clients: dict[str, KnownClient], principal_id: str, at: int) -> None:
    """Makes room. They are kept in the order in which they were seen, so the first are the oldest.

    Whoever has too many loses its own, so that nobody can push out the others'.
    """
    while clients and next(iter(clients.values())).seen_at < at - CLIENT_LIFETIME_MS:
        del clients[next(iter(clients))]
    own = [name for name, client in clients.items() if client.principal_id == principal_id]
    if len(own) >= CLIENTS_PER_PRINCIPAL:
        del clients[own[0]]
    elif len(clients) >= CLIENTS_KEPT:
        del clients[next(iter(clients))]


def _reduce_tokens(
    issued: IssuedTokens | None, action: TokenIssued | TokenRevoked, at: int
) -> IssuedTokens:
    tokens = {} if issued is None else issued.tokens
    if isinstance(action, TokenRevoked):
        kept = {name: token for name, token in tokens.items() if name != action.token_id}
        return IssuedTokens(tokens=kept)
    kept = {name: t for name, t in tokens.items() if t.expires_at is None or t.expires_at > at}
    return IssuedTokens(tokens={**kept, action.token.id: action.token})


_PRIVATE = frozenset({*PRIVATE_TRANSITIONS, SessionOpened, ClientSeen, TokenIssued, TokenRevoked})


def is_public(action: LoggedAction) -> bool:
    return type(action) not in _PRIVATE


SESSION: Kind[SessionRecord] = Kind(
    empty=None,
    reduce=_reduce_session,
    decode=decode_record,
    shown=lambda record: encode(record.public),
    is_public=is_public,
    makes_room=_makes_room,
)
ROOT: Kind[RootState] = Kind(
    empty=RootState(agents=()),
    reduce=_reduce_root,
    decode=decode_root,
    shown=encode,
    is_public=is_public,
)
CLIENTS: Kind[KnownClients] = Kind(
    empty=KnownClients(),
    reduce=_reduce_clients,
    decode=decode_clients,
    shown=encode,
    is_public=lambda _: False,
    is_watched=False,
)
TOKENS: Kind[IssuedTokens] = Kind(
    empty=IssuedTokens(),
    reduce=_reduce_tokens,
    decode=decode_tokens,
    shown=encode,
    is_public=lambda _: False,
    is_watched=False,
)
