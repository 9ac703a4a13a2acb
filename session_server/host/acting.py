"""Acting on a session and waiting for changes of it, from code that can await."""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from session_server.host.channel import Channel, Plan, Submission, in_doubt
from session_server.host.channel_kinds import LoggedAction
from session_server.host.errors import no_session
from session_server.host.host import Host
from session_server.host.session_opening import is_recording
from session_server.reducers.rules.judge import RECORDING
from session_server.schemas.ahp.actions import Action
from session_server.schemas.codec import encode
from session_server.schemas.errors import Refusal
from session_server.schemas.principals import HOST, Author, Principal, Provenance
from session_server.schemas.record import SessionRecord
from session_server.schemas.wire import Uri


class RefusedError(Exception):
    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


class NotSavedError(Exception):
    """Trying again later may help."""


class InDoubtError(NotSavedError):
    pass


async def perform(host: Host, principal: Principal, uri: Uri, action: Action) -> None:
    """An action of somebody's, judged like any other; returns when it is durable and visible."""
    channel = host.channel(principal, uri)
    if channel is None:
        raise host.missing(principal, uri)
    held, size = host.allowances.of(principal.id).held, len(encode(action))
    if not held.take(size):
        raise NotSavedError("Too much of what you sent is still being written.")
    done = Settling()
    host.dispatch(
        principal,
        channel,
        action,
        done=done.succeed,
        refused=done.refuse,
        failed=done.fail,
        doubted=done.doubt,
    )
    try:
        await done.future
    finally:
        held.give_back(size)


async def write(
    host: Host, uri: Uri, plan: Plan, by: Author, via: Provenance = Provenance.PERSON
) -> None:
    """A batch of the host's own making, planned on the record as it is when its turn comes."""
    channel = host.sessions.get(uri)
    if channel is None:
        raise no_session(uri)
    await write_to(channel, plan, by, via)


async def write_to(
    channel: Channel[Any], plan: Plan, by: Author, via: Provenance = Provenance.PERSON
) -> None:
    """The same to any channel, the host's own included."""
    if is_recording(channel.committed):
        raise RefusedError(RECORDING)
    done = Settling()
    channel.submit(
        Submission(
            plan,
            by=by,
            via=via,
            done=done.succeed,
            refused=done.refuse,
            failed=done.fail,
            is_exempt=by is HOST,
            doubted=done.doubt,
        )
    )
    await done.future


class Settling:
    """Callbacks of something that will be done, refused or fail, as something to wait for."""

    def __init__(self) -> None:
        self.future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def succeed(self) -> None:
        if not self.future.done():
            self.future.set_result(None)

    def refuse(self, refusal: Refusal) -> None:
        if not self.future.done():
            self.future.set_exception(RefusedError(refusal))

    def fail(self, words: str) -> None:
        if not self.future.done():
            self.future.set_exception(NotSavedError(words))

    def doubt(self, words: str) -> None:
        if not self.future.done():
            self.future.set_exception(InDoubtError(in_doubt(words)))


T = TypeVar("T")

Look = Callable[[SessionRecord], T | None]


class StateWaiters:
    def __init__(self, host: Host) -> None:
        self._host = host
        self._waiters: dict[Uri, set[asyncio.Event]] = {}
        self.over = asyncio.Event()
        host.on_committed.append(self._committed)
        host.on_disposed.append(self._disposed)

    async def until(self, uri: Uri, look: Look[T], seconds: float | None = None) -> T | None:
        """What `look` finds in the committed record, as soon as it finds something.

        `None` if it found nothing in this time; without a number it waits for as long as it takes.
        A session that is not there, or no longer, is a `CommandError`.
        """
        changed = asyncio.Event()
        self._waiters.setdefault(uri, set()).add(changed)
        try:
            async with asyncio.timeout(seconds):
                while True:
                    record = self._host.record(uri)
                    if record is None:
                        raise no_session(uri)
                    found = look(record)
                    if found is not None or self.over.is_set():
                        return found
                    changed.clear()
                    await changed.wait()
        except TimeoutError:
            return None
        finally:
            waiters = self._waiters.get(uri, set())
            waiters.discard(changed)
            if not waiters:
                self._waiters.pop(uri, None)

    def close(self) -> None:
        """Nobody waits any longer, as if the time were over: the host is about to stop."""
        self.over.set()
        self._host.askers.stop()
        for uri in tuple(self._waiters):
            self._wake(uri)

    def _committed(
        self,
        channel: Channel[SessionRecord],
        _before: SessionRecord,
        _action: LoggedAction,
        _after: SessionRecord,
    ) -> None:
        if channel.uri in self._waiters:
            self._wake(channel.uri)

    def _disposed(self, uri: Uri) -> None:
        asyncio.get_running_loop().call_soon(self._wake, uri)

    def _wake(self, uri: Uri) -> None:
        for changed in self._waiters.get(uri, ()):
            changed.set()
