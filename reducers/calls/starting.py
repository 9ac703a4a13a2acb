"""How a call begins: who may start one, when the same request means the same call, and its batch.

`rounds` takes over once a leg is out.
"""

import hashlib
from collections.abc import Container, Mapping
from typing import Any

import msgspec

from session_server.reducers.batches import Batch, host_turn
from session_server.reducers.calls.presentation import customization_id, invocation
from session_server.reducers.rules.roles import check_session
from session_server.reducers.state.customizations import identity_of
from session_server.reducers.state.turns import part_id
from session_server.schemas.ahp.actions import (
    CustomizationUpdated,
    McpServerStateChanged,
    TurnStarted,
)
from session_server.schemas.ahp.customizations import McpServer, McpServerState
from session_server.schemas.ahp.session import Lifecycle, SessionState
from session_server.schemas.errors import Refusal, RefusalCode
from session_server.schemas.limits import OPEN_CALLS_PER_SESSION, UNCOLLECTED_LIFETIME_MS
from session_server.schemas.principals import Principal, Stamp
from session_server.schemas.record import (
    Abandoned,
    Call,
    CallStarted,
    Failed,
    Finished,
    SessionRecord,
)
from session_server.schemas.wire import Uri

OF_THE_LEG = ("inputResponses", "requestState")
OF_THE_WIRE = ("progressToken",)
RESERVED = "io.modelcontextprotocol/"

NO_CALLS = "Only owners and agents can make calls."


def own_params(params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters without what belongs to one message on one connection."""
    own = {name: value for name, value in params.items() if name not in OF_THE_LEG}
    meta = own.pop("_meta", None)
    if isinstance(meta, dict):
        kept = {
            name: value
            for name, value in meta.items()
            if name not in OF_THE_WIRE and not name.startswith(RESERVED)
        }
        own |= {"_meta": kept} if kept else {}
    return own


def call_fingerprint(
    principal_id: str, server: str, method: str, own: Mapping[str, Any], key: str | None
) -> str:
    """Stable over connections and restarts. `own`: as `own_params` leaves the parameters.

    `key` distinguishes equal requests.
    """
    bare = {name: value for name, value in own.items() if name != "_meta"}
    asked = (principal_id, server, method, bare, key)
    return hashlib.sha256(msgspec.json.encode(asked, order="deterministic")).hexdigest()


def same_call(
    record: SessionRecord, new: Call, at: int, connected: Container[str] = ()
) -> Call | None:
    """The call that this request has made already: open, or with a result not yet fetched.

    Those in `connected` have a client that is connected for them, so other requests made them.
    """
    calls = record.private.calls.values()
    same = [call for call in calls if call.fingerprint == new.fingerprint]
    for call in reversed(same):
        is_known = call.fingerprint is not None
        if is_known and call.id not in connected and _is_wanted(call, at):
            return call
    return None


def check_caller(principal: Principal, uri: Uri) -> Refusal | None:
    """Why this principal may not call anything in this session, if so."""
    if not principal.may_create:
        return Refusal(code=RefusalCode.ROLE, message=NO_CALLS)
    return check_session(principal, uri)


def start(
    record: SessionRecord, call: Call, title: str | None, server: McpServer, stamp: Stamp
) -> Batch | Refusal:
    """Starts the call in the active turn, or in a new turn of the host."""
    if call.id in record.private.calls:
        return ()
    refusal = _check_start(record, call, server)
    if refusal is not None:
        return refusal
    state = record.public
    is_listed = listed_server(state, server.id) is not None
    opening = host_turn(state, call.id, f"{call.server}/{call.target}")
    joined = msgspec.structs.replace(call, turn_id=_turn_id(state, opening), started_at=stamp.at)
    return (
        *(() if is_listed else (CustomizationUpdated(customization=server),)),
        *opening,
        CallStarted(call=joined),
        *invocation(joined, title),
    )


def _turn_id(state: SessionState, opening: Batch) -> str:
    opened = opening[0] if opening else None
    if isinstance(opened, TurnStarted):
        return opened.turn_id
    assert state.active_turn is not None  # or one would have been opened
    return state.active_turn.id


def _is_wanted(call: Call, at: int) -> bool:
    if isinstance(call.phase, Finished | Failed):
        return not call.collected and at - call.phase.at < UNCOLLECTED_LIFETIME_MS
    return not isinstance(call.phase, Abandoned)


def _check_start(record: SessionRecord, call: Call, server: McpServer) -> Refusal | None:
    state = record.public
    code = RefusalCode.WRONG_STATE
    if state.lifecycle is Lifecycle.CREATION_FAILED:
        return Refusal(code=code, message="This session could not be created.")
    if len(record.private.open_calls) >= OPEN_CALLS_PER_SESSION:
        message = f"At most {OPEN_CALLS_PER_SESSION} calls can be open in a session at once."
        return Refusal(code=RefusalCode.LIMIT, message=message)
    listed = listed_server(state, server.id)
    if listed is not None and not listed.enabled:
        message = f"The server {server.name!r} is switched off in this session."
        return Refusal(code=code, message=message)
    turn = state.active_turn
    if turn is not None and any(part_id(part) == call.id for part in turn.response_parts):
        message = "There is something with this id in the turn already."
        return Refusal(code=RefusalCode.DUPLICATE, message=message)
    return None


def listed_server(state: SessionState, identity: str) -> McpServer | None:
    for entry in state.customizations or ():
        if isinstance(entry, McpServer) and identity_of(entry) == identity:
            return entry
    return None


def server_changed(record: SessionRecord, name: str, new: McpServerState) -> Batch:
    """A session that lists the server shows its new state."""
    listed = listed_server(record.public, customization_id(name))
    if listed is None or listed.state == new or record.private.is_recording:
        return ()
    return (McpServerStateChanged(id=listed.id, state=new, channel=listed.channel),)
