"""What clients carry between two legs: sealed, bound to the request and to who made it.

The SDK's own boundary does both; the key is the host's, so a state outlives the process.
"""

import hashlib
import hmac
from collections.abc import Callable

from mcp.server.request_state import (
    AESGCMRequestStateCodec,
    RequestStateBoundary,
    RequestStateSecurity,
)

from session_server.gateway.mcp_callers import principal_id
from session_server.schemas.limits import SEALED_STATE_SECONDS

PURPOSE = b"session-server:gateway:request-state"


class HostCodec:
    """The key is made when the first state is sealed: a host without visitors leaves none."""

    def __init__(self, key: Callable[[], bytes]) -> None:
        self._key = key
        self._codec: AESGCMRequestStateCodec | None = None

    def seal(self, payload: bytes) -> str:
        return self._made().seal(payload)

    def unseal(self, token: str) -> bytes:
        return self._made().unseal(token)

    def _made(self) -> AESGCMRequestStateCodec:
        if self._codec is None:
            key = hmac.digest(self._key(), PURPOSE, hashlib.sha256)
            self._codec = AESGCMRequestStateCodec([key])
        return self._codec


def sealing(key: Callable[[], bytes], audience: str) -> RequestStateBoundary:
    """`audience`: a state of one server is worth nothing at another."""
    security = RequestStateSecurity(
        codec=HostCodec(key), ttl=SEALED_STATE_SECONDS, bind_principal=principal_id
    )
    return RequestStateBoundary(security, default_audience=audience)
