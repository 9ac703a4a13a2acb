"""The session of a call or question: named by the client, configured, or always the same one."""

import asyncio
import hashlib
from collections.abc import Callable

import msgspec

from session_server.gateway.mcp_callers import McpCaller
from session_server.host.awaiting import Completion, write
from session_server.host.host import Host
from session_server.reducers.batches import Batch, batch_of
from session_server.reducers.texts import session_uri
from session_server.schemas.ahp.actions import TitleChanged
from session_server.schemas.ahp.commands import SESSION_PREFIX, CreateSessionParams
from session_server.schemas.errors import CommandError, ErrorCode
from session_server.schemas.limits import TITLE_CHARS
from session_server.schemas.principals import Principal, Stamp
from session_server.schemas.record import SessionRecord
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
    """Makes sessions that are not there yet, once each, and gives them titles."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._making: dict[Uri, asyncio.Future[None]] = {}

    async def ready(self, caller: McpCaller, uri: Uri, title: str) -> None:
        """A `CommandError` if this principal may not look at it, or make it."""
        sessions = self._host.sessions  # the root channel is none of them
        while uri not in sessions or self._host.channel(caller.principal, uri) is None:
            made = self._making.get(uri) or self._make(caller.principal, uri, title)
            await asyncio.shield(made)

    async def retitle(
        self, caller: McpCaller, uri: Uri, title: Callable[[SessionRecord], str | None]
    ) -> None:
        """`title`: the new one, or nothing if the present one is to stay."""

        def plan(record: SessionRecord, stamp: Stamp) -> Batch:
            new = title(record)
            return () if new is None else batch_of(record, TitleChanged(title=new), stamp)

        record = self._host.record(uri)
        if record is not None and title(record) is None:
            return
        await write(self._host, uri, plan, by=caller.principal.author)

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
