"""What an operator may limit: how fast, how many, how large, how long."""

from typing import NamedTuple

from session_server.schemas.limits import (
    ACTIONS_PER_SECOND,
    CONNECTIONS_PER_PRINCIPAL,
    IDLE_SECONDS,
    LOADED_BYTES,
    NODE_LEASE_SECONDS,
    SESSION_BYTES,
    SESSIONS_PER_HOST,
    STATE_BYTES_PER_HOST,
    STORE_SECONDS,
)


class HostLimits(NamedTuple):
    """What an operator may set. 0 is without limit; the last two are more than 0."""

    actions_per_second: int = ACTIONS_PER_SECOND
    connections_per_principal: int = CONNECTIONS_PER_PRINCIPAL
    sessions: int = SESSIONS_PER_HOST
    session_bytes: int = SESSION_BYTES
    state_bytes: int = STATE_BYTES_PER_HOST
    loaded_bytes: int = LOADED_BYTES
    idle_seconds: float = IDLE_SECONDS
    store_seconds: float = STORE_SECONDS
    node_lease_seconds: float = NODE_LEASE_SECONDS


DEFAULT_LIMITS = HostLimits()
