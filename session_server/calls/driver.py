"""Drives calls: sends the legs that records call for and writes down what comes back.

A *leg* is one request of a call to its server, with the reply to it: leg 0 is the first, and what
was answered, or is to be tried again, goes out with the next one. Whatever is done is planned on
the record as it then is, so that a leg goes out once and a late reply changes nothing. Above it
`service` starts calls; below it are the servers and the host.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from session_server.backoff import Backoff
from session_server.calls.reply_kinds import (
    Asks,
    Completed,
    Expired,
    Lost,
    OtherRevision,
    Rejected,
    Reply,
    Unsent,
)
from session_server.host.async_api import StateWaiters, write
from session_server.host.channels.changes import Plan
from session_server.host.effects import SessionChannel
from session_server.host.host import Host
from session_server.host.timers import Tasks
from session_server.mcp_client.config import LEGACY, MODERN, Era
from session_server.mcp_client.configured_servers import Servers
from session_server.mcp_client.progress import Logs, Reports
from session_server.reducers.batches import Batch
from session_server.reducers.calls import recovery, rounds
from session_server.reducers.effects import RecoverCall, SendCall, StopCall
from session_server.schemas.errors import (
    CommandError,
    InDoubtError,
    NotSavedError,
    Refusal,
    RefusedError,
    UnknownServerError,
)
from session_server.schemas.log_entries import LoggedAction
from session_server.schemas.principals import HOST, Author, Stamp
from session_server.schemas.record import Call, CallSent, FailureKind, Sent, SessionRecord, ToSend
from session_server.schemas.wire import Millis, Uri

if TYPE_CHECKING:
    from session_server.mcp_client.connections.pool import BorrowedLink
    from session_server.mcp_client.servers import Server

logger = logging.getLogger("session_server.calls")

SAVE_AGAIN = (0.1, 5.0)
"""The first and the longest pause, in seconds."""

GRACE_SECONDS = 3.0
"""What legs get to come back when the host is stopped; a person is asked about the others."""


Claim = Callable[["BorrowedLink"], Awaitable[bool]]
"""Whether this process is the one that sends a leg over the connection; if so, that is durable."""


class _Start:
    """How a call starts, for whom, and when that is durable."""

    def __init__(self, plan: Plan, by: Author) -> None:
        self.plan = plan
        self.by = by
        self.durable: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def fail(self, error: Exception) -> None:
        if not self.durable.done():
            self.durable.set_exception(error)
            self.durable.exception()  # its maker may have left


class CallDriver:
    """The host's `CallRunner`."""

    def __init__(self, host: Host, waiting: StateWaiters, servers: Servers, tasks: Tasks) -> None:
        self.spawn = tasks.spawn
        self.servers = servers
        self.clock = host.clock
        self.reports = Reports()
        self.logs = Logs()
        self._tasks = tasks
        self._host = host
        self._waiting = waiting
        self._legs: dict[tuple[Uri, str], asyncio.Task[None]] = {}
        self._is_stopping = False

    # New calls

    async def start(self, uri: Uri, call: Call, plan: Plan, by: Author) -> None:
        """Writes down that a call starts, as planned; durable when it returns.

        Where a connection is at hand, "sent" is written with it, and its first leg goes out.
        """
        server = self.servers[call.server]
        if not server.is_at_hand(name_of(call), _preferred(call)):
            await write(self._host, uri, plan, by)
            return
        start = _Start(plan, by)
        self._run((uri, call.id), self._first_leg(uri, call, start))
        await asyncio.shield(start.durable)  # a client that leaves takes nothing along

    async def _first_leg(self, uri: Uri, call: Call, start: "_Start") -> None:
        try:
            claim = partial(self._claim_new_call, uri, call, start)
            reply = await self._run_leg(self.servers[call.server], uri, call, 0, claim)
            if not start.durable.done():  # no connection after all: an effect sends it later
                await self._write(uri, start, start.plan)
            elif reply is not None:
                await self.write_until_saved(uri, planned(call.id, 0, reply))
        finally:
            start.fail(NotSavedError("The host is stopping."))

    async def _claim_new_call(
        self, uri: Uri, call: Call, start: "_Start", borrowed: "BorrowedLink"
    ) -> bool:
        """Whether the call is new, and its first leg this process's to send."""
        sent, is_new = self._sent_action(call, 0, borrowed), False

        def plan(record: SessionRecord, stamp: Stamp) -> Sequence[LoggedAction] | Refusal:
            nonlocal is_new
            batch = start.plan(record, stamp)
            if isinstance(batch, Refusal) or not batch:
                return batch
            is_new = True
            return (*batch, sent)

        await self._write(uri, start, plan)
        error = start.durable.exception()
        is_doubted = isinstance(error, InDoubtError)
        return await self._is_known(uri, call.id) if is_doubted else is_new and error is None

    async def _write(self, uri: Uri, start: "_Start", plan: Plan) -> None:
        try:
            await write(self._host, uri, plan, start.by)
        except Exception as error:  # noqa: BLE001 - it is raised where the call was made
            start.fail(error)
        else:
            start.durable.set_result(None)

    async def _is_known(self, uri: Uri, call_id: str) -> bool:
        """Once the log has answered whether it has the call."""
        found = False

        def plan(record: SessionRecord, _: Stamp) -> Batch:
            nonlocal found
            found = call_id in record.private.calls
            return ()

        await self.write_until_saved(uri, plan)
        return found

    # What effects ask for

    def send(self, channel: SessionChannel, effect: SendCall) -> None:
        key = (channel.uri, effect.call_id)
        self._run(key, self._send(channel.uri, effect, self._legs.get(key)))

    def _run(self, key: tuple[Uri, str], leg: Coroutine[Any, Any, None]) -> None:
        def forget(ended: asyncio.Task[None]) -> None:
            if self._legs.get(key) is ended:
                del self._legs[key]

        task = self._legs[key] = self.spawn(leg)
        task.add_done_callback(forget)

    def recover(self, channel: SessionChannel, effect: RecoverCall) -> None:
        def plan(record: SessionRecord, stamp: Stamp) -> Batch:
            return recovery.after_crash(record, effect.call_id, effect.leg, stamp)

        self.spawn(self.write_until_saved(channel.uri, plan))

    def stop(self, channel: SessionChannel, effect: StopCall) -> None:
        task = self._legs.get((channel.uri, effect.call_id))
        if task is not None:
            task.cancel()

    def forget_session(self, uri: Uri) -> None:
        for (session, _), task in tuple(self._legs.items()):
            if session == uri:
                task.cancel()

    # Life

    async def close(self) -> None:
        self._is_stopping = True
        # People, who may take hours, are not waited for.
        working = [task for key, task in self._legs.items() if self._call_in(Sent, *key)]
        if working:
            await asyncio.wait(working, timeout=GRACE_SECONDS)
        legs = tuple(self._legs.values())
        for task in legs:
            task.cancel()
        await asyncio.gather(*legs, return_exceptions=True)
        await self.servers.stop()
        await self._tasks.stop()

    # One leg

    async def _send(self, uri: Uri, effect: SendCall, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        if effect.not_before is not None and effect.not_before > self._host.now():
            await self._time_of_day(effect.not_before)
        call = self._call_in(ToSend, uri, effect.call_id)
        if call is None or self._is_stopping:
            return
        claim = partial(self._claim_leg, uri, call, effect.leg)
        reply: Reply | None
        try:
            reply = await self._run_leg(self.servers[call.server], uri, call, effect.leg, claim)
        except UnknownServerError as error:
            reply = Rejected(FailureKind.UPSTREAM, str(error).rstrip("."))
        if reply is not None:
            await self.write_until_saved(uri, planned(effect.call_id, effect.leg, reply))

    async def _time_of_day(self, when: Millis) -> None:
        reached = asyncio.Event()
        timer = self._host.timers.at(when, reached.set)
        try:
            await reached.wait()
        finally:
            timer.cancel()

    async def _run_leg(
        self, server: "Server", uri: Uri, call: Call, leg: int, claim: Claim
    ) -> Reply | None:
        """What came back; `None` if the leg is not this process's to send."""
        # Imported here: a host without MCP servers does not load the MCP SDK.
        from mcp_types import LOG_LEVEL_META_KEY  # noqa: PLC0415

        from session_server.calls.replies import exchange, failure_of  # noqa: PLC0415
        from session_server.calls.running_leg import RunningLeg  # noqa: PLC0415

        claimed = False
        reply: Reply | None = None
        level = None if call.client is None else call.client.log_level
        running = RunningLeg(self, uri, call.id, leg, level)
        try:
            # A connection that declares what the call's client can answer, in that client's era.
            async with server.lend(
                running,
                name_of(call),
                capabilities=None if call.client is None else call.client.capabilities,
                principal="" if call.by is None else call.by.id,
                era=None if call.request_state is None else MODERN,
                preferred=_preferred(call),
            ) as borrowed:
                claimed = await claim(borrowed)
                if claimed:
                    params = rounds.next_params(call)
                    if level is not None and borrowed.link.is_modern:
                        params["_meta"] = {**params.get("_meta", {}), LOG_LEVEL_META_KEY: level}
                    reply = await exchange(borrowed, call.method, params, running.progress)
                if isinstance(reply, Unsent | Lost):
                    borrowed.link.lost.set()  # and so is the next thing that would be sent over it
                if isinstance(reply, Asks) and borrowed.link.is_modern:
                    server.asked_by_result(name_of(call))
            if isinstance(reply, OtherRevision) and not await server.remember_if_spoken(
                name_of(call), reply.era
            ):
                reply = reply.failure
        except Exception as error:  # noqa: BLE001 - the SDK's scopes raise whatever ended them
            if reply is None:
                reply = failure_of(error, server.config)
            if isinstance(reply, Lost) and not claimed:
                reply = Unsent("the connection failed", is_general=True)
        finally:
            running.close()
        if isinstance(reply, Unsent) and reply.is_general:
            server.main.lose()
        return reply

    async def _claim_leg(self, uri: Uri, call: Call, leg: int, borrowed: "BorrowedLink") -> bool:
        """Whether this process is the one that sends the leg: durable before it goes out.

        A claim whose fate was in doubt is planned again: what the log has of it then is this
        process's own if it names this node, for nothing else here sends this leg.
        """
        sent = self._sent_action(call, leg, borrowed)
        won = False

        def plan(record: SessionRecord, _: Stamp) -> Batch:
            nonlocal won
            now = record.private.calls.get(call.id)
            phase = None if now is None else now.phase
            if isinstance(phase, ToSend) and phase.leg == leg:
                won = True
                return (sent,)
            is_sent = isinstance(phase, Sent) and phase.leg == leg
            won = won and is_sent and now is not None and now.node == self._host.node
            return ()

        await self.write_until_saved(uri, plan)
        return won

    def _sent_action(self, call: Call, leg: int, borrowed: "BorrowedLink") -> CallSent:
        is_tool = call.method == "tools/call"
        repeatable = borrowed.is_repeatable(call.target) if is_tool else None
        return CallSent(call_id=call.id, leg=leg, repeatable=repeatable, node=self._host.node)

    def _call_in(self, phase: type[Sent | ToSend], uri: Uri, call_id: str) -> Call | None:
        record = self._host.record(uri)
        call = None if record is None else record.private.calls.get(call_id)
        return call if call is not None and isinstance(call.phase, phase) else None

    # Writing

    async def write_until_saved(self, uri: Uri, plan: Plan, by: Author = HOST) -> None:
        """Durable when it returns: it is tried until what the server answered is in the log."""
        backoff = Backoff(*SAVE_AGAIN)
        while True:
            try:
                await write(self._host, uri, plan, by)
            except (CommandError, RefusedError):
                return  # the session is gone or only a recording, and so is the call
            except NotSavedError as error:
                logger.debug("what became of a call could not be saved: %s", error)
                await self.clock.sleep(backoff.pause())
            else:
                return

    async def until(self, uri: Uri, look: Callable[[SessionRecord], Any]) -> Any:
        with contextlib.suppress(CommandError):
            return await self._waiting.until(uri, look)
        return None


def _preferred(call: Call) -> Era:
    """The revision of a client that is asked itself, where the server speaks both."""
    client = call.client
    is_asked = client is not None and client.capabilities is not None
    return LEGACY if client is not None and is_asked and client.is_2025 else MODERN


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
                return recovery.after_expired_state(record, call_id, leg, stamp)
            case Rejected(kind, reason, data):
                return rounds.failure(record, call_id, leg, kind, reason, stamp, data)
            case Unsent(reason=reason):
                return recovery.after_no_connection(record, call_id, leg, reason, stamp)
            case OtherRevision(era=era, has_only_asked=has_only_asked):
                return recovery.in_other_revision(
                    record, call_id, leg, era, stamp, has_only_asked=has_only_asked
                )
            case Lost():
                return recovery.after_crash(record, call_id, leg, stamp)

    return plan
