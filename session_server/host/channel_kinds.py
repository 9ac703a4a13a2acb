"""The kinds of channels: what each logs, how it folds that, and what clients may see."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import msgspec

from session_server.reducers.batches import makes_room
from session_server.reducers.state.record import PRIVATE_TRANSITIONS, reduce_record
from session_server.reducers.state.session import reduce_root
from session_server.schemas.ahp.actions import Action, ActionBase
from session_server.schemas.ahp.envelopes import ActionOrigin
from session_server.schemas.ahp.session import RootState
from session_server.schemas.codec import Decoder, encode
from session_server.schemas.http import IssuedToken
from session_server.schemas.limits import (
    CLIENT_LIFETIME_MS,
    CLIENTS_KEPT,
    CLIENTS_PER_PRINCIPAL,
)
from session_server.schemas.principals import Stamp
from session_server.schemas.record import PrivateAction, SessionRecord
from session_server.schemas.wire import Millis, Uri, Wire


class SessionOpened(ActionBase, frozen=True, kw_only=True, tag="private/sessionOpened"):
    """The first entry of a session's channel: what everything after it is folded over.

    `trimmed`: in a cassette, what came before it was forgotten, except for the decisions that are
    in `earlier`: to be read, and not folded.
    """

    record: SessionRecord
    trimmed: bool = False
    earlier: "tuple[Logged, ...]" = ()


class ClientSeen(ActionBase, frozen=True, kw_only=True, tag="private/clientSeen"):
    """A `clientId` belongs to the principal that first used it."""

    client_id: str
    principal_id: str
    version: str


class TokenIssued(ActionBase, frozen=True, kw_only=True, tag="private/tokenIssued"):
    """What a token proves; its text is nowhere."""

    token: IssuedToken


class TokenRevoked(ActionBase, frozen=True, kw_only=True, tag="private/tokenRevoked"):
    token_id: str


LoggedAction: TypeAlias = (
    Action | PrivateAction | SessionOpened | ClientSeen | TokenIssued | TokenRevoked
)


class Logged(Wire, frozen=True, kw_only=True):
    action: LoggedAction
    stamp: Stamp
    origin: ActionOrigin | None = None


class KnownClient(Wire, frozen=True, kw_only=True):
    principal_id: str
    version: str
    seen_at: Millis


class KnownClients(Wire, frozen=True, kw_only=True):
    clients: dict[str, KnownClient] = {}


class IssuedTokens(Wire, frozen=True, kw_only=True):
    """Those that may still be used: what was revoked is gone, what expired goes with the next."""

    tokens: dict[str, IssuedToken] = {}


CLIENTS_CHANNEL: Uri = "session-server:clients"
TOKENS_CHANNEL: Uri = "session-server:tokens"
"""Channels of the host's own; nobody can subscribe to them."""

decode_logged: Decoder[Logged] = Decoder(Logged)
decode_root: Decoder[RootState] = Decoder(RootState)
decode_record: Decoder[SessionRecord] = Decoder(SessionRecord)
decode_clients: Decoder[KnownClients] = Decoder(KnownClients)
decode_tokens: Decoder[IssuedTokens] = Decoder(IssuedTokens)


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
