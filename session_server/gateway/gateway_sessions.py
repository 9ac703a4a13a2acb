"""The session of a call or question: named by the client, configured, or always the same one."""

import asyncio
import hashlib

import msgspec

from session_server.gateway.mcp_callers import McpCaller
from session_server.host.async_api import Completion
from session_server.host.host import Host
from session_server.reducers.texts import session_uri
from session_server.schemas.ahp.commands import SESSION_PREFIX, CreateSessionParams
from session_server.schemas.errors import CommandError, ErrorCode
from session_server.schemas.limits import TITLE_CHARS
from session_server.schemas.principals import Principal
from session_server.schemas.wire import Uri

PROVIDER = "people"


def session_for(caller: McpCaller, server: str, configured: str | None) -> Uri:
    """The header goes first; a principal that is limited to one session has no other."""
    own = caller.principal.sessions or ()
    named = caller.session or (own[0] if len(own) == 1 else configured)
    if named is not None:
        return session_uri(named)
    whose = msgspec.json.encode((caller.principal.id, server, caller.client))
    return f"{SESSION_PREFIX}mcp-{server}-{hashlib.sha256(whose).hexdigest()[:16]}"


class GatewaySessions:
    """Makes sessions that are not there yet, once each."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._making: dict[Uri, asyncio.Future[None]] = {}

    async def ready(self, caller: McpCaller, uri: Uri, title: str) -> None:
        """A `CommandError` if this principal may not look at it, or make it."""
        sessions = self._host.sessions  # the root channel is none of them
        while uri not in sessions or self._host.channel(caller.principal, uri) is None:
            made = self._making.get(uri) or self._make(caller.principal, uri, title)
            await asyncio.shield(made)

    def _make(self, principal: Principal, uri: Uri, title: str) -> asyncio.Future[None]:
        if not principal.reaches(uri):
            raise CommandError(ErrorCode.PERMISSION_DENIED, "Your access is to another session.")
        made = Completion()
        params, title = CreateSessionParams(channel=uri, provider=PROVIDER), title[:TITLE_CHARS]
        self._host.lifecycle.create(
            principal, params, title=title, done=made.succeed, failed=made.fail
        )
        self._making[uri] = made.future
        made.future.add_done_callback(lambda _: self._making.pop(uri, None))
        return made.future
