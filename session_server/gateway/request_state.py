"""MCP's requestState: what a 2026-era client brings again when it repeats its request.

It is sealed and bound to the request and to its principal by the SDK's own boundary, with a key of
the host's, so that it outlives the process.
"""

import hashlib
import hmac
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import msgspec
from mcp.server.request_state import (
    AESGCMRequestStateCodec,
    RequestStateBoundary,
    RequestStateSecurity,
)

from session_server.calls.requesters import RETURN_SECONDS, Requester
from session_server.gateway.mcp_callers import principal_id
from session_server.schemas.limits import SEALED_STATE_SECONDS

PURPOSE = b"session-server:gateway:request-state"

ANSWERING_SECONDS = 60.0
"""How long a client counts as connected that shows its user a form."""

MOST_LEGS = 10
"""Then clients give up, by the defaults of the SDKs, and their state is lost."""


class HostCodec:
    """The key is made when the first state is sealed: a host without MCP clients has none."""

    def __init__(self, key: Callable[[], bytes]) -> None:
        self._key = key

    @cached_property
    def _codec(self) -> AESGCMRequestStateCodec:
        return AESGCMRequestStateCodec([hmac.digest(self._key(), PURPOSE, hashlib.sha256)])

    def seal(self, payload: bytes) -> str:
        return self._codec.seal(payload)

    def unseal(self, token: str) -> bytes:
        return self._codec.unseal(token)


def sealing(key: Callable[[], bytes], audience: str) -> RequestStateBoundary:
    """`audience`: a state of one server is worth nothing at another."""
    security = RequestStateSecurity(
        codec=HostCodec(key), ttl=SEALED_STATE_SECONDS, bind_principal=principal_id
    )
    return RequestStateBoundary(security, default_audience=audience)


def input_required_result(
    requester: Requester,
    before: Mapping[str, Any],
    state: Mapping[str, Any],
    input_requests: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Tells the client to come back with this state. `before` is the one that it has brought.

    Its client counts as connected until it does, unless this was the last leg that clients make;
    for longer if its user is asked something.
    """
    legs = before.get("legs", 0) + 1
    if legs < MOST_LEGS:
        requester.expect_back(ANSWERING_SECONDS if "round" in state else RETURN_SECONDS)
    encoded = msgspec.json.encode({**state, "legs": legs}).decode()
    result: dict[str, Any] = {"resultType": "input_required", "requestState": encoded}
    return result if input_requests is None else {**result, "inputRequests": input_requests}


def request_state_in(params: Mapping[str, Any] | None) -> dict[str, Any]:
    """The state that a client brings back, which the boundary has unsealed."""
    state: str | None = (params or {}).get("requestState")
    if state is None:
        return {}
    decoded: dict[str, Any] = msgspec.json.decode(state, type=dict[str, Any])
    return decoded
