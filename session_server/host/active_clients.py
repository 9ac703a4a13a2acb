"""What happens when somebody goes away for good: a session's active client, or one who asked."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

from session_server.host.channel import Channel, Plan
from session_server.host.channel_kinds import LoggedAction
from session_server.host.connection.rate_limit import Allowances
from session_server.host.session_opening import is_recording
from session_server.host.timers import Timer, WallTimers
from session_server.reducers.batches import Batch
from session_server.reducers.deadlines import leased, marked_as_left
from session_server.reducers.state.input_requests import open_request
from session_server.schemas.ahp.actions import (
    ActiveClientChanged,
    InputAnswerChanged,
    ToolCallComplete,
)
from session_server.schemas.ahp.tool_calls import ClientContributor, Running, ToolError, ToolResult
from session_server.schemas.ahp.turns import ToolCallPart
from session_server.schemas.codec import encode
from session_server.schemas.principals import Stamp
from session_server.schemas.record import SessionRecord
from session_server.schemas.wire import Millis, Uri

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


Asker = tuple[Uri, str]
"""One who waits for answers: the session, and the id of the request or of the call that asks."""


class Askers:
    """Who waits for the answers to requests with a lease, and marks those that were left.

    A request with a lease that nobody waits for has a timer. After a start all timers begin anew,
    so nothing is marked because the host was down.
    """

    def __init__(
        self,
        sessions: dict[Uri, Channel[SessionRecord]],
        write: Callable[[Channel[SessionRecord], Plan], None],
        timers: WallTimers,
        allowances: Allowances,
        now: Callable[[], Millis],
    ) -> None:
        self._sessions = sessions
        self._write = write
        self._wall = timers
        self._allowances = allowances
        self._now = now
        self._waiting: Counter[Asker] = Counter()
        self._timers: dict[Asker, Timer] = {}
        self._is_stopping = False

    @contextlib.contextmanager
    def waiting(self, uri: Uri, asker: str) -> Generator[None]:
        """While the block runs, somebody waits for the answers to this request or call.

        A mark that it was left is removed. `asker` may be unknown, or ask nothing at all.
        """
        self._waiting[uri, asker] += 1
        self._returned(uri, asker)
        try:
            yield
        finally:
            self._waiting[uri, asker] -= 1
            if not self._waiting[uri, asker]:
                del self._waiting[uri, asker]
                self._watch(uri)

    def is_waiting(self, uri: Uri, asker: str) -> bool:
        return (uri, asker) in self._waiting

    def restarted(self) -> None:
        for uri in self._sessions:
            self._watch(uri)

    def stop(self) -> None:
        """Nobody has left who is disconnected because the host stops."""
        self._is_stopping = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def committed(
        self,
        channel: Channel[SessionRecord],
        before: SessionRecord,
        action: LoggedAction,
        after: SessionRecord,
    ) -> None:
        if type(action) is InputAnswerChanged:
            return
        if before.public.input_requests is not after.public.input_requests:
            for name in {n for n, _ in leased(before)} - {n for n, _ in leased(after)}:
                self._stop_timer((channel.uri, name))
            self._watch(channel.uri)

    def disposed(self, uri: Uri) -> None:
        for asker in [asker for asker in self._timers if asker[0] == uri]:
            self._stop_timer(asker)

    def _returned(self, uri: Uri, asker: str) -> None:
        self._stop_timer((uri, asker))
        record = self._record(uri)
        batch = () if record is None else marked_as_left(record, asker, None)
        if record is not None and batch:
            self._charge(record, asker, batch)
            self._write(self._sessions[uri], lambda r, _: marked_as_left(r, asker, None))

    def _charge(self, record: SessionRecord, asker: str, batch: Batch) -> None:
        """Who comes and goes has the host write whole requests: the mark, and that it goes."""
        call, request = record.private.calls.get(asker), open_request(record.public, asker)
        meta = None if request is None else request.meta
        by = call.by if call is not None else meta.by if meta is not None else None
        if by is not None:
            self._allowances.of(by.id).charge_write(2 * len(encode(batch)))

    def _watch(self, uri: Uri) -> None:
        """Starts the timers of those who are needed here and are away."""
        record = self._record(uri)
        for name, request in () if record is None or self._is_stopping else leased(record):
            asker, meta = (uri, name), request.meta
            is_away = asker not in self._waiting and asker not in self._timers
            if is_away and meta is not None and meta.lease and meta.asker_gone_since is None:
                since = self._now()
                left = partial(self._left, asker, since)
                self._timers[asker] = self._wall.at(since + round(meta.lease * 1000), left)

    def _left(self, asker: Asker, since: Millis) -> None:
        del self._timers[asker]

        def plan(record: SessionRecord, _: Stamp) -> Any:
            return () if asker in self._waiting else marked_as_left(record, asker[1], since)

        channel = self._sessions.get(asker[0])
        if channel is not None:
            self._write(channel, plan)

    def _record(self, uri: Uri) -> SessionRecord | None:
        channel = self._sessions.get(uri)
        return None if channel is None else channel.committed

    def _stop_timer(self, asker: Asker) -> None:
        timer = self._timers.pop(asker, None)
        if timer is not None:
            timer.cancel()
