"""The host: all channels of one deployment, and what may be done with them.

Above it stand connections, HTTP and agents; below it the log. Everything happens on one event loop,
and nothing in here waits except `start` and `stop`.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Collection, Coroutine, Iterator
from contextlib import suppress
from itertools import count
from typing import Any, cast

import msgspec

from session_server.backoff import Backoff
from session_server.host.channels.changes import Change, Plan, PlannedChange, ReadChange
from session_server.host.channels.channel import Channel, UnreadableError
from session_server.host.channels.channel_kinds import CLIENTS, ROOT, SESSION, TOKENS
from session_server.host.channels.history import EnvelopeMemory
from session_server.host.channels.messages import LoopTurns
from session_server.host.channels.state_size import StateMemory
from session_server.host.clients.active_clients import ActiveClients
from session_server.host.clients.askers import Askers
from session_server.host.clients.known_clients import Clients
from session_server.host.clients.list_watchers import ListWatchers
from session_server.host.clients.open_connections import Connections
from session_server.host.clients.presence import Presence
from session_server.host.connection.rate_limit import Allowances
from session_server.host.deferred_actions import DeferredActions
from session_server.host.follower import Follower
from session_server.host.host_limits import DEFAULT_LIMITS, HostLimits
from session_server.host.lifecycle import SessionLifecycle
from session_server.host.metrics import Counts, QuestionTimes
from session_server.host.nodes import Nodes
from session_server.host.persistence.loaded_sessions import LoadedSessions
from session_server.host.persistence.log_status import LogStatus
from session_server.host.persistence.log_writer import FIRST_PAUSE, LONGEST_PAUSE, LogWriter
from session_server.host.persistence.maintenance import Maintenance
from session_server.host.persistence.replay import Replay
from session_server.host.timers import CLOCK, Clock, Tasks, WallTimers
from session_server.log import Entry, Log, StoredSnapshot
from session_server.log.protocol import SharedLog
from session_server.reducers.effects import is_draft
from session_server.reducers.state.opening import readiness
from session_server.reducers.state.status import listed
from session_server.schemas.ahp.actions import (
    RootActiveSessionsChanged,
    RootAgentsChanged,
)
from session_server.schemas.ahp.commands import ROOT_CHANNEL, Snapshot
from session_server.schemas.ahp.envelopes import ActionOrigin
from session_server.schemas.ahp.session import AgentInfo, RootState, SessionSummary
from session_server.schemas.codec import decode_outline, encode
from session_server.schemas.errors import (
    CommandError,
    DecodingError,
    UnreadableSessionError,
    UnreadableTokensError,
    no_session,
)
from session_server.schemas.log_entries import (
    CLIENTS_CHANNEL,
    TOKENS_CHANNEL,
    IssuedTokens,
    LoggedAction,
    SessionDisposed,
    TokenRevoked,
)
from session_server.schemas.principals import HOST, Author, Principal, Stamp
from session_server.schemas.record import Outline, SessionRecord
from session_server.schemas.wire import Seq, Uri

logger = logging.getLogger("session_server.host")

Committed = Callable[[Channel[SessionRecord], Change], None]


class Host:
    def __init__(
        self,
        log: Log,
        agents: tuple[AgentInfo, ...],
        limits: HostLimits = DEFAULT_LIMITS,
        clock: Clock = CLOCK,
        *,
        is_shared: bool = False,
        is_first: bool = True,
    ) -> None:
        """`is_shared`: other nodes have the same log; `is_first`: none of them runs yet."""
        self.log = log
        self.is_first = is_first
        self.clock = clock
        self.now = clock.now
        self.agents = agents
        self.limits = limits
        self.counts = Counts()
        self.envelopes = EnvelopeMemory()
        self.turns = LoopTurns()
        self.states = StateMemory(limits.session_bytes, limits.state_bytes)
        self._run = f"{self.now():012x}{secrets.token_hex(6)}"
        self._numbers = count(10**9)
        self.nodes: Nodes | None = None
        if is_shared:
            lease = limits.node_lease_seconds
            shared = cast("SharedLog", log)
            self.nodes = Nodes(shared, self._run, clock, lease, is_first=is_first)
        self.loaded = LoadedSessions(self, limits.loaded_bytes, limits.idle_seconds)
        self._tasks = Tasks("the host", logger)
        self.log_status = LogStatus(self.counts, self._tasks, self._probe, clock)
        self.writer = LogWriter(
            log,
            self._tasks,
            self.log_status,
            self.counts.append_seconds,
            limits.store_seconds,
            clock,
        )
        self.maintenance = Maintenance(log, self._tasks, self.log_status, clock)
        self.sessions: dict[Uri, Channel[SessionRecord]] = {}
        self.unreadable: dict[Uri, str] = {}
        self.root: Channel[RootState] = Channel(ROOT_CHANNEL, ROOT, self)
        self.clients = Clients(Channel(CLIENTS_CHANNEL, CLIENTS, self), self.log_status, self.now)
        self.tokens: Channel[IssuedTokens] = Channel(TOKENS_CHANNEL, TOKENS, self)
        self._own: dict[Uri, Channel[Any]] = {
            channel.uri: channel for channel in (self.root, self.clients.channel, self.tokens)
        }
        self.timers = WallTimers(clock)
        self.allowances = Allowances(limits.actions_per_second, clock.monotonic)
        self.connections = Connections(
            self.allowances, limits.connections_per_principal, self.counts, self.timers
        )
        self.presence = Presence(clock, self.nodes)
        self.list_watchers = ListWatchers(self.root)
        self.active_clients = ActiveClients(self.sessions, self.write, clock, self.nodes)
        self.askers = Askers(
            self.sessions, self.write, self.timers, self.allowances, self.now, self.nodes
        )
        self.lifecycle = SessionLifecycle(self)
        self.position = 0
        self.on_committed: list[Committed] = []
        self.on_drafted: list[Committed] = []
        """For drafts instead, which are most of all changes and concern few. The first draft of a
        request is like any other change.
        """
        self.on_disposed: list[Callable[[Uri], None]] = []
        self.on_overdue: list[Callable[[Channel[SessionRecord]], None]] = []
        self._deferred = DeferredActions()
        self._listen()
        self.follower = Follower(self, cast("SharedLog", log)) if is_shared else None
        self.writer.follower = self.follower

    def _listen(self) -> None:
        for hooks in (QuestionTimes(self.counts), self._deferred, self.active_clients, self.askers):
            self.on_committed.append(hooks.committed)
            self.on_disposed.append(hooks.disposed)
        self.on_disposed += (
            self.maintenance.disposed,
            self.loaded.disposed,
            self.presence.disposed,
            self.list_watchers.disposed,
        )
        self.loaded.on_loaded.append(lambda channel, _: self.active_clients.opened(channel))

    # Life

    async def start(self) -> None:
        """Reads what is needed of what the log holds; from then on the host is ready."""
        durable = self.log.last_seq
        await self._load_what_is_needed()
        if self.follower is not None and self.nodes is not None:
            self.spawn(self.follower.run(durable))
            self.spawn(self.nodes.run())
        await self._replace_unreadable()
        if self.states.is_full:  # by what the entries add up to
            for channel in self._channels():
                if channel.outline is None:
                    channel.measure()
        self._update_root(lambda: RootAgentsChanged(agents=self.agents))
        self.count_sessions()
        if self.is_first:
            self.active_clients.restarted()
            self.askers.restarted()
        else:  # who is needed here may be connected to another node
            for channel in self.sessions.values():
                self.active_clients.opened(channel)
        self.spawn(self.maintenance.age(self._channels))
        self.spawn(self.loaded.sweep())
        for channel in self.sessions.values():
            if channel.outline is None:
                self.write(channel, readiness)

    async def load_all(self, channels: Collection[Uri] | None = None) -> None:
        """Reads what the log holds, of these channels or of all, and writes nothing.

        Damaged sessions are set aside with the reason: `unreadable`. Nobody can write to them.
        """
        replay = Replay(self.log, self._stored_channel)
        if channels is None:
            await replay.everything()
        else:
            await replay.channels(dict.fromkeys(channels, 0))
        self._replayed(replay)

    async def _load_what_is_needed(self) -> None:
        """Of a session at rest only the outline, if its stored snapshot has one."""
        outlines: dict[Uri, tuple[Seq, Outline]] = {}
        for stored in await self.log.outlines():
            if stored.outline:
                with suppress(DecodingError):
                    outlines[stored.channel] = (stored.seq, decode_outline(stored.outline))
        replay = Replay(self.log, self._stored_channel)
        for uri in await replay.everything({uri: seq for uri, (seq, _) in outlines.items()}):
            self._stored_channel(uri).begin_evicted(*outlines[uri])
        self._replayed(replay)

    def _replayed(self, replay: Replay) -> None:
        self.unreadable = replay.unreadable
        for uri in self.unreadable:
            channel = self.sessions.pop(uri, None)
            if channel is not None:
                channel.forget()
        self.position = max(self.position, self.log.last_seq)

    async def _replace_unreadable(self) -> None:
        """Of the host's own channels: what the root says is so anyway, and clients introduce
        themselves again. Which tokens were revoked nobody can say.
        """
        reason = self.unreadable.get(TOKENS_CHANNEL)
        if reason is not None:
            raise UnreadableTokensError(reason)
        own: tuple[Channel[Any], ...] = (self.root, self.clients.channel)
        for channel in own:
            reason = self.unreadable.pop(channel.uri, None)
            if reason is not None:
                logger.error("%s is damaged and begins again empty: %s", channel.uri, reason)
                await self.log.drop(channel.uri)
                channel.begin_again(self.position)
        for uri, reason in self.unreadable.items():
            logger.error("session %s is damaged and is not served: %s", uri, reason)

    async def stop(self) -> None:
        """No new work; what is being written is finished."""
        await self._tasks.stop()
        self.lifecycle.forget_disposing()
        if self.log_status.reason is None:
            await self.maintenance.finish(self.sessions.values())
        if self.nodes is not None:
            self.nodes.leave()
        await self.log.close()

    def _stored_channel(self, uri: Uri) -> Channel[Any]:
        if uri in self._own:
            return self._own[uri]
        if uri not in self.sessions:
            self.sessions[uri] = Channel(uri, SESSION, self)
        return self.sessions[uri]

    def _channels(self) -> tuple[Channel[Any], ...]:
        return (*self._own.values(), *self.sessions.values())

    async def _probe(self) -> None:
        """Writes what does no harm, to see whether anything can be written."""
        root = encode(self.root.committed)
        await self.log.save_snapshot(StoredSnapshot(ROOT_CHANNEL, self.root.last_seq, root))

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A task of the host's own."""
        return self._tasks.spawn(work)

    @property
    def node(self) -> str:
        """The name under which this node does its work; nothing where there is no other."""
        return "" if self.nodes is None else self.nodes.name

    # What channels need (ChannelHost)

    def new_id(self) -> str:
        """Never used before: the run's own name and a number. Each sorts after the last, so that
        a log's index of them grows at its end: the numbers have the same length from the first on.
        """
        return f"{self._run}-{next(self._numbers)}"

    def reached(self, seq: int) -> None:
        self.position = max(self.position, seq)

    def committed(self, channel: Channel[Any], change: Change) -> None:
        before, actions = change.before, change.actions
        if isinstance(before, SessionRecord):
            is_first = before.private is not change.after.private
            hooks = self.on_drafted if is_draft(actions) and not is_first else self.on_committed
            for hook in hooks:
                hook(channel, change)
        elif isinstance(change, ReadChange):
            self._done_elsewhere(change.actions[0])

    def _done_elsewhere(self, action: LoggedAction) -> None:
        """Another node has changed something about the host itself."""
        if isinstance(action, SessionDisposed):
            self.lifecycle.disposed_elsewhere(action.session, action.last_seq)
        elif isinstance(action, TokenRevoked):
            self.connections.revoke(action.token_id)

    def apply(self, entry: Entry) -> None:
        """What another node wrote, in the order of the log."""
        uri = entry.channel
        channel = self.stored(uri)
        if uri in self.unreadable or (channel is not None and entry.seq <= channel.last_seq):
            return
        if channel is None and self.lifecycle.is_gone(uri, entry.seq):
            return
        known = channel is not None
        channel = channel or Channel(uri, SESSION, self)
        try:
            channel.apply_foreign(entry)
        except UnreadableError as error:
            logger.exception("session %s is damaged and is not served", uri)
            self.unreadable[uri] = str(error)
            if known:
                channel.close(f"This session cannot continue: {error}.")
            else:
                channel.forget()
        else:
            if not known:
                self.lifecycle.opened_elsewhere(channel)

    def stored(self, uri: Uri) -> Channel[Any] | None:
        """A channel that is in the log, with no check of who may see it."""
        return self._own.get(uri) or self.sessions.get(uri)

    def overdue(self, channel: Channel[Any]) -> None:
        for hook in self.on_overdue:
            hook(channel)

    def set_aside(self, channel: Channel[SessionRecord], reason: str) -> None:
        """It was found to be damaged when it was needed."""
        logger.error("session %s is damaged and is not served: %s", channel.uri, reason)
        self.unreadable[channel.uri] = reason
        channel.close(f"This session cannot continue: {reason}.")
        self.sessions.pop(channel.uri, None)
        channel.forget()
        self.count_sessions()

    # Looking

    async def caught_up(self) -> bool:
        """Whether what other nodes have written by now is applied here: see `Follower.caught_up`.

        At once where this host is alone, or is known not to reach its log.
        """
        if self.follower is None:
            return True
        return self.log_status.reason is None and await self.follower.caught_up()

    def channel(self, principal: Principal, uri: Uri) -> Channel[Any] | None:
        """A channel that this principal may look at."""
        if principal.sessions is not None and uri not in principal.sessions:
            return None
        channel = self.sessions.get(uri)
        if channel is None:
            return self.root if uri == ROOT_CHANNEL else None
        return channel

    def is_position(self, seq: Seq) -> bool:
        """Whether a client can have seen just this of the log as it is.

        A lower one is of an earlier epoch, and a higher one of entries that were lost: in both
        cases the client may have seen what never happened, and needs snapshots.
        """
        return self.log.epoch.first <= seq <= self.position

    def snapshot(self, channel: Channel[Any]) -> Snapshot:
        return Snapshot(
            resource=channel.uri, state=msgspec.Raw(channel.snapshot()), from_seq=self.position
        )

    def summaries(self, principal: Principal) -> Iterator[SessionSummary]:
        for record in self.overviews(principal):
            yield listed(record.public)

    def overviews(self, principal: Principal) -> Iterator[SessionRecord]:
        """What lists show of the sessions that this principal may look at."""
        for uri, channel in self.sessions.items():
            record = channel.overview
            if record is not None and principal.reaches(uri):
                yield record

    def missing(self, principal: Principal, uri: Uri) -> CommandError:
        """Why `channel` has found nothing."""
        reason = self.unreadable.get(uri)
        if reason is None or not principal.reaches(uri):
            return no_session(uri)
        return UnreadableSessionError(uri, reason)

    def record(self, uri: Uri) -> SessionRecord | None:
        """Of a session that is in memory."""
        channel = self.sessions.get(uri)
        return None if channel is None else channel.committed

    # Changing

    def submit(self, uri: Uri, change: Change) -> None:
        """A change from outside the host; it is told what became of it.

        Raises a `CommandError` if its principal cannot see such a channel.
        """
        principal = change.principal
        channel = self.stored(uri) if principal is None else self.channel(principal, uri)
        if channel is None:
            raise no_session(uri) if principal is None else self.missing(principal, uri)
        channel.submit(change)

    def write(
        self,
        channel: Channel[Any],
        plan: Plan,
        by: Author = HOST,
        *,
        origin: ActionOrigin | None = None,
        origin_type: type | None = None,
        done: Callable[[], None] = lambda: None,
    ) -> None:
        """What must be written: tried until it is, or there is nothing to write it to.

        `origin` is for what a client has sent and the host has put off; `origin_type` is its type.
        `done` is called once it is durable.
        """
        backoff = Backoff(FIRST_PAUSE, LONGEST_PAUSE)

        def again(_: str) -> None:
            if not channel.is_closed and not self._tasks.is_over:
                self.clock.call_later(backoff.pause(), channel.submit, change)

        change = PlannedChange(
            plan,
            by,
            origin=origin,
            origin_type=origin_type,
            done=done,
            failed=again,
            is_exempt=True,
        )
        channel.submit(change)

    # The list of sessions

    def _update_root(self, make_action: Callable[[], LoggedAction]) -> None:
        """Writes to the root channel what is true by then, unless it is known already."""

        def plan(state: Any, stamp: Stamp) -> tuple[LoggedAction, ...]:
            action = make_action()
            return () if ROOT.reduce(state, action, stamp.at) is state else (action,)

        self.write(self.root, plan)

    def count_sessions(self) -> None:
        self._update_root(lambda: RootActiveSessionsChanged(active_sessions=len(self.sessions)))
