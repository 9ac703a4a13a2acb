"""Acting on a session and waiting for changes of it, from code that can await."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from session_server.host.channels.changes import ActionChange, Change, Plan, PlannedChange
from session_server.host.channels.channel import Channel
from session_server.host.host import Host
from session_server.schemas.ahp.actions import Action
from session_server.schemas.codec import encode
from session_server.schemas.errors import (
    InDoubtError,
    NotSavedError,
    Refusal,
    RefusedError,
    no_session,
)
from session_server.schemas.principals import HOST, Author, Principal, Provenance
from session_server.schemas.record import SessionRecord
from session_server.schemas.wire import Uri


async def perform(host: Host, principal: Principal, uri: Uri, action: Action) -> None:
    """Submits an action of a principal; returns when it is durable and visible."""
    unsettled, size = host.allowances.of(principal.id).unsettled, len(encode(action))
    if not unsettled.acquire(size):
        raise NotSavedError("Too much of what you sent is still being written.")
    done = Completion()
    try:
        host.submit(uri, AwaitedAction(done, principal, action))
        await done.future
    finally:
        unsettled.release(size)


async def write(
    host: Host, uri: Uri, plan: Plan, by: Author, via: Provenance = Provenance.PERSON
) -> None:
    """Writes a batch of the host, planned on the record as it is at that moment."""
    done = Completion()
    host.submit(
        uri,
        PlannedChange(
            plan,
            by,
            via,
            done=done.succeed,
            refused=done.refuse,
            failed=done.fail,
            doubted=done.doubt,
            is_exempt=by is HOST,
        ),
    )
    await done.future


class AwaitedAction(ActionChange):
    __slots__ = ("_completion",)

    def __init__(self, completion: "Completion", principal: Principal, action: Action) -> None:
        super().__init__(principal, action)
        self._completion = completion

    def done(self) -> None:
        self._completion.succeed()

    def refused(self, refusal: Refusal) -> None:
        self._completion.refuse(refusal)

    def failed(self, reason: str) -> None:
        self._completion.fail(reason)

    def doubted(self, reason: str) -> None:
        self._completion.doubt(reason)


class Completion:
    """Turns the callbacks of a change (done, refused, failed, in doubt) into a future."""

    def __init__(self) -> None:
        self.future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def succeed(self) -> None:
        if not self.future.done():
            self.future.set_result(None)

    def refuse(self, refusal: Refusal) -> None:
        if not self.future.done():
            self.future.set_exception(RefusedError(refusal))

    def fail(self, reason: str) -> None:
        if not self.future.done():
            self.future.set_exception(NotSavedError(reason))

    def doubt(self, reason: str) -> None:
        if not self.future.done():
            self.future.set_exception(InDoubtError(reason))


T = TypeVar("T")

Look = Callable[[SessionRecord], T | None]


class StateWaiters:
    def __init__(self, host: Host) -> None:
        self._host = host
        self._waiters: dict[Uri, set[asyncio.Event]] = {}
        self.over = asyncio.Event()
        host.on_committed.append(self._committed)
        host.on_drafted.append(self._committed)
        host.on_disposed.append(self._disposed)

    async def until(self, uri: Uri, look: Look[T], seconds: float | None = None) -> T | None:
        """What `look` finds in the committed record, as soon as it finds something.

        `None` if it found nothing in this time; without a number it waits for as long as it takes.
        A session that is not there, or no longer, is a `CommandError`.
        """
        with self._host.loaded.pinned(uri):
            await self._host.loaded.loaded(uri)
            return await self._until(uri, look, seconds)

    async def _until(self, uri: Uri, look: Look[T], seconds: float | None) -> T | None:
        found = self._look(uri, look)
        if found is not None or seconds == 0:
            return found
        changed = asyncio.Event()
        self._waiters.setdefault(uri, set()).add(changed)
        try:
            async with asyncio.timeout(seconds):
                while found is None and not self.over.is_set():
                    changed.clear()
                    await changed.wait()
                    found = self._look(uri, look)
                return found
        except TimeoutError:
            return None
        finally:
            waiters = self._waiters.get(uri, set())
            waiters.discard(changed)
            if not waiters:
                self._waiters.pop(uri, None)

    def _look(self, uri: Uri, look: Look[T]) -> T | None:
        record = self._host.record(uri)
        if record is None:
            raise no_session(uri)
        return look(record)

    def close(self) -> None:
        """Ends all waiting as if its time had passed: the host is about to stop."""
        self.over.set()
        self._host.askers.stop()
        for uri in tuple(self._waiters):
            self._wake(uri)

    def _committed(self, channel: Channel[SessionRecord], _: Change) -> None:
        if channel.uri in self._waiters:
            self._wake(channel.uri)

    def _disposed(self, uri: Uri) -> None:
        asyncio.get_running_loop().call_soon(self._wake, uri)

    def _wake(self, uri: Uri) -> None:
        for changed in self._waiters.get(uri, ()):
            changed.set()
