"""Drives calls: sends the legs that records call for and writes down what comes back.

Whatever it does is planned on the record as it then is, so that a leg goes out once and a late
answer changes nothing. Above it `calls` starts calls; below it are the servers and the host.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any

from mcp_types import LOG_LEVEL_META_KEY

from session_server.calls.elicitation import CallAsker
from session_server.calls.replies import (
    Asks,
    Completed,
    Expired,
    Lost,
    OtherRevision,
    Rejected,
    Reply,
    Unsent,
    exchange,
    failure_of,
)
from session_server.host.acting import NotSavedError, RefusedError, StateWaiters, write
from session_server.host.channel import Plan
from session_server.host.effects import SessionChannel
from session_server.host.errors import CommandError
from session_server.host.host import Host
from session_server.host.timers import Tasks
from session_server.mcp_client.config import LEGACY, MODERN
from session_server.mcp_client.errors import UnknownServerError
from session_server.mcp_client.pool import Line
from session_server.mcp_client.progress import Logs, Reporter, Reports
from session_server.mcp_client.servers import Server, Servers
from session_server.reducers.batches import Batch
from session_server.reducers.calls import rounds
from session_server.schemas.effects import RecoverCall, SendCall, StopCall
from session_server.schemas.principals import HOST, Author, Stamp
from session_server.schemas.record import Call, CallSent, FailureKind, Sent, SessionRecord, ToSend
from session_server.schemas.wire import Uri

logger = logging.getLogger("session_server.calls")

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
GRACE_SECONDS = 3.0
"""What legs get to come back when the host is stopped; a person is asked about the others."""


class CallDriver:
    """The host's `CallRunner`."""

    def __init__(self, host: Host, waiting: StateWaiters) -> None:
        self._tasks = Tasks("the calls", logger)
        self.spawn = self._tasks.spawn
        self.reports = Reports()
        self.logs = Logs()
        self.servers: Servers = Servers({}, self.spawn, lambda *_: None)
        self._host = host
        self._waiting = waiting
        self._legs: dict[tuple[Uri, str], asyncio.Task[None]] = {}
        self._is_stopping = False

    # What effects ask for

    def send(self, channel: SessionChannel, effect: SendCall) -> None:
        key = (channel.uri, effect.call_id)
        before = self._legs.get(key)
        task = self.spawn(self._send(channel.uri, effect, before))
        self._legs[key] = task
        task.add_done_callback(lambda done: self._forget(key, done))

    def recover(self, channel: SessionChannel, effect: RecoverCall) -> None:
        def plan(record: SessionRecord, stamp: Stamp) -> Batch:
            return rounds.after_crash(record, effect.call_id, effect.leg, stamp)

        self.spawn(self.record(channel.uri, plan))

    def stop(self, channel: SessionChannel, effect: StopCall) -> None:
        task = self._legs.get((channel.uri, effect.call_id))
        if task is not None:
            task.cancel()

    def forget_session(self, uri: Uri) -> None:
        for (session, _), task in tuple(self._legs.items()):
            if session == uri:
                task.cancel()

    # Life

    async def settled(self) -> None:
        """Returns when the legs that are out have come back or were given up."""
        while self._legs:
            await asyncio.wait(tuple(self._legs.values()))

    async def close(self) -> None:
        self._is_stopping = True
        working = [task for key, task in self._legs.items() if self._is_working(*key)]
        if working:
            await asyncio.wait(working, timeout=GRACE_SECONDS)
        legs = tuple(self._legs.values())
        for task in legs:
            task.cancel()
        await asyncio.gather(*legs, return_exceptions=True)
        await self.servers.stop()
        await self._tasks.stop()

    def _is_working(self, uri: Uri, call_id: str) -> bool:
        """Whether the server is at work on it: people, who may take hours, are not waited for."""
        record = self._host.record(uri)
        call = None if record is None else record.private.calls.get(call_id)
        return call is not None and isinstance(call.phase, Sent)

    def _forget(self, key: tuple[Uri, str], task: asyncio.Task[None]) -> None:
        if self._legs.get(key) is task:
            del self._legs[key]

    # One leg

    async def _send(self, uri: Uri, effect: SendCall, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        if effect.not_before is not None:
            await asyncio.sleep(max(0, effect.not_before - self._host.now()) / 1000)
        call = self._call(uri, effect)
        if call is None or self._is_stopping:
            return
        reply = await self._exchanged(uri, call, effect.leg)
        if reply is not None:
            await self.record(uri, planned(effect.call_id, effect.leg, reply))

    async def _exchanged(self, uri: Uri, call: Call, leg: int) -> Reply | None:
        """What came back; `None` if somebody else has sent this leg."""
        try:
            server = self.servers[call.server]
        except UnknownServerError as error:
            return Rejected(FailureKind.UPSTREAM, str(error).rstrip("."))
        claimed = False
        reply: Reply | None = None
        try:
            asker = CallAsker(self, uri, call.id, leg, _log_level(call))
            async with self._lent(server, asker, call) as line:
                claimed = await self._claimed(uri, call, leg, line)
                if claimed:
                    reply = await self._over(line, uri, call, leg)
                if isinstance(reply, Asks) and line.link.is_modern:
                    server.asked_by_result(name_of(call))
            if isinstance(reply, OtherRevision) and not await server.needs(
                name_of(call), reply.era
            ):
                reply = reply.failure
        except Exception as error:  # noqa: BLE001 - the SDK's scopes raise whatever ended them
            if reply is None:
                reply = _without_answer(error, server, is_out=claimed)
        if isinstance(reply, Unsent) and reply.is_general:
            server.unreachable()
        return reply

    def _lent(
        self, server: Server, asker: CallAsker, call: Call
    ) -> contextlib.AbstractAsyncContextManager[Line]:
        """A connection that declares what the call's client can answer, in that client's era."""
        client = call.client
        is_clients = client is not None and client.capabilities is not None
        return server.lend(
            asker,
            name_of(call),
            capabilities=None if client is None else client.capabilities,
            principal="" if call.by is None else call.by.id,
            era=None if call.request_state is None else MODERN,
            preferred=LEGACY if client is not None and is_clients and client.is_2025 else MODERN,
        )

    async def _claimed(self, uri: Uri, call: Call, leg: int, line: Line) -> bool:
        """Whether this process is the one that sends the leg: durable before it goes out."""
        repeatable = None
        if call.method == "tools/call":
            repeatable = line.is_repeatable(call.target)
        won = False

        def plan(record: SessionRecord, _: Stamp) -> Batch:
            nonlocal won
            now = record.private.calls.get(call.id)
            won = now is not None and isinstance(now.phase, ToSend) and now.phase.leg == leg
            sent = CallSent(call_id=call.id, leg=leg, repeatable=repeatable)
            return (sent,) if won else ()

        await self.record(uri, plan)
        return won

    async def _over(self, line: Line, uri: Uri, call: Call, leg: int) -> Reply:
        reporter = Reporter(self, uri, call.id, leg)
        try:
            params = rounds.next_params(call)
            level = _log_level(call)
            if level is not None and line.link.is_modern:
                params["_meta"] = {**params.get("_meta", {}), LOG_LEVEL_META_KEY: level}
            reply = await exchange(line, call.method, params, reporter.progress)
            if isinstance(reply, Unsent | Lost):
                line.link.lost.set()  # and so is the next thing that would be sent over it
            return reply
        finally:
            reporter.close()

    def _call(self, uri: Uri, effect: SendCall) -> Call | None:
        record = self._host.record(uri)
        call = None if record is None else record.private.calls.get(effect.call_id)
        is_due = call is not None and isinstance(call.phase, ToSend)
        return call if is_due else None

    # Writing

    async def record(self, uri: Uri, plan: Plan, by: Author = HOST) -> None:
        """Durable when it returns: what a server said is kept until it could be written down."""
        pause = FIRST_PAUSE
        while True:
            try:
                await write(self._host, uri, plan, by)
            except (CommandError, RefusedError):
                return  # the session is gone or only a recording, and so is the call
            except NotSavedError as error:
                logger.debug("what became of a call could not be saved: %s", error)
                await asyncio.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
            else:
                return

    async def until(self, uri: Uri, look: Callable[[SessionRecord], Any]) -> Any:
        with contextlib.suppress(CommandError):
            return await self._waiting.until(uri, look)
        return None


def _without_answer(error: Exception, server: Server, *, is_out: bool) -> Reply:
    reply = failure_of(error, server.config)
    if isinstance(reply, Lost) and not is_out:
        return Unsent("the connection failed", is_general=True)
    return reply


def _log_level(call: Call) -> str | None:
    return None if call.client is None else call.client.log_level


def name_of(call: Call) -> str:
    """Of the tool, or what else is called."""
    return call.target if call.method == "tools/call" else call.method


def planned(call_id: str, leg: int, reply: Reply) -> Plan:
    """What a reply means for the call."""

    def plan(record: SessionRecord, stamp: Stamp) -> Batch:
        match reply:
            case Completed(result):
                return rounds.finish(record, call_id, leg, result, stamp)
            case Asks(required, raw):
                return rounds.open_round(record, call_id, leg, required, stamp, raw=raw)
            case Expired():
                return rounds.after_expired_state(record, call_id, leg, stamp)
            case Rejected(kind, words, data):
                return rounds.failure(record, call_id, leg, kind, words, stamp, data)
            case Unsent(words=words):
                return rounds.after_no_connection(record, call_id, leg, words, stamp)
            case OtherRevision(era=era, has_only_asked=has_only_asked):
                return rounds.in_other_revision(
                    record, call_id, leg, era, stamp, has_only_asked=has_only_asked
                )
            case Lost():
                return rounds.after_crash(record, call_id, leg, stamp)

    return plan
