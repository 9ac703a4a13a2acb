"""The host: all channels of one deployment, and what may be done with them.

Above it stand connections, HTTP and agents; below it the log. Everything happens on one event loop,
and nothing in here waits except `start` and `stop`.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable, Collection, Coroutine, Iterator, Sequence
from functools import partial
from heapq import nlargest
from itertools import count
from typing import Any

import msgspec

from session_server.host.active_clients import ActiveClients, Askers
from session_server.host.append_order import Settled
from session_server.host.channel import Channel, Plan, Submission, in_doubt
from session_server.host.channel_kinds import (
    CLIENTS,
    CLIENTS_CHANNEL,
    ROOT,
    SESSION,
    TOKENS,
    TOKENS_CHANNEL,
    IssuedTokens,
    LoggedAction,
    SessionOpened,
)
from session_server.host.connection.rate_limit import DEFAULT_BOUNDS, Allowances, Bounds
from session_server.host.deferred_actions import HeldActions
from session_server.host.delivery import Message, Outbox
from session_server.host.errors import (
    CommandError,
    UnreadableSessionError,
    no_session,
    not_permitted,
    tokens_unreadable,
)
from session_server.host.history import EnvelopeMemory
from session_server.host.known_clients import Clients
from session_server.host.log_writer import FIRST_PAUSE, LONGEST_PAUSE, Journal
from session_server.host.maintenance import Upkeep
from session_server.host.metrics import Counts, QuestionTimes
from session_server.host.open_connections import Connections
from session_server.host.presence import Presence
from session_server.host.session_opening import (
    check_selections,
    check_uri,
    opening_record,
    readiness,
    retitled,
)
from session_server.host.state_size import StateMemory
from session_server.host.storage import PROBE_SECONDS, Storage
from session_server.host.timers import Tasks, WallTimers, wall_millis
from session_server.log import Batch, Log, RefusedBecause, StoredSnapshot
from session_server.log.errors import FailedError, LogError
from session_server.reducers.batches import batch_of
from session_server.reducers.rules.input_rules import provenance_of
from session_server.reducers.rules.judge import judge, judge_root
from session_server.reducers.state.status import listed
from session_server.schemas.ahp.actions import (
    Action,
    AgentChanged,
    ModelChanged,
    RootActiveSessionsChanged,
    RootAgentsChanged,
    TurnComplete,
)
from session_server.schemas.ahp.commands import ROOT_CHANNEL, CreateSessionParams, Snapshot
from session_server.schemas.ahp.envelopes import ActionOrigin
from session_server.schemas.ahp.frames import (
    SessionAdded,
    SessionAddedParams,
    SessionRemoved,
    SessionRemovedParams,
)
from session_server.schemas.ahp.session import ActiveClient, AgentInfo, RootState, SessionSummary
from session_server.schemas.codec import encode
from session_server.schemas.errors import ErrorCode, Refusal
from session_server.schemas.principals import HOST, Author, Principal, Role, Stamp
from session_server.schemas.record import SessionRecord
from session_server.schemas.wire import Seq, Uri

logger = logging.getLogger("session_server.host")

MAKERS = (Role.OWNER, Role.AGENT)

Committed = Callable[[Channel[SessionRecord], SessionRecord, LoggedAction, SessionRecord], None]


class Host:
    def __init__(
        self, log: Log, agents: tuple[AgentInfo, ...], bounds: Bounds = DEFAULT_BOUNDS
    ) -> None:
        self.log = log
        self.agents = agents
        self.bounds = bounds
        self.counts = Counts()
        self.envelopes = EnvelopeMemory()
        self.states = StateMemory(bounds.session_bytes, bounds.state_bytes)
        self._tasks = Tasks("the host", logger)
        self.storage = Storage(self.counts, self._tasks, self._probe)
        self._journal = Journal(
            log, self._tasks, self.storage, self.counts.append_seconds, bounds.store_seconds
        )
        self.upkeep = Upkeep(log, self._tasks, self.storage, self.now)
        self.sessions: dict[Uri, Channel[SessionRecord]] = {}
        self.unreadable: dict[Uri, str] = {}
        self.root: Channel[RootState] = Channel(ROOT_CHANNEL, ROOT, self)
        self.clients = Clients(Channel(CLIENTS_CHANNEL, CLIENTS, self), self.storage, self.now)
        self.tokens: Channel[IssuedTokens] = Channel(TOKENS_CHANNEL, TOKENS, self)
        self.timers = WallTimers(self.now)
        self.allowances = Allowances(bounds.actions_per_second)
        self.connections = Connections(
            self.allowances, bounds.connections_per_principal, self.counts, self.timers
        )
        self.presence = Presence()
        self._guests: dict[Uri, dict[Outbox, None]] = {}
        self.active_clients = ActiveClients(self.sessions, self.write)
        self.askers = Askers(self.sessions, self.write, self.timers, self.allowances, self.now)
        self.position = 0
        self.on_committed: list[Committed] = []
        self.on_disposed: list[Callable[[Uri], None]] = []
        self.on_overdue: list[Callable[[Channel[SessionRecord]], None]] = []
        self._held = HeldActions()
        times = QuestionTimes(self.counts)
        for care in (times, self._held, self.active_clients, self.askers):
            self.on_committed.append(care.committed)
            self.on_disposed.append(care.disposed)
        self.on_disposed.append(self.upkeep.disposed)
        self.on_disposed.append(self.presence.disposed)
        self._run = f"{self.now():012x}{secrets.token_hex(6)}"
        self._numbers = count()
        self._opening: dict[Uri, list[Callable[[], None]]] = {}
        self._in_doubt: set[Uri] = set()
        self._disposing: set[Uri] = set()

    # Life

    async def start(self) -> None:
        """Folds what the log holds; from then on the host is ready."""
        await self.load()
        await self._replace_unreadable()
        if self.states.is_full:  # by what the entries add up to
            for channel in self._channels():
                channel.measure()
        self._tell_root(lambda: RootAgentsChanged(agents=self.agents))
        self._count_sessions()
        self.active_clients.restarted()
        self.askers.restarted()
        self.spawn(self.upkeep.age(self._channels))
        for channel in self.sessions.values():
            self.write(channel, readiness)

    async def load(self, channels: Collection[Uri] | None = None) -> None:
        """Folds what the log holds, of these channels or of all, and writes nothing.

        Damaged sessions are set aside with the reason: `unreadable`. Nobody can write to them.
        """
        self.unreadable = await self._journal.fold_into(self._stored_channel, channels)
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
            raise tokens_unreadable(reason)
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
        for uri in self._disposing:
            self.sessions.pop(uri, None)  # the next start knows whether the log has dropped it
        if self.storage.reason is None:
            await self.upkeep.finish(self.sessions.values())
        await self.log.close()

    def _stored_channel(self, uri: Uri) -> Channel[Any]:
        if uri == ROOT_CHANNEL:
            return self.root
        if uri == CLIENTS_CHANNEL:
            return self.clients.channel
        if uri == TOKENS_CHANNEL:
            return self.tokens
        if uri not in self.sessions:
            self.sessions[uri] = Channel(uri, SESSION, self)
        return self.sessions[uri]

    def _channels(self) -> tuple[Channel[Any], ...]:
        own: tuple[Channel[Any], ...] = (self.root, self.clients.channel, self.tokens)
        return (*own, *self.sessions.values())

    async def _probe(self) -> None:
        """Writes what does no harm, to see whether anything can be written."""
        root = encode(self.root.committed)
        await self.log.save_snapshot(StoredSnapshot(ROOT_CHANNEL, self.root.last_seq, root))

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """A task of the host's own."""
        return self._tasks.spawn(work)

    # What channels need (World)

    def now(self) -> int:
        return wall_millis()

    def new_id(self) -> str:
        """Never used before: the run's own name and a number. Each sorts after the last, so that
        a log's index of them grows at its end.
        """
        return f"{self._run}-{next(self._numbers):010x}"

    def reached(self, seq: int) -> None:
        self.position = max(self.position, seq)

    def append(self, batch: Batch, settled: Settled) -> None:
        self._journal.append(batch, settled)

    def catch_up(self, channel: Channel[Any]) -> None:
        self._journal.catch_up(channel)

    def write(
        self,
        channel: Channel[Any],
        plan: Plan,
        by: Author = HOST,
        *,
        origin: ActionOrigin | None = None,
        own: type | None = None,
        pause: float = FIRST_PAUSE,
    ) -> None:
        """What must be said: tried until it is written, or there is nothing to write it to.

        `origin` is for what a client has said and the host has put off; `own` is its type.
        """

        def again(_: str) -> None:
            if not channel.is_closed and not self._tasks.is_over:
                longer = min(pause * 2, LONGEST_PAUSE)
                retry = partial(self.write, channel, plan, by, origin=origin, own=own, pause=longer)
                asyncio.get_running_loop().call_later(pause, retry)

        channel.submit(
            Submission(plan, by=by, origin=origin, own=own, failed=again, is_exempt=True)
        )

    def committed(
        self, channel: Channel[Any], before: Any, action: LoggedAction, after: Any
    ) -> None:
        if isinstance(before, SessionRecord):
            for hook in self.on_committed:
                hook(channel, before, action, after)

    def overdue(self, channel: Channel[Any]) -> None:
        for hook in self.on_overdue:
            hook(channel)

    def written(self, channel: Channel[Any]) -> None:
        self.upkeep.written(channel)

    # Looking

    def channel(self, principal: Principal, uri: Uri) -> Channel[Any] | None:
        """A channel that this principal may look at."""
        if not principal.reaches(uri):
            return None
        if uri == ROOT_CHANNEL:
            return self.root
        channel = self.sessions.get(uri)
        return None if channel is None or channel.committed is None else channel

    def is_position(self, seq: Seq) -> bool:
        """Whether a client can have seen just this of the log as it is.

        A lower one is of an earlier epoch, and a higher one of entries that were lost: in both
        cases the client may have seen what never happened, and needs snapshots.
        """
        return self.log.epoch.first <= seq <= self.position

    def snapshot(self, channel: Channel[Any]) -> Snapshot:
        return Snapshot(
            resource=channel.uri, state=msgspec.Raw(channel.shown()), from_seq=self.position
        )

    def summaries(self, principal: Principal) -> Iterator[SessionSummary]:
        for uri, channel in self.sessions.items():
            if channel.committed is not None and principal.reaches(uri):
                yield listed(channel.committed.public)

    def missing(self, principal: Principal, uri: Uri) -> CommandError:
        """Why `channel` has found nothing."""
        reason = self.unreadable.get(uri)
        if reason is None or not principal.reaches(uri):
            return no_session(uri)
        return UnreadableSessionError(uri, reason)

    def is_opening(self, uri: Uri) -> bool:
        """Whether it is on its way to being there: neither to be used yet nor unknown."""
        return uri in self._opening

    def when_settled(self, uris: Collection[Uri], then: Callable[[], None]) -> None:
        """Calls back once none of these channels is on its way any more; maybe at once.

        Whether each is there is to be looked up then: it may have failed.
        """
        for uri in uris:
            waiting = self._opening.get(uri)
            if waiting is not None:
                waiting.append(partial(self.when_settled, uris, then))
                return
        then()

    def _settled(self, uri: Uri) -> None:
        """It is there, or will not be. Who made it is answered before who waited for it."""
        loop = asyncio.get_running_loop()
        for then in self._opening.pop(uri, ()):
            loop.call_soon(then)

    def record(self, uri: Uri) -> SessionRecord | None:
        channel = self.sessions.get(uri)
        return None if channel is None else channel.committed

    # Changing

    def dispatch(  # noqa: PLR0913  # four ways to end, and whoever listens names them
        self,
        principal: Principal,
        channel: Channel[Any],
        action: Action,
        origin: ActionOrigin | None = None,
        *,
        refused: Callable[[Refusal], None],
        failed: Callable[[str], None],
        doubted: Callable[[str], None] = lambda _: None,
        done: Callable[[], None] = lambda: None,
    ) -> None:
        """An action of somebody's: judged by the rules, then on its way.

        `refused` may still follow `done`: for what was put off, and then could not happen any more.
        """
        plan = _root_plan if channel is self.root else _session_plan
        if isinstance(action, TurnComplete):
            done = partial(self._held.completion_durable, channel.uri, done, refused)
        elif isinstance(action, ModelChanged | AgentChanged):
            done = partial(self._held.change_durable, channel, origin, done, refused)
        channel.submit(
            Submission(
                partial(plan, principal, action, origin),
                by=principal.author,
                via=provenance_of(principal, action),
                origin=origin,
                own=type(action),
                done=done,
                refused=refused,
                failed=failed,
                doubted=doubted,
            )
        )

    def create_session(
        self,
        principal: Principal,
        params: CreateSessionParams,
        *,
        done: Callable[[], None],
        failed: Callable[[str], None],
        title: str | None = None,
        opened_with: str | None = None,
    ) -> None:
        """Durable before it is answered; then ready, and made known."""
        uri = params.channel
        self._check_maker(principal)
        self._check_free(uri)
        provider = params.provider or self.agents[0].provider
        if all(agent.provider != provider for agent in self.agents):
            raise CommandError(ErrorCode.PROVIDER_NOT_FOUND, f"There is no provider {provider!r}.")
        if params.active_client is not None:
            self._check_active_client(principal, params.active_client)
        check_selections(params)
        source = self._fork_source(principal, params)
        record = retitled(opening_record(params, provider, self.now(), source, opened_with), title)
        channel = self.reserve(uri)
        is_told = False

        def opened() -> None:
            self.admit(channel)
            if not is_told:
                done()
            self.write(channel, readiness)

        def not_opened(words: str) -> None:
            self.give_up(channel)
            if not is_told:
                failed(words)

        def doubted(words: str) -> None:
            nonlocal is_told
            is_told = True
            self.doubt(channel)
            failed(in_doubt(words))

        channel.submit(
            Submission(
                lambda *_: (SessionOpened(record=record),),
                by=principal.author,
                done=opened,
                failed=not_opened,
                doubted=doubted,
            )
        )

    def reserve(self, uri: Uri) -> Channel[SessionRecord]:
        """A channel under a name that is taken from now on; `admit` or `give_up` follows."""
        self._check_free(uri)
        self._opening[uri] = []
        return Channel(uri, SESSION, self)

    def admit(self, channel: Channel[SessionRecord]) -> None:
        """Its opening is durable: it is one of the sessions."""
        assert channel.committed is not None
        self.sessions[channel.uri] = channel
        self._in_doubt.discard(channel.uri)
        self._settled(channel.uri)
        self.active_clients.opened(channel)
        summary = channel.committed.public.summary
        self.announce(
            SessionAdded(params=SessionAddedParams(channel=ROOT_CHANNEL, summary=summary)),
            about=channel.uri,
        )
        self._count_sessions()

    def doubt(self, channel: Channel[SessionRecord]) -> None:
        """Nobody waits for it any longer, but its name stays taken: it may be there after all."""
        self._in_doubt.add(channel.uri)
        self._settled(channel.uri)

    def give_up(self, channel: Channel[SessionRecord]) -> None:
        self._in_doubt.discard(channel.uri)
        self._settled(channel.uri)
        channel.size.remove()

    def dispose_session(
        self,
        principal: Principal,
        uri: Uri,
        *,
        done: Callable[[], None],
        failed: Callable[[str], None],
    ) -> None:
        self._check_maker(principal)
        channel = self.channel(principal, uri)
        if uri in self.unreadable and principal.reaches(uri):
            channel = Channel(uri, SESSION, self)  # nothing of it can be seen or written to
        if channel is None or channel is self.root or uri in self._disposing:
            raise no_session(uri)
        self._disposing.add(uri)
        channel.close("This session is gone.")

        async def dispose() -> None:
            dropping = asyncio.ensure_future(self._drop(uri))
            is_told = False
            try:
                answered, _ = await asyncio.wait({dropping}, timeout=self.bounds.store_seconds)
                if not answered:
                    is_told = True
                    failed(in_doubt(self.storage.reason or ""))
                await dropping
            except LogError as error:
                self._disposing.discard(uri)
                channel.reopen()
                if not is_told:
                    failed(str(error))
                return
            finally:
                dropping.cancel()
            self._disposing.discard(uri)
            for hook in self.on_disposed:
                hook(uri)
            self.sessions.pop(uri, None)
            self.unreadable.pop(uri, None)
            channel.forget()
            removed = SessionRemovedParams(channel=ROOT_CHANNEL, session=uri)
            news = SessionRemoved(params=removed)
            self.announce(news, about=uri, also=tuple(channel.subscribers))
            channel.subscribers.clear()
            self._count_sessions()
            if not is_told:
                done()

        self.spawn(dispose())

    async def _drop(self, uri: Uri) -> None:
        """Until it is known: when a disk fails, the session may be gone from it or not."""
        while True:
            try:
                await self.storage.watched(self.log.drop(uri))
            except FailedError as error:
                if error.because is not RefusedBecause.BROKEN:
                    raise
                await asyncio.sleep(PROBE_SECONDS)
            else:
                return

    # What these need

    def _check_maker(self, principal: Principal) -> None:
        if principal.role not in MAKERS or principal.is_limited:
            raise not_permitted("Only owners and agents can make or dispose of sessions.")

    def _check_free(self, uri: Uri) -> None:
        check_uri(uri)
        if any(uri in known for known in (self.sessions, self._opening, self._in_doubt)):
            raise CommandError(ErrorCode.SESSION_EXISTS, f"There is a session {uri} already.")
        if uri in self.unreadable:
            words = f"There is a session {uri} already, and it is damaged: {self.unreadable[uri]}."
            raise CommandError(ErrorCode.SESSION_EXISTS, words)
        most = self.bounds.sessions
        if most and len(self.sessions) + len(self._opening) >= most:
            words = f"This host holds at most {most} sessions; dispose of some first."
            raise CommandError(ErrorCode.CONFLICT, words)
        if self.states.is_full and not self._has_room_after_all():
            message = "This host holds as much as it may; dispose of some sessions first."
            raise CommandError(ErrorCode.CONFLICT, message)

    def _has_room_after_all(self) -> bool:
        """Measures the few sessions whose estimated sizes are most likely too high."""
        for channel in nlargest(4, self.sessions.values(), key=lambda channel: channel.size.grown):
            if channel.size.grown * 8 > channel.size.bytes:
                channel.measure()
        return not self.states.is_full

    def _check_active_client(self, principal: Principal, wanted: ActiveClient) -> None:
        """As for `activeClientChanged`: nobody else could give the role up again."""
        if wanted.client_id != principal.client_id:
            words = "A client can only make itself the active one: activeClient.clientId is yours."
            raise not_permitted(words)

    def _fork_source(
        self, principal: Principal, params: CreateSessionParams
    ) -> SessionRecord | None:
        if params.fork is None:
            return None
        source = self.record(params.fork.session)
        if source is None:
            raise self.missing(principal, params.fork.session)
        return source

    def _tell_root(self, news: Callable[[], LoggedAction]) -> None:
        """Writes to the root channel unless it says so already: what is so when it is written."""

        def plan(state: Any, stamp: Stamp) -> tuple[LoggedAction, ...]:
            action = news()
            return () if ROOT.reduce(state, action, stamp.at) is state else (action,)

        self.write(self.root, plan)

    def _count_sessions(self) -> None:
        self._tell_root(lambda: RootActiveSessionsChanged(active_sessions=len(self.sessions)))

    def announce(self, notification: Any, about: Uri, also: tuple[Outbox, ...] = ()) -> None:
        """A notification about one session, to everyone who watches the list; never replayed."""
        message = Message.of(notification)
        guests = self._guests.get(about, ())
        for outbox in dict.fromkeys((*self.root.subscribers, *guests, *also)):
            outbox.send(message)

    def join_list(self, principal: Principal, outbox: Outbox) -> None:
        """For a principal that is limited to some sessions, the list has only these.

        The root channel's state and actions are about the whole host, so it gets announcements
        alone.
        """
        for uri in principal.sessions or ():
            self._guests.setdefault(uri, {})[outbox] = None

    def leave_list(self, principal: Principal, outbox: Outbox) -> None:
        for uri in principal.sessions or ():
            guests = self._guests.get(uri, {})
            guests.pop(outbox, None)
            if not guests:
                self._guests.pop(uri, None)


def _session_plan(
    principal: Principal,
    action: Any,
    origin: ActionOrigin | None,
    record: SessionRecord,
    stamp: Stamp,
) -> Sequence[LoggedAction] | Refusal:
    return judge(principal, record, action) or batch_of(record, action, stamp, origin)


def _root_plan(
    principal: Principal, action: Action, _: ActionOrigin | None, state: RootState, __: Stamp
) -> Sequence[LoggedAction] | Refusal:
    return judge_root(principal, state, action) or (action,)
