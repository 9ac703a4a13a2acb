"""Creating and disposing of sessions, durable before it is announced.

The name of a session is reserved as soon as it is requested. Until the log has answered, others who
ask for it wait; if the log does not answer, they no longer wait, but the name stays reserved.
"""

import asyncio
from collections.abc import Callable, Collection
from functools import partial
from heapq import nlargest
from typing import TYPE_CHECKING

from session_server.host.channels.changes import PlannedChange, in_doubt
from session_server.host.channels.channel import Channel
from session_server.host.channels.channel_kinds import SESSION
from session_server.host.persistence.log_status import PROBE_SECONDS
from session_server.log import RefusedBecause
from session_server.log.protocol import FailedError, LogError
from session_server.reducers.state.opening import (
    check_selections,
    check_uri,
    opening_record,
    readiness,
    retitled,
)
from session_server.schemas.ahp.commands import ROOT_CHANNEL, CreateSessionParams
from session_server.schemas.ahp.frames import (
    SessionAdded,
    SessionAddedParams,
    SessionRemoved,
    SessionRemovedParams,
)
from session_server.schemas.ahp.session import ActiveClient
from session_server.schemas.errors import CommandError, ErrorCode, no_session, not_permitted
from session_server.schemas.log_entries import SessionDisposed, SessionOpened
from session_server.schemas.principals import Principal
from session_server.schemas.record import SessionRecord
from session_server.schemas.wire import Seq, Uri

if TYPE_CHECKING:
    from session_server.host.host import Host

GONE_REMEMBERED = 1_000
"""Sessions that were disposed of: longer than what was read of them is on its way."""

NOT_LOADED = "This session cannot be read from the store now; try again later."


def loaded_record(channel: Channel[SessionRecord]) -> SessionRecord:
    """Raises if the session could not be loaded into memory."""
    if channel.committed is None:
        raise CommandError(ErrorCode.INTERNAL_ERROR, NOT_LOADED)
    return channel.committed


