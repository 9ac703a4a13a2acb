"""The states of MCP servers, as shown in the sessions that use them."""

from collections.abc import Iterator

from session_server.host.channels.channel import Channel
from session_server.host.host import Host
from session_server.reducers.calls.presentation import customization_id
from session_server.reducers.calls.starting import listed_server, server_changed
from session_server.schemas.ahp.customizations import (
    AuthRequiredReason,
    McpAuthRequired,
    McpFailed,
    McpServer,
    McpServerState,
    McpStopped,
    ProtectedResource,
)
from session_server.schemas.errors import UnauthorizedError, UnreachableError
from session_server.schemas.record import SessionRecord
from session_server.schemas.wire import ErrorInfo


def state_of(name: str, error: UnreachableError) -> McpServerState:
    """Of a server that cannot be used. Its address may hold a secret, so it is not shown."""
    if not isinstance(error, UnauthorizedError):
        return McpFailed(error=ErrorInfo(error_type="unreachable", message=str(error)))
    is_forbidden, reason = error.status == 403, AuthRequiredReason.REQUIRED
    return McpAuthRequired(
        reason=AuthRequiredReason.INSUFFICIENT_SCOPE if is_forbidden else reason,
        resource=ProtectedResource(resource=customization_id(name), resource_name=name),
        required_scopes=error.scopes or None,
        description=str(error),
    )


def reason_of(state: McpServerState) -> str:
    """Why a server in this state cannot be used."""
    match state:
        case McpFailed(error=error):
            return error.message
        case McpAuthRequired(description=str(reason)):
            return reason
        case _:
            return "it was stopped"


class ServerStates:
    """The latest state of every server; sessions that list one show its changes."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._states: dict[str, McpServerState] = {}

    def changed(self, name: str, state: McpServerState) -> None:
        self._states[name] = state
        for channel in tuple(self._host.sessions.values()):
            record = channel.committed
            if record is not None and listed_server(record.public, customization_id(name)):
                self._show(channel, name)

    def loaded(self, channel: Channel[SessionRecord], _: SessionRecord) -> None:
        """While it was not in memory, the session was not told."""
        for name in _listed(channel):
            self._show(channel, name)

    def _show(self, channel: Channel[SessionRecord], name: str) -> None:
        """The latest state when it is written, which may take a while."""
        self._host.write(channel, lambda r, _: server_changed(r, name, self._state(name)))

    def restarted(self, configured: tuple[str, ...]) -> None:
        """What the sessions say may be old: nothing runs before it is started."""
        listed = {name for channel in self._host.sessions.values() for name in _listed(channel)}
        for name in listed - set(configured):
            self.changed(name, McpStopped())

    def customization(self, name: str) -> McpServer:
        """The server as a session lists it; nothing of its configuration is shown."""
        identity = customization_id(name)
        return McpServer(
            id=identity, uri=identity, name=name, enabled=True, state=self._state(name)
        )

    def _state(self, name: str) -> McpServerState:
        return self._states.get(name, McpStopped())


def _listed(channel: Channel[SessionRecord]) -> Iterator[str]:
    """The names of the servers that a session lists, if it is in memory."""
    record = channel.committed
    for entry in () if record is None else record.public.customizations or ():
        if isinstance(entry, McpServer) and entry.id == customization_id(entry.name):
            yield entry.name
