"""What happens when the active client of a session goes away for good."""

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from session_server.host.channel import Channel, Plan
from session_server.host.logged import LoggedAction
from session_server.host.sessions import is_recording
from session_server.schemas.actions import ActiveClientChanged, ToolCallComplete
from session_server.schemas.principals import Stamp
from session_server.schemas.record import SessionRecord
from session_server.schemas.tool_calls import ClientContributor, Running, ToolError, ToolResult
from session_server.schemas.turns import ToolCallPart
from session_server.schemas.wire import Uri

GRACE_SECONDS = 30.0
"""How long an active client may be away before its role and its tool calls are given up."""

GONE = "The client that ran this tool is gone."


class ActiveClients:
    """Counts the connections of each client, and releases what a gone one holds.

    `_holds` says in which sessions each is active, so that nobody has to look through all of them.
    `write` tries until it is written.
    """

    def __init__(
        self,
        sessions: dict[Uri, Channel[SessionRecord]],
        write: Callable[[Channel[SessionRecord], Plan], None],
        grace: float = GRACE_SECONDS,
    ) -> None:
        self._sessions = sessions
        self._write = write
        self.grace = grace
        self._connections: Counter[str] = Counter()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._holds: dict[str, set[Uri]] = {}

    def arrived(self, client_id: str) -> None:
        self._connections[client_id] += 1
        timer = self._timers.pop(client_id, None)
        if timer is not None:
            timer.cancel()

    def left(self, client_id: str) -> None:
        self._connections[client_id] -= 1
        if self._connections[client_id] <= 0:
            del self._connections[client_id]
            loop = asyncio.get_running_loop()
            self._timers[client_id] = loop.call_later(self.grace, self._release, client_id)

    def restarted(self) -> None:
        """After a start nobody is connected: everyone who was active gets the grace period."""
        for channel in self._sessions.values():
            self.opened(channel)
        for client_id in tuple(self._holds):
            self._connections[client_id] += 1
            self.left(client_id)

    def opened(self, channel: Channel[SessionRecord]) -> None:
        record = channel.committed
        if record is not None and record.public.active_client is not None:
            self._holds.setdefault(record.public.active_client.client_id, set()).add(channel.uri)

    def committed(
        self,
        channel: Channel[SessionRecord],
        before: SessionRecord,
        _: LoggedAction,
        after: SessionRecord,
    ) -> None:
        old, new = before.public.active_client, after.public.active_client
        if old is not new:
            if old is not None:
                self._let_go(old.client_id, channel.uri)
            if new is not None:
                self._holds.setdefault(new.client_id, set()).add(channel.uri)

    def disposed(self, uri: Uri) -> None:
        channel = self._sessions.get(uri)
        record = None if channel is None else channel.committed
        if record is not None and record.public.active_client is not None:
            self._let_go(record.public.active_client.client_id, uri)

    def _let_go(self, client_id: str, uri: Uri) -> None:
        held = self._holds.get(client_id, set())
        held.discard(uri)
        if not held:
            self._holds.pop(client_id, None)

    def _release(self, client_id: str) -> None:
        self._timers.pop(client_id, None)
        for uri in tuple(self._holds.get(client_id, ())):
            self._write(self._sessions[uri], partial(self._released, client_id))

    def _released(self, client_id: str, record: SessionRecord, stamp: Stamp) -> Any:
        """Nothing if it is back: writing this may have taken a while."""
        return () if client_id in self._connections else released(record, stamp, client_id)


def released(record: SessionRecord, _: Stamp, client_id: str) -> Any:
    """Its running tool calls end without success; then the role is free."""
    active = record.public.active_client
    if active is None or active.client_id != client_id or is_recording(record):
        return ()
    return (*lost_tool_calls(record, client_id), ActiveClientChanged(active_client=None))


def lost_tool_calls(record: SessionRecord, client_id: str) -> tuple[ToolCallComplete, ...]:
    turn = record.public.active_turn
    result = ToolResult(success=False, past_tense_message=GONE, error=ToolError(message=GONE))
    return tuple(
        ToolCallComplete(turn_id=turn.id, tool_call_id=part.tool_call.tool_call_id, result=result)
        for part in (() if turn is None else turn.response_parts)
        if turn is not None
        and isinstance(part, ToolCallPart)
        and isinstance(part.tool_call, Running)
        and part.tool_call.contributor == ClientContributor(client_id=client_id)
    )