class SessionLifecycle:
    def __init__(self, host: "Host") -> None:
        self._host = host
        self.openings: dict[Uri, list[Callable[[], None]]] = {}
        """Sessions that are being opened, each with those who wait for it."""
        self._in_doubt: set[Uri] = set()
        self._disposing: set[Uri] = set()
        self._gone: dict[Uri, Seq] = {}

    def forget_disposing(self) -> None:
        """Before a stop: the next start finds out whether the log has dropped them."""
        for uri in self._disposing:
            self._host.sessions.pop(uri, None)

    def is_opening(self, uri: Uri) -> bool:
        """Whether it is on its way to being there: neither to be used yet nor unknown."""
        return uri in self.openings

    def when_settled(self, uris: Collection[Uri], then: Callable[[], None]) -> None:
        """Calls back once none of these channels is on its way any more; maybe at once.

        On its way is what is being opened, and what has to be read into memory first. Whether each
        is there is to be looked up then: it may have failed.
        """
        for uri in uris:
            waiting = self.openings.get(uri)
            if waiting is not None:
                waiting.append(partial(self.when_settled, uris, then))
                return
        self._host.loaded.when_loaded(uris, then)

    def _settled(self, uri: Uri) -> None:
        """Creation has ended. Its maker is answered before those who waited for it."""
        loop = asyncio.get_running_loop()
        for then in self.openings.pop(uri, ()):
            loop.call_soon(then)

    def create(
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
        self._check_may_create(principal)
        self._check_free(uri)
        provider = params.provider or self._host.agents[0].provider
        if all(agent.provider != provider for agent in self._host.agents):
            raise CommandError(ErrorCode.PROVIDER_NOT_FOUND, f"There is no provider {provider!r}.")
        if params.active_client is not None:
            self._check_active_client(principal, params.active_client)
        check_selections(params)
        source = self._fork_source(principal, params)
        record = retitled(
            opening_record(params, provider, self._host.now(), source, opened_with), title
        )
        channel = self.reserve(uri)
        is_answered = False

        def opened() -> None:
            self.admit(channel)
            if not is_answered:
                done()
            self._host.write(channel, readiness)

        def not_opened(reason: str) -> None:
            self.discard(channel)
            if not is_answered:
                failed(reason)

        def doubted(reason: str) -> None:
            nonlocal is_answered
            is_answered = True
            self.doubt(channel)
            failed(in_doubt(reason))

        channel.submit(
            PlannedChange(
                lambda *_: (SessionOpened(record=record),),
                principal.author,
                done=opened,
                failed=not_opened,
                doubted=doubted,
            )
        )

    def reserve(self, uri: Uri) -> Channel[SessionRecord]:
        """A channel under a name that is reserved from now on; `admit` or `discard` follows."""
        self._check_free(uri)
        self.openings[uri] = []
        return Channel(uri, SESSION, self._host)

    def admit(self, channel: Channel[SessionRecord]) -> None:
        """Its opening is durable: it is one of the sessions."""
        self._host.reached(channel.last_seq)
        self.opened_elsewhere(channel)
        self._host.count_sessions()

    def opened_elsewhere(self, channel: Channel[SessionRecord]) -> None:
        """By another node, which has written about it all that is to be written."""
        assert channel.committed is not None
        self._host.sessions[channel.uri] = channel
        self._in_doubt.discard(channel.uri)
        self._settled(channel.uri)
        self._host.active_clients.opened(channel)
        summary = channel.committed.public.summary
        self._host.list_watchers.announce(
            SessionAdded(params=SessionAddedParams(channel=ROOT_CHANNEL, summary=summary)), channel
        )

    def doubt(self, channel: Channel[SessionRecord]) -> None:
        """Ends all waiting for it, but its name stays reserved: it may have been stored."""
        self._in_doubt.add(channel.uri)
        self._settled(channel.uri)

    def discard(self, channel: Channel[SessionRecord]) -> None:
        self._in_doubt.discard(channel.uri)
        self._settled(channel.uri)
        channel.size.remove()

    def dispose(
        self,
        principal: Principal,
        uri: Uri,
        *,
        done: Callable[[], None],
        failed: Callable[[str], None],
    ) -> None:
        self._check_may_create(principal)
        channel = self._host.channel(principal, uri)
        if uri in self._host.unreadable and principal.reaches(uri):
            channel = Channel(uri, SESSION, self._host)  # nothing of it can be seen or written to
        if channel is None or channel is self._host.root or uri in self._disposing:
            raise no_session(uri)
        self._disposing.add(uri)
        channel.close("This session is gone.")

        async def dispose() -> None:
            dropping = asyncio.ensure_future(self._drop(uri))
            is_answered = False
            try:
                answered, _ = await asyncio.wait(
                    {dropping}, timeout=self._host.limits.store_seconds
                )
                if not answered:
                    is_answered = True
                    failed(in_doubt(self._host.log_status.reason or ""))
                reached = await dropping
            except LogError as error:
                self._disposing.discard(uri)
                channel.reopen()
                if not is_answered:
                    failed(str(error))
                return
            finally:
                dropping.cancel()
            self._disposing.discard(uri)
            self._forget(channel)
            self._note_gone(uri, reached)
            if self._host.follower is not None:
                await self._log_disposal(SessionDisposed(session=uri, last_seq=reached))
            self._host.count_sessions()
            if not is_answered:
                done()

        self._host.spawn(dispose())

    async def _log_disposal(self, note: SessionDisposed) -> None:
        """Durable before it is announced, so that the session is gone on all nodes then."""
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._host.write(self._host.root, lambda *_: (note,), done=lambda: written.set_result(None))
        await written

    def disposed_elsewhere(self, uri: Uri, last_seq: Seq) -> None:
        """By another node. A session that was opened under the same name since then stays."""
        self._note_gone(uri, last_seq)
        channel = self._host.sessions.get(uri)
        if channel is not None and channel.last_seq <= last_seq:
            channel.close("This session is gone.")
            self._forget(channel)

    def is_gone(self, uri: Uri, seq: Seq) -> bool:
        """Whether an entry is of a session that was disposed of since it was read."""
        return seq <= self._gone.get(uri, 0)

    def _note_gone(self, uri: Uri, last_seq: Seq) -> None:
        self._gone[uri] = last_seq
        if len(self._gone) > GONE_REMEMBERED:
            del self._gone[next(iter(self._gone))]

    def _forget(self, channel: Channel[SessionRecord]) -> None:
        uri = channel.uri
        for hook in self._host.on_disposed:
            hook(uri)
        self._host.sessions.pop(uri, None)
        self._host.unreadable.pop(uri, None)
        later = {} if channel.publisher.views is None else channel.publisher.views.watchers
        channel.forget()
        removed = SessionRemovedParams(channel=ROOT_CHANNEL, session=uri)
        also = {**dict.fromkeys(channel.publisher.subscribers), **later}
        self._host.list_watchers.announce(SessionRemoved(params=removed), channel, also)
        channel.publisher.subscribers.clear()

    async def _drop(self, uri: Uri) -> Seq:
        """Retries until the result is known: after a disk failure it may or may not be dropped."""
        while True:
            try:
                return await self._host.log_status.watched(self._host.log.drop(uri))
            except FailedError as error:
                if error.because is not RefusedBecause.BROKEN:
                    raise
                await self._host.clock.sleep(PROBE_SECONDS)

    def _check_may_create(self, principal: Principal) -> None:
        if not principal.may_create or principal.is_limited:
            raise not_permitted("Only owners and agents can make or dispose of sessions.")

    def _check_free(self, uri: Uri) -> None:
        check_uri(uri)
        if any(uri in known for known in (self._host.sessions, self.openings, self._in_doubt)):
            raise CommandError(ErrorCode.SESSION_EXISTS, f"There is a session {uri} already.")
        if uri in self._host.unreadable:
            damage = self._host.unreadable[uri]
            reason = f"There is a session {uri} already, and it is damaged: {damage}."
            raise CommandError(ErrorCode.SESSION_EXISTS, reason)
        most = self._host.limits.sessions
        if most and len(self._host.sessions) + len(self.openings) >= most:
            reason = f"This host holds at most {most} sessions; dispose of some first."
            raise CommandError(ErrorCode.CONFLICT, reason)
        if self._host.states.is_full and not self._has_room_after_all():
            message = "This host has reached its memory limit for sessions; dispose of some first."
            raise CommandError(ErrorCode.CONFLICT, message)

    def _has_room_after_all(self) -> bool:
        """Measures the few sessions whose estimated sizes are most likely too high."""
        for channel in nlargest(
            4, self._host.sessions.values(), key=lambda channel: channel.size.grown
        ):
            if channel.size.grown * 8 > channel.size.bytes:
                channel.measure()
        return not self._host.states.is_full

    def _check_active_client(self, principal: Principal, wanted: ActiveClient) -> None:
        """As for `activeClientChanged`: no other client could release the role."""
        if wanted.client_id != principal.client_id:
            reason = "A client can only make itself the active one: activeClient.clientId is yours."
            raise not_permitted(reason)

    def _fork_source(
        self, principal: Principal, params: CreateSessionParams
    ) -> SessionRecord | None:
        if params.fork is None:
            return None
        channel = self._host.channel(principal, params.fork.session)
        if channel is None or channel is self._host.root:
            raise self._host.missing(principal, params.fork.session)
        return loaded_record(channel)
