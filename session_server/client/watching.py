"""Ways to wait for changes: of a channel, until a condition holds, of the list of sessions."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from typing import Generic, TypeVar

from session_server.client.client_protocol import ClientProtocol
from session_server.client.errors import ClientError, Closed, ConnectionLost, NotUnderstood
from session_server.client.json_rpc import HostMessage, Response, decode_removed
from session_server.client.mirror import Cause, Change, Mirror
from session_server.schemas.ahp.session import SessionSummary
from session_server.schemas.errors import DecodingError
from session_server.schemas.wire import Uri

S = TypeVar("S")
T = TypeVar("T")

CHANGES_KEPT = 256


def resolve(future: "asyncio.Future[T]", result: T | ClientError) -> None:
    """For callbacks: the future gets the result or raises the error, unless nobody waits."""
    if future.done():
        return
    if isinstance(result, ClientError):
        future.set_exception(result)
    else:
        future.set_result(result)


class Changes(Generic[S]):
    """The changes of a channel from now on, one by one.

    It keeps up to `CHANGES_KEPT` changes that were not read yet. One more, and they all become a
    single one of cause `SEVERAL`, from the oldest state to the newest: a slow reader skips what
    happened in between, but never misses where it led. It ends when the session is left, raises
    when the session is gone or the client has given up, and stops listening when it is not
    referenced.
    """

    def __init__(self, mirror: Mirror[S]) -> None:
        self._unread: deque[Change[S]] = deque()
        self._error = mirror.error
        self._wake = asyncio.Event()
        mirror.observe(self)

    def changed(self, change: Change[S]) -> None:
        if len(self._unread) >= CHANGES_KEPT:
            oldest = self._unread[0]
            self._unread.clear()
            change = Change(Cause.SEVERAL, oldest.before, change.after)
        self._unread.append(change)
        self._wake.set()

    def ended(self, error: ClientError) -> None:
        self._error = error
        self._wake.set()

    def __aiter__(self) -> "Changes[S]":
        return self

    async def __anext__(self) -> Change[S]:
        while not self._unread:
            if isinstance(self._error, Closed):
                raise StopAsyncIteration
            if self._error is not None:
                raise self._error
            self._wake.clear()
            await self._wake.wait()
        return self._unread.popleft()


class Condition(Generic[S, T]):
    """Waits until a function of the confirmed state returns a value, even if only briefly."""

    def __init__(self, mirror: Mirror[S], look: Callable[[S], T | None]) -> None:
        self._mirror = mirror
        self._look = look
        self._found: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def changed(self, change: Change[S] | None = None) -> None:  # noqa: ARG002
        if self._found.done():
            return
        try:
            found = self._look(self._mirror.confirmed)
        except Exception as error:  # noqa: BLE001 - any error belongs to the waiter
            self._found.set_exception(error)
            return
        if found is not None:
            self._found.set_result(found)

    def ended(self, error: ClientError) -> None:
        resolve(self._found, error)

    async def met(self, timeout: float | None) -> T:  # noqa: ASYNC109 - as asyncio.wait_for has it
        self.changed()
        if self._mirror.error is not None:
            self.ended(self._mirror.error)
        self._mirror.observe(self)
        async with asyncio.timeout(timeout):
            return await self._found


class Listing:
    """Yields all sessions each time one of them changes; a slow reader sees the latest.

    Announcements are never replayed, so the whole list is requested on every new connection.
    """

    def __init__(self, protocol: ClientProtocol) -> None:
        self._protocol = protocol
        self._sessions: dict[Uri, SessionSummary] | None = None
        self._pages: dict[Uri, SessionSummary] = {}
        self._is_requested = False
        self._is_outdated = False
        self._error: ClientError | None = None
        self._wake = asyncio.Event()

    async def run(self) -> AsyncGenerator[tuple[SessionSummary, ...], None]:
        self._protocol.listings.add(self)
        self.look()
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                if self._error is not None:
                    raise self._error
                if self._sessions is not None:
                    yield tuple(self._sessions.values())
        finally:
            self._protocol.listings.discard(self)

    def look(self) -> None:
        if self._protocol.error is not None:
            self._fail(self._protocol.error)
        elif not self._protocol.is_live:
            self._is_requested = False
        elif not self._is_requested:
            self._is_requested = True
            self._request(None)

    def _request(self, cursor: str | None) -> None:
        if cursor is None:
            self._pages, self._is_outdated = {}, False
        self._protocol.request(*self._protocol.dialect.list_sessions(cursor), self._listed)

    def announced(self, message: HostMessage) -> None:
        """Ignores announcements from before the first page: they are in the list already."""
        method, params = message.method or "", bytes(message.params)
        if self._pages:
            is_known = self._announced(self._pages, method, params)
            self._is_outdated |= not is_known
        if self._sessions is not None:
            self._announced(self._sessions, method, params)
            self._wake.set()

    def _announced(self, sessions: dict[Uri, SessionSummary], method: str, params: bytes) -> bool:
        """Whether it is about a session that is among them now, or is gone."""
        if method == "root/sessionRemoved":
            sessions.pop(decode_removed(params).session, None)
            return True
        dialect = self._protocol.dialect
        is_new = method == "root/sessionAdded"
        summary = dialect.added(params) if is_new else dialect.changed(params, sessions)
        if summary is not None:
            sessions[summary.resource] = summary
        return summary is not None

    def _listed(self, response: Response) -> None:
        """Page by page. A session that has moved from a page to one before it is looked for."""
        if isinstance(response, ConnectionLost):
            return
        if isinstance(response, ClientError):
            self._fail(response)
            return
        try:
            items, cursor = self._protocol.dialect.listed(bytes(response))
        except (DecodingError, NotUnderstood) as error:
            self._fail(NotUnderstood(f"The list of sessions is not AHP: {error}"))
            return
        for summary in items:
            self._pages.setdefault(summary.resource, summary)
        if cursor is not None:
            self._request(cursor)
        elif self._is_outdated:
            self._request(None)
        else:
            self._sessions, self._pages = self._pages, {}
            self._wake.set()

    def _fail(self, error: ClientError) -> None:
        self._error = error
        self._wake.set()
