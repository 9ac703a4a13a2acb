"""The state of the host's own channels after an entry: the root, clients, tokens.

A channel without entries has no state yet, which is `None` here.
"""

from typing import Any

from session_server.reducers.state.record import PRIVATE_TRANSITIONS
from session_server.reducers.state.session import reduce_root
from session_server.schemas.ahp.session import RootState
from session_server.schemas.limits import (
    CLIENT_LIFETIME_MS,
    CLIENTS_KEPT,
    CLIENTS_PER_PRINCIPAL,
)
from session_server.schemas.log_entries import (
    ClientSeen,
    IssuedTokens,
    KnownClient,
    KnownClients,
    SessionDisposed,
    SessionOpened,
    TokenIssued,
    TokenRevoked,
)


def reduce_root_channel(state: RootState | None, action: Any, _at: int) -> RootState:
    return reduce_root(state or RootState(agents=()), action)


def reduce_clients(known: KnownClients | None, action: ClientSeen, at: int) -> KnownClients:
    seen = KnownClient(
        principal_id=action.principal_id,
        version=action.version,
        seen_at=at,
        spelling=action.spelling,
    )
    clients = {} if known is None else dict(known.clients)
    clients.pop(action.client_id, None)
    _forget_clients(clients, action.principal_id, at)
    clients[action.client_id] = seen
    return KnownClients(clients=clients)


def _forget_clients(clients: dict[str, KnownClient], principal_id: str, at: int) -> None:
    """Makes room. They are kept in the order in which they were seen, so the first are the oldest.

    A principal that has too many loses its own, so that it cannot push out the others'.
    """
    while clients and next(iter(clients.values())).seen_at < at - CLIENT_LIFETIME_MS:
        del clients[next(iter(clients))]
    if len(clients) < CLIENTS_PER_PRINCIPAL:
        return
    own = [name for name, client in clients.items() if client.principal_id == principal_id]
    if len(own) >= CLIENTS_PER_PRINCIPAL:
        del clients[own[0]]
    elif len(clients) >= CLIENTS_KEPT:
        del clients[next(iter(clients))]


def reduce_tokens(
    issued: IssuedTokens | None, action: TokenIssued | TokenRevoked, at: int
) -> IssuedTokens:
    tokens = {} if issued is None else issued.tokens
    if isinstance(action, TokenRevoked):
        kept = {name: token for name, token in tokens.items() if name != action.token_id}
        return IssuedTokens(tokens=kept)
    kept = {name: t for name, t in tokens.items() if t.expires_at is None or t.expires_at > at}
    return IssuedTokens(tokens={**kept, action.token.id: action.token})


PRIVATE_ACTIONS: frozenset[type] = frozenset(
    {*PRIVATE_TRANSITIONS, SessionOpened, SessionDisposed, ClientSeen, TokenIssued, TokenRevoked}
)
"""Those that no client ever sees."""
