"""Where MCP servers stand, told to the sessions that use them."""

from typing import Any

from session_server.host.host import Host
from session_server.mcp_client.errors import UnauthorizedError, UnreachableError
from session_server.reducers.calls.presentation import customization_id
from session_server.schemas.ahp.actions import McpServerStateChanged
from session_server.schemas.ahp.customizations import (
    AuthRequiredReason,
    McpAuthRequired,
    McpFailed,
    McpServer,
    McpServerState,
    McpStopped,
    ProtectedResource,
)
from session_server.schemas.record import SessionRecord
from session_server.schemas.wire import ErrorInfo

FORBIDDEN = 403


def state_of(name: str, trouble: UnreachableError) -> McpServerState:
    """Of a server that cannot be used. Its address may hold a secret, so it is not shown."""
    if not isinstance(trouble, UnauthorizedError):
        return McpFailed(error=ErrorInfo(error_type="unreachable", message=str(trouble)))
    is_forbidden = trouble.status == FORBIDDEN
    return McpAuthRequired(
        reason=AuthRequiredReason.INSUFFICIENT_SCOPE
        if is_forbidden
        else AuthRequiredReason.REQUIRED,
        resource=ProtectedResource(resource=customization_id(name), resource_name=name),
        required_scopes=trouble.scopes or None,
        description=str(trouble),
    )


def words_of(state: McpServerState) -> str:
    """Why a server in this state cannot be used."""
    match state:
        case McpFailed(error=error):
            return error.message
        case McpAuthRequired(description=str(words)):
            return words
        case _:
            return "it was stopped"


class ServerStates:
    """The latest state of every server; sessions that list one hear of its changes."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._states: dict[str, McpServerState] = {}

    def changed(self, name: str, state: McpServerState) -> None:
        self._states[name] = state
        for channel in tuple(self._host.sessions.values()):
            record = channel.committed
            if record is not None and _listed(record, name) is not None:
                # The latest when it is written, which may take a while.
                self._host.write(channel, lambda r, _: _news(r, name, self._states[name]))

    def restarted(self, configured: tuple[str, ...]) -> None:
        """What the sessions say may be old: nothing runs before it is started."""
        listed = {
            entry.name
            for channel in self._host.sessions.values()
            for entry in (
                channel.committed.public.customizations or () if channel.committed else ()
            )
            if isinstance(entry, McpServer) and entry.id == customization_id(entry.name)
        }
        for name in listed - set(configured):
            self.changed(name, McpStopped())

    def customization(self, name: str) -> McpServer:
        """The server as a session lists it; nothing of its configuration is shown."""
        identity = customization_id(name)
        state = self._states.get(name, McpStopped())
        return McpServer(id=identity, uri=identity, name=name, enabled=True, state=state)


def _listed(record: SessionRecord, name: str) -> McpServer | None:
    for entry in record.public.customizations or ():
        if isinstance(entry, McpServer) and entry.id == customization_id(name):
            return entry
    return None


def _news(record: SessionRecord, name: str, state: McpServerState) -> Any:
    listed = _listed(record, name)
    if listed is None or listed.state == state or record.private.is_recording:
        return ()
    return (McpServerStateChanged(id=listed.id, state=state, channel=listed.channel),)
